"""Comparisons over REST: responses, bad references and private agents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.server.private_agent import PrivateAgent, create_private_agent
from tests.support.full_app import FullApp, open_full_app

pytestmark = pytest.mark.anyio


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def private(server: FullApp) -> PrivateAgent:
    return await create_private_agent(server)


async def compare(client: httpx.AsyncClient, **query: Any) -> httpx.Response:
    return await client.get("/v1/compare", params=query)


async def test_a_side_of_a_private_agent_is_open_to_those_who_may_open_its_files(
    private: PrivateAgent,
) -> None:
    agent, run = f"agent:{private.agent}", f"run:{private.run}"
    for caller, client in private.callers.items():
        files = await client.get(f"/v1/agents/{private.agent}/prompt")
        runs = await client.get(f"/v1/runs/{private.run}/files")
        assert (await compare(client, left=agent, right=agent)).is_success is files.is_success, (
            caller
        )
        assert (await compare(client, left=run, right=run)).is_success is runs.is_success, caller
        both = await compare(client, left=agent, right=run)
        assert both.is_success is (files.is_success and runs.is_success), (caller, both.text)
    outcomes = {
        (await compare(client, left=agent, right=agent)).status_code
        for client in private.callers.values()
    }
    assert 200 in outcomes
    assert outcomes & {403, 404}


async def test_a_comparison_names_its_sides_and_counts_all_pages(server: FullApp) -> None:
    client = await server.owner()
    for slug in ("kate", "marco"):
        assert (await client.post("/v1/agents", json={"slug": slug, "name": slug})).is_success
    note = {"content": "mine\n"}
    assert (await client.put("/v1/agents/kate/files/notes/a.md", json=note)).is_success

    answer = await compare(
        client, left="agent:kate", right="agent:marco", raw="true", status="only-left", diff="true"
    )
    body = answer.json()
    assert (body["left"]["kind"], body["left"]["name"]) == ("agent", "kate")
    assert body["counts"]["onlyLeft"] == 1
    assert body["counts"]["same"] > 5
    [item] = body["items"]
    assert (item["path"], item["status"], item["right"]) == ("notes/a.md", "only-left", None)
    assert item["diff"].endswith("-mine\n")
    assert item["left"]["version"] == 1
    assert body["next"] is None


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"left": "agent:kate"},
        {"left": "kate", "right": "defaults"},
        {"left": "defaults", "right": "defaults", "status": "better"},
        {"left": "defaults", "right": "defaults", "limit": "0"},
        {"left": "defaults", "right": "defaults", "more": "1"},
        {"left": "defaults@2026-99-01T00:00:00Z", "right": "defaults"},
    ],
)
async def test_bad_comparisons_are_refused(server: FullApp, query: dict[str, str]) -> None:
    assert (await compare(await server.owner(), **query)).status_code == 400


async def test_what_does_not_exist_is_not_found(server: FullApp) -> None:
    client = await server.owner()
    for side in ("agent:nobody", "template:none", "run:run_none", "workspace:ws_none"):
        assert (await compare(client, left=side, right="defaults")).status_code == 404, side
