"""A page of agents as the console lists it: overrides, updates, last runs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.graphql_client import (
    create,
    create_graphql_tenant,
    create_member,
    execute_query,
    query_data,
    write,
)
from tests.support.server_stores import STORES, open_app_over

from carrel.core.access import Permission

pytestmark = pytest.mark.anyio

ROWS = """query($n: Int!) { agents(first: $n) { next items {
  id slug name isShared template { id name } humanPair { id name }
  overrideCount updatesAvailable lastRun { id status startedAt } } } }"""


@pytest.fixture(params=STORES)
async def server(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


async def rows(client: httpx.AsyncClient) -> dict[str, dict[str, Any]]:
    items = (await query_data(client, ROWS, n=100))["agents"]["items"]
    return {row["slug"]: row for row in items}


async def test_overrides_count_own_files_that_replace_inherited_ones(server: FullApp) -> None:
    owner = await server.owner()
    sample = await create_graphql_tenant(owner)
    await owner.patch("/v1/agents/marco", json={"humanPairId": sample.person})
    files = "/v1/agents/marco/files"
    assert (await rows(owner))["marco"]["overrideCount"] == 0
    await write(owner, f"{files}/SOUL.md", "my own")
    await write(owner, f"{files}/notes/a.md", "overrides nothing")
    assert (await rows(owner))["marco"]["overrideCount"] == 1
    await write(owner, f"{files}/GUARDRAILS.md", "stricter", acceptTemplateUpdate=True)
    await write(owner, "/v1/templates/sales/files/notes/a.md", "now it does")
    assert (await rows(owner))["marco"]["overrideCount"] == 3
    await owner.delete(f"{files}/GUARDRAILS.md")
    await owner.delete(f"{files}/SOUL.md")
    assert (await rows(owner))["marco"]["overrideCount"] == 1


async def test_the_last_run_is_the_agents_newest_run(server: FullApp) -> None:
    owner = await server.owner()
    await create_graphql_tenant(owner)
    await create(owner, "/v1/agents", slug="nora", name="Nora")
    await create(owner, "/v1/agents", slug="idle", name="Idle")
    for agent in ("marco", "nora", "marco"):
        run = (await owner.post("/v1/runs", json={"agentId": agent})).json()
        last = run["runId"] if "runId" in run else run["id"]
        await owner.patch(f"/v1/runs/{last}", json={"status": "failed"})
    by_slug = await rows(owner)
    assert by_slug["idle"]["lastRun"] is None
    assert by_slug["marco"]["lastRun"]["id"] == last
    assert by_slug["marco"]["lastRun"]["status"] == "failed"
    assert by_slug["nora"]["lastRun"]["id"] not in {None, last}


async def test_a_missing_permission_fails_only_its_field(server: FullApp) -> None:
    owner = await server.owner()
    await create_graphql_tenant(owner)
    reader = await server.key(owner, Permission.TENANT_READ, Permission.WORKSPACE_READ)
    answer = await execute_query(reader, ROWS, n=10)
    [row] = answer["data"]["agents"]["items"]
    assert (row["overrideCount"], row["updatesAvailable"], row["lastRun"]) == (0, 0, None)
    [error] = answer["errors"]
    assert (error["path"][-1], error["extensions"]["code"]) == ("lastRun", "FORBIDDEN")
    row = (await rows(await create_member(server, owner)))["marco"]
    assert (row["overrideCount"], row["updatesAvailable"], row["lastRun"]) == (None, None, None)
