"""Changes of many agents, and duplicates, over REST on both kinds of store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.server_stores import STORES, open_app_over

pytestmark = pytest.mark.anyio
CHANGES = "/v1/agent-changes"


@pytest.fixture(params=STORES)
async def app(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(app: FullApp) -> httpx.AsyncClient:
    """The owner of a tenant with two templates and three agents that follow the first."""
    client = await app.owner()
    for template, rules in (("sales", "one"), ("support", "two")):
        await sent(client, "POST", "/v1/templates", slug=template, name=template.title())
        await sent(client, "PUT", f"/v1/templates/{template}/files/SOUL.md", content=rules)
        await sent(client, "PUT", f"/v1/templates/{template}/files/GUARDRAILS.md", content=rules)
    await sent(client, "PUT", "/v1/templates/sales/files/sales.md", content="prices")
    for slug in ("kate", "marco", "nina"):
        body = {"slug": slug, "name": slug.title(), "templateId": "sales", "tags": ["eu"]}
        await sent(client, "POST", "/v1/agents", **body)
    return client


async def sent(client: httpx.AsyncClient, method: str, url: str, **body: Any) -> Any:
    response = await client.request(method, url, json=body)
    assert response.is_success, response.text
    return response.json() if response.content else None


async def change(client: httpx.AsyncClient, *agents: str, **options: Any) -> Any:
    body = {"agents": [*agents], **options} if agents else options
    return await sent(client, "POST", CHANGES, **body)


async def text_of(client: httpx.AsyncClient, agent: str, path: str) -> Any:
    return (await client.get(f"/v1/agents/{agent}/files/{path}")).json().get("content")


async def test_a_dry_run_of_a_move_names_files_and_offers_and_stores_nothing(
    ada: httpx.AsyncClient,
) -> None:
    before = (await ada.get("/v1/agents")).json()
    move = {"change": {"templateId": "support"}}
    answer = await change(ada, "kate", "nobody", **move, dryRun=True)
    assert (answer["dryRun"], answer["changed"], answer["failed"]) == (True, 1, 1)
    kate, nobody = answer["results"]
    effects = {file["path"]: file["effect"] for file in kate["files"]}
    assert effects == {"SOUL.md": "content", "GUARDRAILS.md": "offered", "sales.md": "removed"}
    assert (nobody["agentId"], nobody["changed"]) == ("nobody", False)
    assert "no such agent" in nobody["error"]
    assert (await ada.get("/v1/agents")).json() == before
    assert await text_of(ada, "kate", "SOUL.md") == "one"


async def test_a_move_by_filter_keeps_pins_and_one_refusal_stops_no_other(
    ada: httpx.AsyncClient,
) -> None:
    await sent(ada, "PUT", "/v1/templates/support/files/notes.txt/a.md", content="a")
    await sent(ada, "PUT", "/v1/agents/marco/files/notes.txt", content="a file")
    move = {"filter": {"tag": "eu"}, "change": {"templateId": "support"}}
    dry = await change(ada, **move, dryRun=True)
    real = await change(ada, **move)
    for answer in (dry, real):
        results = {result["slug"]: result for result in answer["results"]}
        assert [name for name, result in results.items() if result["changed"]] == ["kate", "nina"]
        assert "notes.txt" in results["marco"]["error"]
        assert (answer["changed"], answer["failed"]) == (2, 1)
    assert await text_of(ada, "kate", "SOUL.md") == "two"
    assert await text_of(ada, "kate", "GUARDRAILS.md") == "one"
    assert await text_of(ada, "marco", "SOUL.md") == "one"
    again = await change(ada, "kate", change={"templateId": "support"})
    assert not again["results"][0]["changed"]


async def test_tags_are_added_and_removed(ada: httpx.AsyncClient) -> None:
    tags = {"addTags": ["vip"], "removeTags": ["eu"]}
    assert (await change(ada, "kate", "nina", change=tags))["changed"] == 2
    assert (await ada.get("/v1/agents/kate")).json()["tags"] == ["vip"]
    assert (await ada.get("/v1/tags")).json()["items"] == [
        {"tag": "eu", "agents": 1},
        {"tag": "vip", "agents": 2},
    ]


async def test_a_new_human_rewrites_user_files(ada: httpx.AsyncClient) -> None:
    people = (await ada.get("/v1/people")).json()["items"]
    pair = {"change": {"humanPairId": people[0]["id"]}}
    dry = await change(ada, "kate", "marco", **pair, dryRun=True)
    for result in dry["results"]:
        assert {"path": "USER.md", "effect": "rewritten"} in result["files"]
    assert (await change(ada, "kate", "marco", **pair))["changed"] == 2
    for agent in ("kate", "marco"):
        assert "Ada" in await text_of(ada, agent, "USER.md")
    assert (await ada.get("/v1/agents/nina")).json()["humanPairId"] is None


async def test_a_deletion_says_what_it_erases(ada: httpx.AsyncClient) -> None:
    await sent(ada, "POST", "/v1/agents/kate/memories", content="likes tea")
    await sent(ada, "PUT", "/v1/agents/kate/files/own.md", content="own")
    dry = await change(ada, "kate", "marco", change={"delete": True}, dryRun=True)
    erased = dry["results"][0]["erased"]
    assert erased == {"sessions": 0, "memories": 1, "keys": 0, "files": 1}
    assert (await ada.get("/v1/agents/kate")).status_code == 200
    real = await change(ada, "kate", "marco", change={"delete": True})
    assert real["changed"] == 2
    slugs = [agent["slug"] for agent in (await ada.get("/v1/agents")).json()["items"]]
    assert slugs == ["nina"]


async def test_a_repeated_request_is_not_run_again(ada: httpx.AsyncClient) -> None:
    body = {"agents": ["kate"], "change": {"delete": True}}
    headers = {"Idempotency-Key": "k-1"}
    first, second = [await ada.post(CHANGES, json=body, headers=headers) for _ in range(2)]
    assert first.is_success
    assert second.content == first.content


@pytest.mark.parametrize(
    "body",
    [
        {"agents": ["kate"], "change": {}},
        {"agents": ["kate"], "change": {"delete": False}},
        {"agents": ["kate"], "change": {"delete": True, "addTags": ["a"]}},
        {"agents": ["kate"], "filter": {}, "change": {"addTags": ["a"]}},
        {"change": {"addTags": ["a"]}},
        {"agents": [], "change": {"addTags": ["a"]}},
        {"agents": ["kate"], "change": {"addTags": ["A b"]}},
        {"agents": ["kate"], "change": {"name": "x"}},
    ],
)
async def test_an_invalid_change_is_400(ada: httpx.AsyncClient, body: Any) -> None:
    assert (await ada.post(CHANGES, json=body)).status_code == 400


async def test_an_unknown_template_or_person_is_404(ada: httpx.AsyncClient) -> None:
    for fields in ({"templateId": "nope"}, {"humanPairId": "per_1"}):
        response = await ada.post(CHANGES, json={"agents": ["kate"], "change": fields})
        assert response.status_code == 404


async def test_agents_of_another_tenant_are_not_found(app: FullApp, ada: httpx.AsyncClient) -> None:
    other = await app.owner("globex")
    id = (await ada.get("/v1/agents/kate")).json()["id"]
    answer = await change(other, id, "kate", change={"delete": True})
    assert (answer["changed"], answer["failed"]) == (0, 2)
    assert (await ada.get("/v1/agents/kate")).status_code == 200


async def test_a_duplicate_has_files_and_pins_but_no_memories(ada: httpx.AsyncClient) -> None:
    await sent(ada, "PUT", "/v1/agents/kate/files/IDENTITY.md", content="- Name: Kate\n- Vibe: x\n")
    for path in ("own.md", "MEMORY.md", "notes/day.md"):
        await sent(ada, "PUT", f"/v1/agents/kate/files/{path}", content=path)
    await sent(ada, "POST", "/v1/agents/kate/memories", content="likes tea")
    await sent(ada, "PUT", "/v1/templates/sales/files/GUARDRAILS.md", content="newer")
    created = await sent(ada, "POST", "/v1/agents/kate/duplicate", slug="kim", name="Kim")
    original = (await ada.get("/v1/agents/kate")).json()
    for field in ("templateId", "tags", "config", "humanPairId", "ownerId"):
        assert created[field] == original[field]
    assert await text_of(ada, "kim", "own.md") == "own.md"
    assert await text_of(ada, "kim", "IDENTITY.md") == "- Name: Kim\n- Vibe: x\n"
    assert await text_of(ada, "kim", "GUARDRAILS.md") == "one"
    pins = (await ada.get("/v1/agents/kim/pins")).json()["items"]
    assert [pin["path"] for pin in pins if pin["updateAvailable"]] == ["GUARDRAILS.md"]
    assert await text_of(ada, "kim", "notes/day.md") is None
    assert await text_of(ada, "kim", "MEMORY.md") != "MEMORY.md"
    assert (await ada.get("/v1/agents/kim/memories")).json()["items"] == []
    repeated = await ada.post("/v1/agents/kate/duplicate", json={"slug": "kim", "name": "Kim"})
    assert repeated.status_code == 409


async def test_a_duplicate_keeps_accepted_removals(ada: httpx.AsyncClient) -> None:
    await ada.delete("/v1/templates/sales/files/GUARDRAILS.md")
    await ada.delete("/v1/defaults/files/GUARDRAILS.md")
    pin = "/v1/agents/kate/pins/GUARDRAILS.md/accept"
    await sent(ada, "POST", pin, sha256=None)
    await sent(ada, "POST", "/v1/agents/kate/duplicate", slug="kim", name="Kim")
    for agent in ("kate", "kim"):
        assert await text_of(ada, agent, "GUARDRAILS.md") is None


async def test_a_template_is_duplicated_without_its_agents(ada: httpx.AsyncClient) -> None:
    body = {"slug": "sales-2", "name": "Sales 2"}
    headers = {"Idempotency-Key": "k-2"}
    url = "/v1/templates/sales/duplicate"
    first, second = [await ada.post(url, json=body, headers=headers) for _ in range(2)]
    assert first.status_code == 201
    assert second.content == first.content
    assert first.json()["agentCount"] == 0
    listed = (await ada.get("/v1/templates/sales-2/files")).json()
    own = {file["path"] for file in listed["files"]}
    assert {"SOUL.md", "GUARDRAILS.md", "sales.md"} <= own


async def test_members_may_not_change_many(app: FullApp, ada: httpx.AsyncClient) -> None:
    key = await app.key(ada)
    body = {"agents": ["kate"], "change": {"addTags": ["a"]}, "dryRun": True}
    assert (await key.post(CHANGES, json=body)).status_code == 403
