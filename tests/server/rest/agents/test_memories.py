"""Memories and dreams of agents over REST."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.support.rest_client import RestServer, open_rest_server

from carrel.actions.memory import memories
from carrel.core.access import Actor

pytestmark = pytest.mark.anyio
MARCO = "/v1/agents/marco"
MEMORIES, DREAMS = f"{MARCO}/memories", f"{MARCO}/dreams"


@pytest.fixture
async def marco(owner: httpx.AsyncClient) -> dict[str, Any]:
    created = await owner.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
    assert created.status_code == 201, created.text
    agent: dict[str, Any] = created.json()
    return agent


async def remember(owner: httpx.AsyncClient, content: str, **more: Any) -> dict[str, Any]:
    created = await owner.post(MEMORIES, json={"content": content, **more})
    assert created.status_code == 201, created.text
    memory: dict[str, Any] = created.json()
    return memory


async def learn(server: RestServer, owner: httpx.AsyncClient, content: str) -> dict[str, Any]:
    """Create a memory and recall it often enough to be promoted."""
    memory = await remember(owner, content)
    actor = Actor((await owner.get("/v1/tenants/me")).json()["id"], "marco")
    for query in (content, f"{content}?", f"{content}!"):
        await memories.recall(server.ports, actor, "marco", query + query[0], limit=1)
    return memory


async def test_a_memory_is_created_once_listed_read_and_deleted(
    owner: httpx.AsyncClient, marco: dict[str, Any]
) -> None:
    memory = await remember(owner, "Ada likes\ntea", tags=["drinks"], kind="user")
    assert memory["content"] == "Ada likes tea"
    assert (memory["scope"], memory["tags"], memory["kind"]) == ("main", ["drinks"], "user")
    assert (memory["conceptTags"], memory["promotedAt"]) == (["ada", "likes", "tea"], None)
    again = await owner.post(MEMORIES, json={"content": "Ada likes tea"})
    assert (again.status_code, again.json()) == (200, memory)
    listed = (await owner.get(MEMORIES)).json()
    assert listed == {"items": [memory], "next": None, "total": 1}
    assert (await owner.get(f"{MEMORIES}/{memory['id']}")).json() == memory
    assert (await owner.delete(f"{MEMORIES}/{memory['id']}")).status_code == 204
    assert (await owner.delete(f"{MEMORIES}/{memory['id']}")).status_code == 404


async def test_memories_are_found_by_words_without_recording_a_recall(
    server: RestServer, owner: httpx.AsyncClient, marco: dict[str, Any]
) -> None:
    await remember(owner, "Señora López likes tea")
    await remember(owner, "unrelated")
    [item] = (await owner.get(MEMORIES, params={"q": "lop te"})).json()["items"]
    assert (item["content"], item["score"]) == ("Señora López likes tea", 1.0)
    for query in ("", "!!!", "\0"):
        assert (await owner.get(MEMORIES, params={"q": query})).json()["items"] == []
    tenant = (await owner.get("/v1/tenants/me")).json()["id"]
    assert await server.ports.recalls.stats_by_memory(tenant, marco["id"]) == ()


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
async def test_an_invalid_memory_returns_400(
    owner: httpx.AsyncClient, marco: dict[str, Any], body: dict[str, Any]
) -> None:
    answer = await owner.post(MEMORIES, json=body)
    assert (answer.status_code, answer.json()["error"]) == (400, "validation_error")


async def test_an_unknown_scope_is_shared(owner: httpx.AsyncClient, marco: dict[str, Any]) -> None:
    assert (await remember(owner, "one", scope="party"))["scope"] == "shared"
    assert (await remember(owner, "two", scope="shared"))["scope"] == "shared"


async def test_a_dream_reports_promotions_and_the_reasons_of_rejections(
    server: RestServer, owner: httpx.AsyncClient, marco: dict[str, Any]
) -> None:
    tea = await learn(server, owner, "Ada likes tea")
    await remember(owner, "Bob prefers milk")
    actor = Actor((await owner.get("/v1/tenants/me")).json()["id"], "marco")
    await memories.recall(server.ports, actor, "marco", "milk")

    dry = (await owner.post(DREAMS, json={"dryRun": True})).json()
    assert (dry["dryRun"], dry["id"], dry["promotedCount"]) == (True, "", 1)
    assert (await owner.get(DREAMS)).json()["items"] == []

    done = await owner.post(DREAMS, json={})
    assert done.status_code == 200, done.text
    report = done.json()
    assert [item["memoryId"] for item in report["promoted"]] == [tea["id"]]
    [rejected] = report["rejected"]
    assert (rejected["reason"], rejected["content"]) == ("hits", "Bob prefers milk")
    assert rejected["message"] == "recalled 1 times; 3 required"
    assert report["reasons"] == {"hits": 1}
    assert report["diff"] == dry["diff"].replace(_stamp(dry["diff"]), _stamp(report["diff"]))
    text = (await owner.get(f"{MARCO}/files/MEMORY.md")).json()["content"]
    assert "- Ada likes tea _(score=0.73, hits=3, days=1)_" in text
    [row] = (await owner.get(DREAMS)).json()["items"]
    assert row["id"] == report["id"]
    dream = (await owner.get(f"{DREAMS}/{report['id']}")).json()
    assert [item["content"] for item in dream["promoted"]] == ["Ada likes tea"]
    promoted = (await owner.get(f"{MEMORIES}/{tea['id']}")).json()
    assert promoted["promotedAt"] == report["startedAt"]
    assert (await owner.delete(f"{MEMORIES}/{tea['id']}")).status_code == 204
    text = (await owner.get(f"{MARCO}/files/MEMORY.md")).json()["content"]
    assert "tea" not in text


def _stamp(diff: str) -> str:
    return next(line for line in diff.splitlines() if line.startswith("+## Dreamed"))


async def test_a_proposal_is_for_admins_to_approve_or_reject(
    server: RestServer, owner: httpx.AsyncClient, marco: dict[str, Any]
) -> None:
    await owner.patch(MARCO, json={"config": {"dreaming": {"review": True}}})
    await learn(server, owner, "Ada likes tea")
    machine = await server.key(owner)
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
    dream = (await owner.get(f"{DREAMS}/{third['id']}")).json()
    assert dream["diff"] == third["diff"]
    done = await owner.post(f"{DREAMS}/{third['id']}/approve")
    assert (done.status_code, done.json()["status"]) == (200, "done")
    again = await owner.post(f"{DREAMS}/{third['id']}/approve")
    assert (again.status_code, again.json()["error"]) == (409, "conflict")
    text = (await owner.get(f"{MARCO}/files/MEMORY.md")).json()["content"]
    assert text.startswith("mine\n\n## Dreamed ")


async def test_memories_of_another_tenant_or_agent_are_404(
    server: RestServer, owner: httpx.AsyncClient, marco: dict[str, Any]
) -> None:
    memory = await remember(owner, "Ada likes tea")
    dream = (await owner.post(DREAMS, json={})).json()["id"]
    polo = (await owner.post("/v1/agents", json={"slug": "polo", "name": "Polo"})).json()
    bound = await server.key(owner, kind="agent", agentId=polo["id"])
    other_owner = await server.create_tenant("globex")
    for client in (bound, other_owner):
        for name in ("marco", marco["id"]):
            agent_url = f"/v1/agents/{name}"
            responses = [
                await client.get(f"{agent_url}/memories", params={"q": "tea"}),
                await client.get(f"{agent_url}/memories"),
                await client.post(f"{agent_url}/memories", json={"content": "mine"}),
                await client.get(f"{agent_url}/memories/{memory['id']}"),
                await client.delete(f"{agent_url}/memories/{memory['id']}"),
                await client.get(f"{agent_url}/dreams"),
                await client.post(f"{agent_url}/dreams", json={}),
                await client.get(f"{agent_url}/dreams/{dream}"),
            ]
            assert [response.status_code for response in responses] == [404] * len(responses)
    for path in (f"memories/{memory['id']}", f"dreams/{dream}"):
        assert (await owner.get(f"/v1/agents/polo/{path}")).status_code == 404
    assert (await bound.post("/v1/agents/polo/memories", json={"content": "x"})).status_code == 201


async def test_a_repeated_request_gets_the_same_response(tmp_path: Any, anyio_backend: str) -> None:
    async with open_rest_server(tmp_path, forgetful=True) as server:
        owner = await server.create_tenant()
        await owner.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
        head = {"Idempotency-Key": "once"}
        first, second = [
            await owner.post(MEMORIES, json={"content": "tea"}, headers=head) for _ in range(2)
        ]
        assert (first.status_code, second.status_code) == (201, 201)
        assert first.json() == second.json()
        dreams = [await owner.post(DREAMS, json={}, headers=head) for _ in range(2)]
        assert dreams[0].json()["id"] == dreams[1].json()["id"]
        url = f"{MEMORIES}/{first.json()['id']}"
        gone = [await owner.delete(url, headers=head) for _ in range(2)]
        assert [response.status_code for response in gone] == [204, 204]
