"""What agents remember and dream, through the wire."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.support.rest_client import RestServer, open_rest_server

from carrel.actions.memory import memories
from carrel.core.access import Actor

pytestmark = pytest.mark.anyio
MARCO = "/v1/agents/marco"
TOLD, DREAMS = f"{MARCO}/memories", f"{MARCO}/dreams"


@pytest.fixture
async def marco(owner: httpx.AsyncClient) -> dict[str, Any]:
    made = await owner.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


async def told(owner: httpx.AsyncClient, content: str, **more: Any) -> dict[str, Any]:
    made = await owner.post(TOLD, json={"content": content, **more})
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    return found


async def learned(here: RestServer, owner: httpx.AsyncClient, content: str) -> dict[str, Any]:
    """A memory that the agent has recalled often enough."""
    memory = await told(owner, content)
    actor = Actor((await owner.get("/v1/tenants/me")).json()["id"], "marco")
    for query in (content, f"{content}?", f"{content}!"):
        await memories.recall(here.ports, actor, "marco", query + query[0], limit=1)
    return memory


async def test_a_memory_is_told_once_listed_looked_at_and_forgotten(
    owner: httpx.AsyncClient, marco: dict[str, Any]
) -> None:
    memory = await told(owner, "Ada likes\ntea", tags=["drinks"], kind="user")
    assert memory["content"] == "Ada likes tea"
    assert (memory["scope"], memory["tags"], memory["kind"]) == ("main", ["drinks"], "user")
    assert (memory["conceptTags"], memory["promotedAt"]) == (["ada", "likes", "tea"], None)
    again = await owner.post(TOLD, json={"content": "Ada likes tea"})
    assert (again.status_code, again.json()) == (200, memory)
    assert (await owner.get(TOLD)).json() == {"items": [memory], "next": None}
    assert (await owner.get(f"{TOLD}/{memory['id']}")).json() == memory
    assert (await owner.delete(f"{TOLD}/{memory['id']}")).status_code == 204
    assert (await owner.delete(f"{TOLD}/{memory['id']}")).status_code == 404


async def test_memories_are_found_by_words_and_nothing_is_noted(
    here: RestServer, owner: httpx.AsyncClient, marco: dict[str, Any]
) -> None:
    await told(owner, "Señora López likes tea")
    await told(owner, "unrelated")
    [found] = (await owner.get(TOLD, params={"q": "lop te"})).json()["items"]
    assert (found["content"], found["score"]) == ("Señora López likes tea", 1.0)
    for query in ("", "!!!", "\0"):
        assert (await owner.get(TOLD, params={"q": query})).json()["items"] == []
    tenant = (await owner.get("/v1/tenants/me")).json()["id"]
    assert await here.ports.recalls.stats_by_memory(tenant, marco["id"]) == ()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"content": ""},
        {"content": " \n"},
        {"content": "x" * 2001},
        {"content": "x", "tags": [""]},
        {"content": "x", "tags": ["\u200b"]},
        {"content": "x", "kind": "gossip"},
        {"content": "x", "more": 1},
        {"content": 1},
    ],
)
async def test_what_cannot_be_remembered_is_a_bad_request(
    owner: httpx.AsyncClient, marco: dict[str, Any], body: dict[str, Any]
) -> None:
    answer = await owner.post(TOLD, json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


async def test_an_unknown_scope_is_shared(owner: httpx.AsyncClient, marco: dict[str, Any]) -> None:
    assert (await told(owner, "one", scope="party"))["scope"] == "shared"
    assert (await told(owner, "two", scope="shared"))["scope"] == "shared"


async def test_a_sweep_tells_what_it_did_and_why_it_did_not_more(
    here: RestServer, owner: httpx.AsyncClient, marco: dict[str, Any]
) -> None:
    tea = await learned(here, owner, "Ada likes tea")
    await told(owner, "Bob prefers milk")
    actor = Actor((await owner.get("/v1/tenants/me")).json()["id"], "marco")
    await memories.recall(here.ports, actor, "marco", "milk")

    dry = (await owner.post(DREAMS, json={"dryRun": True})).json()
    assert (dry["dryRun"], dry["id"], dry["promotedCount"]) == (True, "", 1)
    assert (await owner.get(DREAMS)).json()["items"] == []

    done = await owner.post(DREAMS, json={})
    assert done.status_code == 200, done.text
    report = done.json()
    assert [one["memoryId"] for one in report["promoted"]] == [tea["id"]]
    [rejected] = report["rejected"]
    assert (rejected["reason"], rejected["content"]) == ("hits", "Bob prefers milk")
    assert rejected["message"] == "recalled 1 times; 3 required"
    assert report["reasons"] == {"hits": 1}
    assert report["diff"] == dry["diff"].replace(_stamp(dry["diff"]), _stamp(report["diff"]))
    text = (await owner.get(f"{MARCO}/files/MEMORY.md")).json()["content"]
    assert "- Ada likes tea _(score=0.73, hits=3, days=1)_" in text
    [row] = (await owner.get(DREAMS)).json()["items"]
    assert row["id"] == report["id"]
    shown = (await owner.get(f"{DREAMS}/{report['id']}")).json()
    assert [one["content"] for one in shown["promoted"]] == ["Ada likes tea"]
    promoted = (await owner.get(f"{TOLD}/{tea['id']}")).json()
    assert promoted["promotedAt"] == report["startedAt"]
    assert (await owner.delete(f"{TOLD}/{tea['id']}")).status_code == 204
    text = (await owner.get(f"{MARCO}/files/MEMORY.md")).json()["content"]
    assert "tea" not in text


def _stamp(diff: str) -> str:
    return next(line for line in diff.splitlines() if line.startswith("+## Dreamed"))


async def test_a_proposal_is_for_admins_to_approve_or_reject(
    here: RestServer, owner: httpx.AsyncClient, marco: dict[str, Any]
) -> None:
    await owner.patch(MARCO, json={"config": {"dreaming": {"review": True}}})
    await learned(here, owner, "Ada likes tea")
    machine = await here.key(owner)
    first = (await machine.post(DREAMS, json={})).json()
    assert first["status"] == "proposed"
    for verb in ("approve", "reject"):
        refused = await machine.post(f"{DREAMS}/{first['id']}/{verb}", json={})
        assert refused.status_code == 403
    rejected = await owner.post(f"{DREAMS}/{first['id']}/reject", json={"reason": "no"})
    assert (rejected.json()["status"], rejected.json()["answer"]) == ("rejected", "no")
    second = (await owner.post(DREAMS, json={})).json()
    await owner.put(f"{MARCO}/files/MEMORY.md", json={"content": "mine\n"})
    stale = await owner.post(f"{DREAMS}/{second['id']}/approve")
    assert (stale.status_code, stale.json()["error"]) == (409, "workspace_conflict")
    third = (await owner.post(DREAMS, json={})).json()
    shown = (await owner.get(f"{DREAMS}/{third['id']}")).json()
    assert shown["diff"] == third["diff"]
    done = await owner.post(f"{DREAMS}/{third['id']}/approve")
    assert (done.status_code, done.json()["status"]) == (200, "done")
    again = await owner.post(f"{DREAMS}/{third['id']}/approve")
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    text = (await owner.get(f"{MARCO}/files/MEMORY.md")).json()["content"]
    assert text.startswith("mine\n\n## Dreamed ")


async def test_nothing_of_another_tenant_or_another_agent_is_within_reach(
    here: RestServer, owner: httpx.AsyncClient, marco: dict[str, Any]
) -> None:
    memory = await told(owner, "Ada likes tea")
    dream = (await owner.post(DREAMS, json={})).json()["id"]
    polo = (await owner.post("/v1/agents", json={"slug": "polo", "name": "Polo"})).json()
    bound = await here.key(owner, kind="agent", agentId=polo["id"])
    stranger = await here.create_tenant("globex")
    for who in (bound, stranger):
        for name in ("marco", marco["id"]):
            at = f"/v1/agents/{name}"
            asks = [
                await who.get(f"{at}/memories", params={"q": "tea"}),
                await who.get(f"{at}/memories"),
                await who.post(f"{at}/memories", json={"content": "mine"}),
                await who.get(f"{at}/memories/{memory['id']}"),
                await who.delete(f"{at}/memories/{memory['id']}"),
                await who.get(f"{at}/dreams"),
                await who.post(f"{at}/dreams", json={}),
                await who.get(f"{at}/dreams/{dream}"),
            ]
            assert [one.status_code for one in asks] == [404] * len(asks)
    for path in (f"memories/{memory['id']}", f"dreams/{dream}"):
        assert (await owner.get(f"/v1/agents/polo/{path}")).status_code == 404
    assert (await bound.post("/v1/agents/polo/memories", json={"content": "x"})).status_code == 201


async def test_a_request_that_is_repeated_is_answered_as_it_was(
    tmp_path: Any, anyio_backend: str
) -> None:
    async with open_rest_server(tmp_path, forgetful=True) as here:
        owner = await here.create_tenant()
        await owner.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
        head = {"Idempotency-Key": "once"}
        first, second = [
            await owner.post(TOLD, json={"content": "tea"}, headers=head) for _ in range(2)
        ]
        assert (first.status_code, second.status_code) == (201, 201)
        assert first.json() == second.json()
        dreams = [await owner.post(DREAMS, json={}, headers=head) for _ in range(2)]
        assert dreams[0].json()["id"] == dreams[1].json()["id"]
        url = f"{TOLD}/{first.json()['id']}"
        gone = [await owner.delete(url, headers=head) for _ in range(2)]
        assert [one.status_code for one in gone] == [204, 204]
