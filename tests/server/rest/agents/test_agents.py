"""Agents and templates through the wire."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.support.rest_client import RestServer

pytestmark = pytest.mark.anyio
BOTH = pytest.mark.parametrize("noun", ["agents", "templates"])
MARCO = {"slug": "marco", "name": "Marco"}


@BOTH
async def test_one_is_created_found_by_id_and_slug_and_deleted(
    owner: httpx.AsyncClient, noun: str
) -> None:
    made = await owner.post(f"/v1/{noun}", json=MARCO)
    assert made.status_code == 201
    assert MARCO.items() <= made.json().items()
    id = made.json()["id"]
    for name in (id, "marco"):
        assert (await owner.get(f"/v1/{noun}/{name}")).json() == made.json()
    assert (await owner.get(f"/v1/{noun}")).json() == {"items": [made.json()], "next": None}
    assert (await owner.delete(f"/v1/{noun}/marco")).status_code == 204
    for name in (id, "marco", "%00", "x" * 2000):
        assert (await owner.get(f"/v1/{noun}/{name}")).status_code == 404
        assert (await owner.delete(f"/v1/{noun}/{name}")).status_code == 404


@BOTH
async def test_what_does_not_fit_is_400(owner: httpx.AsyncClient, noun: str) -> None:
    wrongs: list[dict[str, Any]] = [
        *({"slug": slug} for slug in ("", "A", "a_b", "a\n", "a\x00", "me", "new", "defaults", 1)),
        *({"name": name} for name in ("", " ", "a\n", "a\x00", None)),
        {"id": "agt_1"},
        {"tenantId": "globex"},
    ]
    for wrong in wrongs:
        answer = await owner.post(f"/v1/{noun}", json={**MARCO, **wrong})
        assert answer.status_code == 400, (wrong, answer.text)


@BOTH
async def test_of_rivals_for_a_slug_exactly_one_wins(owner: httpx.AsyncClient, noun: str) -> None:
    answers = await asyncio.gather(*(owner.post(f"/v1/{noun}", json=MARCO) for _ in range(4)))
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]


@BOTH
async def test_those_of_another_tenant_are_404(
    here: RestServer, owner: httpx.AsyncClient, noun: str
) -> None:
    other = await here.create_tenant("globex")
    theirs = (await other.post(f"/v1/{noun}", json=MARCO)).json()
    for name in ("marco", theirs["id"]):
        assert (await owner.get(f"/v1/{noun}/{name}")).status_code == 404
        assert (await owner.delete(f"/v1/{noun}/{name}")).status_code == 404
    assert (await owner.get(f"/v1/{noun}")).json()["items"] == []
    assert (await owner.post(f"/v1/{noun}", json=MARCO)).status_code == 201


@BOTH
async def test_reading_and_writing_need_their_permissions(
    here: RestServer, owner: httpx.AsyncClient, noun: str
) -> None:
    await owner.post(f"/v1/{noun}", json=MARCO)
    reader = await here.key(owner, scopes=["tenant:read"])
    machine = await here.key(owner)
    assert (await reader.get(f"/v1/{noun}/marco")).status_code == 200
    assert (await reader.post(f"/v1/{noun}", json=MARCO)).status_code == 403
    assert (await reader.delete(f"/v1/{noun}/marco")).status_code == 403
    assert (await machine.get(f"/v1/{noun}")).status_code == 403


async def test_a_template_tells_how_many_follow_it(owner: httpx.AsyncClient) -> None:
    for slug in ("sales", "help"):
        made = await owner.post("/v1/templates", json={"slug": slug, "name": slug})
        assert made.json()["agentCount"] == 0
    for slug in ("ann", "bea"):
        new = {"slug": slug, "name": slug, "templateId": "sales"}
        await owner.post("/v1/agents", json=new)
    rows = (await owner.get("/v1/templates")).json()["items"]
    assert {row["slug"]: row["agentCount"] for row in rows} == {"sales": 2, "help": 0}
    assert (await owner.get("/v1/templates/sales")).json()["agentCount"] == 2
    patched = await owner.patch("/v1/templates/sales", json={"name": "Selling"})
    assert patched.json()["agentCount"] == 2


async def test_a_template_that_agents_follow_is_409_to_delete(owner: httpx.AsyncClient) -> None:
    sales = (await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})).json()
    agent = await owner.post("/v1/agents", json={**MARCO, "templateId": "sales"})
    assert agent.json()["templateId"] == sales["id"]
    assert (await owner.delete("/v1/templates/sales")).status_code == 409
    assert (await owner.delete("/v1/agents/marco")).status_code == 204
    assert (await owner.delete("/v1/templates/sales")).status_code == 204


async def test_a_template_that_is_not_there_is_not_followed(
    here: RestServer, owner: httpx.AsyncClient
) -> None:
    other = await here.create_tenant("globex")
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
async def test_what_is_sent_twice_with_one_key_is_done_once(
    owner: httpx.AsyncClient, noun: str
) -> None:
    once = {"Idempotency-Key": "abc"}
    made = [await owner.post(f"/v1/{noun}", json=MARCO, headers=once) for _ in range(2)]
    assert [answer.status_code for answer in made] == [201, 201]
    assert made[0].content == made[1].content
    for _ in range(2):
        assert (await owner.delete(f"/v1/{noun}/marco", headers=once)).status_code == 204


@BOTH
async def test_a_slug_and_a_name_can_change_and_nobody_elses_slug_be_taken(
    owner: httpx.AsyncClient, noun: str
) -> None:
    await owner.post(f"/v1/{noun}", json=MARCO)
    await owner.post(f"/v1/{noun}", json={"slug": "polo", "name": "Polo"})
    changed = await owner.patch(f"/v1/{noun}/marco", json={"slug": "mark", "name": "Mark"})
    assert (changed.status_code, changed.json()["slug"], changed.json()["name"]) == (
        *(200, "mark"),
        "Mark",
    )
    assert (await owner.get(f"/v1/{noun}/marco")).status_code == 404
    assert (await owner.get(f"/v1/{noun}/mark")).json() == changed.json()
    assert (await owner.patch(f"/v1/{noun}/mark", json={"slug": "polo"})).status_code == 409
    for wrong in ({"slug": "me"}, {"name": ""}, {"slug": None}, {"id": "x"}):
        assert (await owner.patch(f"/v1/{noun}/mark", json=wrong)).status_code == 400
    unchanged = await owner.patch(f"/v1/{noun}/mark", json={})
    assert unchanged.json() == changed.json()
