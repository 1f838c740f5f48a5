"""The overview over REST: counts of the tenant's agents, and of a member's own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.graphql_client import create_member
from tests.support.server_stores import STORES, open_app_over

from carrel.actions.accounts.credentials import authenticate
from carrel.actions.memory import memories
from carrel.actions.memory.memories import NewMemory
from carrel.core.access import Permission
from carrel.wiring.background import flush_prompt_sizes

pytestmark = pytest.mark.anyio


@pytest.fixture(params=STORES)
async def server(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


async def put(client: httpx.AsyncClient, url: str, text: str) -> None:
    response = await client.put(url, json={"content": text, "acceptTemplateUpdate": True})
    assert response.status_code == 200, response.text


@pytest.fixture
async def owner(server: FullApp) -> httpx.AsyncClient:
    """Owner of three agents; ann and bea follow the template sales."""
    owner = await server.owner()
    await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    await put(owner, "/v1/templates/sales/files/GUARDRAILS.md", "be good")
    for slug, template in (("ann", "sales"), ("bea", "sales"), ("cem", None)):
        new = {"slug": slug, "name": slug.title(), "templateId": template}
        assert (await owner.post("/v1/agents", json=new)).status_code == 201
    return owner


async def overview(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    response = await client.get("/v1/overview", params=query)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


async def test_an_overview_without_agents_has_a_day_for_each_day(server: FullApp) -> None:
    owner = await server.owner()
    result = await overview(owner, days=7)
    assert (result["agents"], result["drift"], result["overrides"]) == (0, [], [])
    assert [len(result[name]) for name in ("runsByDay", "runsByHour", "memories")] == [7, 24, 7]
    assert result["prompts"] == {"byTemplate": [], "byDay": []}


async def test_drift_counts_versions_behind_and_overrides(owner: httpx.AsyncClient) -> None:
    for text in ("be better", "be best"):
        await put(owner, "/v1/templates/sales/files/GUARDRAILS.md", text)
        if text == "be better":
            [pin] = [
                pin
                for pin in (await owner.get("/v1/agents/ann/pins")).json()["items"]
                if pin["path"] == "GUARDRAILS.md"
            ]
            accepted = {"sha256": pin["latestSha256"]}
            await owner.post("/v1/agents/ann/pins/GUARDRAILS.md/accept", json=accepted)
    await put(owner, "/v1/agents/bea/files/GUARDRAILS.md", "of bea's own")
    await put(owner, "/v1/agents/bea/files/SOUL.md", "of bea's own")
    await put(owner, "/v1/agents/bea/files/notes/today.md", "nothing is below")

    result = await overview(owner)
    [rules] = [drift for drift in result["drift"] if drift["path"] == "GUARDRAILS.md"]
    assert rules == {
        **{"path": "GUARDRAILS.md", "upToDate": 1, "older": 0, "notReviewed": 0, "overridden": 1},
        "behind": [{"versions": 1, "agents": 1}, {"versions": 2, "agents": 1}],
    }
    assert result["overrides"] == [
        {"path": "GUARDRAILS.md", "agents": 1},
        {"path": "SOUL.md", "agents": 1},
    ]
    assert (result["agents"], result["waiting"]["pins"]) == (3, 2)


async def test_runs_are_counted_by_their_status_and_their_prompts_by_block(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    for slug, status in (("ann", "failed"), ("bea", "completed"), ("cem", None)):
        body = {"agentId": slug, "include": ["prompt"]}
        run = (await owner.post("/v1/runs", json=body)).json()
        if status:
            await owner.patch(f"/v1/runs/{run['runId']}", json={"status": status})
    await flush_prompt_sizes(server.ports)

    result = await overview(owner)
    today, hour = result["runsByDay"][-1], result["runsByHour"][-1]
    for counts in (today, hour):
        assert (counts["failed"], counts["completed"], counts["running"]) == (1, 1, 1)
    assert result["waiting"]["failedRuns"] == 1
    by_template = result["prompts"]["byTemplate"]
    assert [(row["templateName"], row["runs"]) for row in by_template] == [("Sales", 2), (None, 1)]
    [day] = result["prompts"]["byDay"]
    prompt = (await owner.get("/v1/agents/cem/prompt")).json()
    assert by_template[1]["tokens"] == sum(block["tokens"] for block in prompt["blocks"])
    assert 0 < by_template[1]["stableTokens"] <= by_template[1]["tokens"]
    assert day["runs"] == 3
    assert {block["name"] for block in day["blocks"]} >= {"GUARDRAILS", "SOUL"}


async def test_members_see_counts_of_their_own_agents(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    actor = await authenticate(server.ports, owner.headers["Authorization"].partition(" ")[2])
    for slug in ("ann", "cem"):
        await memories.remember(server.ports, actor, slug, NewMemory("Ada likes tea"))
        await owner.post("/v1/runs", json={"agentId": slug, "include": ["prompt"]})
    await put(owner, "/v1/defaults/files/PLATFORM.md", "another")
    await flush_prompt_sizes(server.ports)
    member = await create_member(server, owner)

    nothing = await overview(member)
    assert (nothing["agents"], nothing["waiting"]["pins"], nothing["drift"]) == (0, 0, [])
    assert nothing["runsByDay"][-1]["running"] == nothing["memories"][-1]["total"] == 0

    people = (await owner.get("/v1/people")).json()["items"]
    [person] = [row["id"] for row in people if row["email"] == "member@example.net"]
    await owner.patch("/v1/agents/cem", json={"ownerId": person})
    own = await overview(member)
    assert (own["agents"], own["waiting"]["pins"]) == (1, 1)
    assert own["runsByDay"][-1]["running"] == own["memories"][-1]["total"] == 1
    assert own["prompts"]["byDay"][0]["runs"] == 1
    everything = await overview(owner)
    assert (everything["agents"], everything["memories"][-1]["total"]) == (3, 2)
    assert (await overview(owner, mine=True))["agents"] == 0


async def test_the_overview_needs_all_permissions_of_what_it_counts(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    for scopes in (
        (Permission.TENANT_READ, Permission.WORKSPACE_READ),
        (Permission.TENANT_READ, Permission.RUNS_READ),
        (Permission.WORKSPACE_READ, Permission.RUNS_READ),
    ):
        key = await server.key(owner, *scopes)
        assert (await key.get("/v1/overview")).status_code == 403
    for query in ("days=0", "days=91", "mine=maybe", "unknown=1"):
        assert (await owner.get(f"/v1/overview?{query}")).status_code == 400
    other = await overview(await server.owner("globex"))
    assert other["agents"] == 0
