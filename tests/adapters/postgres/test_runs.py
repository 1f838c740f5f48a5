"""Runs that start while PostgreSQL prunes versions they are about to read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from carrel.adapters.postgres import PostgresStore, open_store
from carrel.adapters.postgres.advisory_locks import lock_number, scope_lock_name
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.store.commit import Applied, Commit, Write
from carrel.core.store.entry import Entry

pytestmark = pytest.mark.anyio

NOW = 1_800_000_000_000
AGENT = Scope("acme", ScopeKind.AGENT, "marco")
TEMPLATE = Scope("acme", ScopeKind.TEMPLATE, "sales")
PATH = Path("SOUL.md")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def stores(postgres_url: str) -> AsyncIterator[tuple[PostgresStore, PostgresStore]]:
    async with open_store(postgres_url) as first, open_store(postgres_url) as second:
        yield first, second


async def write(store: PostgresStore, text: str) -> None:
    [blob] = await store.blobs.put([text.encode()])
    writes = tuple(Write(scope, PATH, Entry(blob)) for scope in (AGENT, TEMPLATE))
    [outcome] = await store.trees.commit([Commit(writes, "ada", "", NOW, max_versions=1)])
    assert isinstance(outcome, Applied)


async def start(store: PostgresStore, id: str) -> Run:
    new_run = Run(id, "acme", AGENT, "noop", Audience.MAIN, RunStatus.RUNNING, "ada", NOW)
    [run] = await store.runs.start([(new_run, (AGENT, TEMPLATE))])
    return run


async def test_run_loses_no_version_to_a_commit_that_prunes(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    writing, starting = stores
    await write(writing, "first")

    async def writer() -> None:
        for n in range(150):
            await write(writing, f"text {n}")

    async def starter(writes: asyncio.Task[None], name: str) -> list[Run]:
        runs: list[Run] = []
        while not writes.done():
            runs.append(await start(starting, f"run_{name}{len(runs)}"))
        return runs

    writes = asyncio.create_task(writer())
    started = await asyncio.gather(*[starter(writes, name) for name in "abc"])

    for run in (run for runs in started for run in runs):
        first, second = await starting.trees.read(run.snapshot)
        assert first.revision == second.revision
        assert first.entry(PATH) == second.entry(PATH) is not None


async def test_run_waits_for_a_commit_that_may_prune_its_versions(
    stores: tuple[PostgresStore, PostgresStore], postgres_url: str
) -> None:
    await write(stores[0], "first")
    connection = await asyncpg.connect(postgres_url)
    async with connection.transaction():
        lock = lock_number(scope_lock_name(TEMPLATE))
        await connection.execute("SELECT acquire_locks(ARRAY[$1::bigint], '{t}')", lock)
        starting = asyncio.create_task(start(stores[1], "run_1"))
        done, _ = await asyncio.wait([starting], timeout=0.2)
        assert not done
        await connection.execute("UPDATE scope SET revision = 7")
    await connection.close()

    run = await starting
    assert [layer.revision for layer in run.snapshot] == [7, 7]
