"""Commits, moves and directories over REST on PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.server.rest.files import test_commit_limits, test_commits, test_moves
from tests.support.full_app import FullApp, create_rest_app
from tests.support.rest_tenant import create_overlay_agent
from tests.support.stores import ports_over

from carrel.adapters.postgres import open_store

pytestmark = pytest.mark.anyio

ROOTS = ("workspaces/team", "agents/marco", "templates/sales")


@pytest.fixture
async def server(postgres_url: str) -> AsyncIterator[FullApp]:
    async with open_store(postgres_url) as store:
        ports = ports_over(store)
        yield FullApp(ports, create_rest_app(ports))


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    await create_overlay_agent(owner)
    return owner


async def test_commits_are_whole_or_refused_by_name(ada: httpx.AsyncClient) -> None:
    for root in ROOTS:
        await test_commits.test_a_commit_puts_deletes_moves_and_copies_at_once(ada, root)
    await test_commits.test_every_failed_condition_is_named_and_nothing_is_written(
        ada, "host/workspace"
    )
    await test_commit_limits.test_every_path_that_is_not_free_is_named_beside_failed_conditions(
        ada, "agents/marco"
    )
    await test_commits.test_a_commit_of_an_agent_obeys_the_rules_of_single_writes(ada)
    await test_commits.test_a_file_may_take_the_place_of_a_directory_in_one_commit(ada)


async def test_a_lost_response_is_built_again(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await test_commits.test_a_commit_retried_after_a_crash_gets_the_lost_response(
        server, ada, monkeypatch, "agents/marco"
    )


@pytest.mark.parametrize("root", ROOTS)
async def test_moved_files_keep_their_history(ada: httpx.AsyncClient, root: str) -> None:
    await test_moves.test_an_empty_directory_exists_until_it_is_removed(ada, root)
    await test_moves.test_the_history_of_a_moved_file_goes_on_at_its_earlier_paths(ada, root)


async def test_a_thousand_paths_are_one_commit_and_one_move(ada: httpx.AsyncClient) -> None:
    root = "agents/marco"
    writes: list[dict[str, Any]] = [
        {"op": "put", "path": f"notes/old/{n}.md", "content": str(n)} for n in range(1000)
    ]
    committed = await test_commits.commit(ada, root, *writes)
    assert committed.status_code == 200, committed.text
    moved = await test_moves.move(ada, root, "notes/old", "notes/new")
    assert moved.json()["revision"] == committed.json()["revision"] + 1
    ids = [{row["fileId"] for row in answer.json()["results"]} for answer in (committed, moved)]
    assert ids[0] == ids[1]
    assert len(ids[0]) == 1000
