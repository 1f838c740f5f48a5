"""Agents and templates over REST."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.support.rest_client import RestServer

pytestmark = pytest.mark.anyio
BOTH = pytest.mark.parametrize("collection", ["agents", "templates"])
MARCO = {"slug": "marco", "name": "Marco"}


@BOTH
async def test_a_record_is_created_read_by_id_and_slug_and_deleted(
    owner: httpx.AsyncClient, collection: str
) -> None:
    created = await owner.post(f"/v1/{collection}", json=MARCO)
    assert created.status_code == 201
    assert MARCO.items() <= created.json().items()
    id = created.json()["id"]
    for name in (id, "marco"):
        assert (await owner.get(f"/v1/{collection}/{name}")).json() == created.json()
    assert (await owner.get(f"/v1/{collection}")).json() == {
        "items": [created.json()],
        "next": None,
        "total": 1,
    }
    assert (await owner.delete(f"/v1/{collection}/marco")).status_code == 204
    for name in (id, "marco", "%00", "x" * 2000):
        assert (await owner.get(f"/v1/{collection}/{name}")).status_code == 404
        assert (await owner.delete(f"/v1/{collection}/{name}")).status_code == 404


@BOTH
async def test_an_invalid_body_is_400(owner: httpx.AsyncClient, collection: str) -> None:
    wrongs: list[dict[str, Any]] = [
        *({"slug": slug} for slug in ("", "A", "a_b", "a\n", "a\x00", "me", "new", "defaults", 1)),
        *({"name": name} for name in ("", " ", "a\n", "a\x00", None)),
        {"id": "agt_1"},
        {"tenantId": "globex"},
    ]
    for wrong in wrongs:
        answer = await owner.post(f"/v1/{collection}", json={**MARCO, **wrong})
        assert answer.status_code == 400, (wrong, answer.text)


@BOTH
async def test_of_concurrent_creates_with_one_slug_exactly_one_succeeds(
    owner: httpx.AsyncClient, collection: str
) -> None:
    answers = await asyncio.gather(*(owner.post(f"/v1/{collection}", json=MARCO) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]


@BOTH
async def test_records_of_another_tenant_are_404(
    server: RestServer, owner: httpx.AsyncClient, collection: str
) -> None:
    other = await server.create_tenant("globex")
    theirs = (await other.post(f"/v1/{collection}", json=MARCO)).json()
    for name in ("marco", theirs["id"]):
        assert (await owner.get(f"/v1/{collection}/{name}")).status_code == 404
        assert (await owner.delete(f"/v1/{collection}/{name}")).status_code == 404
    assert (await owner.get(f"/v1/{collection}")).json()["items"] == []
    assert (await owner.post(f"/v1/{collection}", json=MARCO)).status_code == 201


@BOTH
async def test_reading_and_writing_need_their_permissions(
    server: RestServer, owner: httpx.AsyncClient, collection: str
) -> None:
    await owner.post(f"/v1/{collection}", json=MARCO)
    reader = await server.key(owner, scopes=["tenant:read"])
    machine = await server.key(owner)
    assert (await reader.get(f"/v1/{collection}/marco")).status_code == 200
    assert (await reader.post(f"/v1/{collection}", json=MARCO)).status_code == 403
    assert (await reader.delete(f"/v1/{collection}/marco")).status_code == 403
    assert (await machine.get(f"/v1/{collection}")).status_code == 403


async def test_a_template_has_its_agent_count(owner: httpx.AsyncClient) -> None:
    for slug in ("sales", "help"):
        created = await owner.post("/v1/templates", json={"slug": slug, "name": slug})
        assert created.json()["agentCount"] == 0
    for slug in ("ann", "bea"):
        new = {"slug": slug, "name": slug, "templateId": "sales"}
        await owner.post("/v1/agents", json=new)
    rows = (await owner.get("/v1/templates")).json()["items"]
    assert {row["slug"]: row["agentCount"] for row in rows} == {"sales": 2, "help": 0}
    assert (await owner.get("/v1/templates/sales")).json()["agentCount"] == 2
    patched = await owner.patch("/v1/templates/sales", json={"name": "Selling"})
    assert patched.json()["agentCount"] == 2


async def test_deleting_a_template_with_agents_is_409(owner: httpx.AsyncClient) -> None:
    sales = (await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})).json()
    agent = await owner.post("/v1/agents", json={**MARCO, "templateId": "sales"})
    assert agent.json()["templateId"] == sales["id"]
    assert (await owner.delete("/v1/templates/sales")).status_code == 409
    assert (await owner.delete("/v1/agents/marco")).status_code == 204
    assert (await owner.delete("/v1/templates/sales")).status_code == 204


async def test_an_agent_with_an_unknown_template_is_404(
    server: RestServer, owner: httpx.AsyncClient
) -> None:
    other = await server.create_tenant("globex")
    theirs = (await other.post("/v1/templates", json={"slug": "sales", "name": "Sales"})).json()
    for template in ("sales", theirs["id"]):
        answer = await owner.post("/v1/agents", json={**MARCO, "templateId": template})
        assert answer.status_code == 404
    for template in ("", "a\x00", 1):
        answer = await owner.post("/v1/agents", json={**MARCO, "templateId": template})
        assert answer.status_code == 400
    none = await owner.post("/v1/agents", json={**MARCO, "templateId": None})
    assert (none.status_code, none.json()["templateId"]) == (201, None)


@BOTH
async def test_a_repeated_idempotency_key_runs_once(
    owner: httpx.AsyncClient, collection: str
) -> None:
    once = {"Idempotency-Key": "abc"}
    created = [await owner.post(f"/v1/{collection}", json=MARCO, headers=once) for _ in range(2)]
    assert [answer.status_code for answer in created] == [201, 201]
    assert created[0].content == created[1].content
    for _ in range(2):
        assert (await owner.delete(f"/v1/{collection}/marco", headers=once)).status_code == 204


@BOTH
async def test_slug_and_name_can_change_but_a_slug_in_use_is_409(
    owner: httpx.AsyncClient, collection: str
) -> None:
    await owner.post(f"/v1/{collection}", json=MARCO)
    await owner.post(f"/v1/{collection}", json={"slug": "polo", "name": "Polo"})
    changed = await owner.patch(f"/v1/{collection}/marco", json={"slug": "mark", "name": "Mark"})
    assert (changed.status_code, changed.json()["slug"], changed.json()["name"]) == (
        *(200, "mark"),
        "Mark",
    )
    assert (await owner.get(f"/v1/{collection}/marco")).status_code == 404
    assert (await owner.get(f"/v1/{collection}/mark")).json() == changed.json()
    assert (await owner.patch(f"/v1/{collection}/mark", json={"slug": "polo"})).status_code == 409
    for wrong in ({"slug": "me"}, {"name": ""}, {"slug": None}, {"id": "x"}):
        assert (await owner.patch(f"/v1/{collection}/mark", json=wrong)).status_code == 400
    unchanged = await owner.patch(f"/v1/{collection}/mark", json={})
    assert unchanged.json() == changed.json()


async def test_agents_are_listed_by_tag_name_template_and_person(
    owner: httpx.AsyncClient,
) -> None:
    template = (await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})).json()
    person = (await owner.get("/v1/people")).json()["items"][0]["id"]
    agents: list[dict[str, Any]] = [
        {"slug": "ada", "name": "Ada Lovelace", "tags": ["eu", "beta", "eu"]},
        {"slug": "adam", "name": "Adam", "tags": ["eu"], "templateId": "sales"},
        {"slug": "eve", "name": "Eve", "humanPairId": person, "ownerId": person},
    ]
    for agent in agents:
        assert (await owner.post("/v1/agents", json=agent)).status_code == 201

    async def listed(**query: str) -> list[str]:
        page = (await owner.get("/v1/agents", params=query)).json()
        assert page["total"] == len(page["items"])
        return [agent["slug"] for agent in page["items"]]

    assert await listed() == ["ada", "adam", "eve"]
    assert await listed(tag="eu") == ["ada", "adam"]
    assert await listed(tag="beta", q="love") == ["ada"]
    assert await listed(q="ÁD") == ["ada", "adam"]
    assert await listed(q="lace") == await listed(q="%") == []
    assert await listed(template="sales") == await listed(template=template["id"]) == ["adam"]
    assert await listed(template="none") == ["ada", "eve"]
    assert await listed(human=person, owner=person) == ["eve"]
    assert (await owner.get("/v1/agents?template=unknown")).status_code == 404
    assert (await owner.get("/v1/agents?tag=EU")).status_code == 400
    tags = (await owner.get("/v1/tags")).json()["items"]
    assert tags == [{"tag": "beta", "agents": 1}, {"tag": "eu", "agents": 2}]
    page = (await owner.get("/v1/agents?limit=2")).json()
    assert (len(page["items"]), page["total"]) == (2, 3)
    rest = (await owner.get(f"/v1/agents?limit=2&cursor={page['next']}")).json()
    assert ([agent["slug"] for agent in rest["items"]], rest["total"]) == (["eve"], None)
    [listed_template] = (await owner.get("/v1/templates?q=sal")).json()["items"]
    assert listed_template["slug"] == "sales"
    assert (await owner.get("/v1/people?q=nobody")).json()["items"] == []
    assert (await owner.get("/v1/people?role=owner")).json()["items"][0]["id"] == person


async def test_tags_are_validated_changed_and_cleared(owner: httpx.AsyncClient) -> None:
    created = await owner.post("/v1/agents", json={**MARCO, "tags": ["eu", "beta", "eu"]})
    assert created.json()["tags"] == ["beta", "eu"]
    many = [f"t{number}" for number in range(21)]
    for tags in (["EU"], ["a b"], ["-a"], ["a" * 41], [1], "eu", None, many):
        refused = await owner.patch("/v1/agents/marco", json={"tags": tags})
        assert refused.status_code == 400, tags
    await owner.put("/v1/secrets/word", json={"value": "hunter-eleven"})
    secret = await owner.patch("/v1/agents/marco", json={"tags": ["hunter-eleven"]})
    assert (secret.status_code, "hunter" in secret.text) == (400, False)
    changed = await owner.patch("/v1/agents/marco", json={"tags": ["vip"]})
    assert changed.json()["tags"] == ["vip"]
    assert (await owner.get("/v1/agents?tag=eu")).json()["items"] == []
    assert (await owner.patch("/v1/agents/marco", json={"tags": []})).json()["tags"] == []
    assert (await owner.get("/v1/tags")).json()["items"] == []
