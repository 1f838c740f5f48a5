"""The event log in SQLite, where a tenant's events are among those of all others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path as File

import pytest
from tests.support.commits import (
    ACME,
    AGENT,
    FOREIGN_AGENT,
    TEMPLATE,
    commit,
    put_text,
    start_run,
    write,
)

from carrel.adapters.sqlite import SqliteStore, open_store
from carrel.core.identifiers import Path
from carrel.core.store.commit import Applied
from carrel.core.store.event import RUN_STARTED, WORKSPACE_UPDATED, Event, EventFilter

pytestmark = pytest.mark.anyio

MANY = 2_500


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def store(tmp_path: File) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "carrel.db") as opened:
        yield opened


async def add_foreign_events(store: SqliteStore) -> None:
    """Add many events of another tenant."""
    sample = await write(store, "x", FOREIGN_AGENT)
    writes = [type(sample)(FOREIGN_AGENT, Path(f"{n}"), sample.entry) for n in range(MANY)]
    [outcome] = await store.trees.commit([commit(*writes)])
    assert isinstance(outcome, Applied)


async def filled(store: SqliteStore) -> tuple[str, str]:
    """Add few events among many; return the cursors of the first and of the last foreign one."""
    await put_text(store, "one")
    first = await store.events.latest_cursor()
    await add_foreign_events(store)
    await put_text(store, "two", TEMPLATE)
    await start_run(store, "run_1")
    await add_foreign_events(store)
    last = await store.events.latest_cursor()
    await put_text(store, "three")
    return first, last


def queries_on_the_loop(store: SqliteStore) -> list[str]:
    """Record the queries on the loop's own connection from now on."""
    queries: list[str] = []
    store.reader.db.set_trace_callback(queries.append)
    return queries


def brief(events: tuple[Event, ...]) -> list[tuple[str, str]]:
    return [(event.type, event.scope.kind if event.scope else "") for event in events]


ALL = [
    (WORKSPACE_UPDATED, "agent"),
    (WORKSPACE_UPDATED, "template"),
    (RUN_STARTED, "agent"),
    (WORKSPACE_UPDATED, "agent"),
]


async def test_events_among_many_foreign_ones_are_complete_and_in_order(store: SqliteStore) -> None:
    await filled(store)

    events = await store.events.read_after(None, EventFilter(ACME))
    assert brief(events) == ALL
    assert [event.tenant for event in events] == [ACME] * 4
    cursors = [int(event.cursor) for event in events]
    assert cursors == sorted(cursors)
    assert cursors[1] - cursors[0] > MANY < cursors[3] - cursors[2]


async def test_events_are_read_page_by_page(store: SqliteStore) -> None:
    await filled(store)
    cursor, events = None, []
    while page := await store.events.read_after(cursor, EventFilter(ACME), limit=1):
        cursor = page[-1].cursor
        events += brief(page)
        assert len(page) == 1

    assert events == ALL


async def test_events_are_filtered_by_type_and_scope(store: SqliteStore) -> None:
    first, last = await filled(store)

    async def filtered(cursor: str | None, filter: EventFilter) -> list[tuple[str, str]]:
        return brief(await store.events.read_after(cursor, filter))

    runs, own = frozenset({RUN_STARTED}), frozenset({TEMPLATE})
    assert await filtered(first, EventFilter(ACME)) == ALL[1:]
    assert await filtered(last, EventFilter(ACME)) == ALL[3:]
    assert await filtered(None, EventFilter(ACME, types=runs)) == ALL[2:3]
    assert await filtered(None, EventFilter(ACME, scopes=own)) == ALL[1:2]
    assert await filtered(first, EventFilter(ACME, scopes=frozenset({AGENT}))) == ALL[2:]
    assert await filtered(first, EventFilter(ACME, scopes=frozenset({FOREIGN_AGENT}))) == []
    assert await filtered(None, EventFilter(ACME, run="run_1")) == ALL[2:3]
    assert await filtered(None, EventFilter("unknown")) == []


async def test_long_gap_is_read_in_a_thread_and_a_short_one_on_the_loop(
    store: SqliteStore,
) -> None:
    first, last = await filled(store)
    queries = queries_on_the_loop(store)

    await store.events.read_after(first, EventFilter(ACME))
    assert queries
    assert not [sql for sql in queries if "e.tenant" in sql]
    await store.events.read_after(last, EventFilter(ACME))
    assert len([sql for sql in queries if "e.tenant" in sql]) == 1


async def test_concurrent_readers_of_a_long_gap_see_the_same_events(store: SqliteStore) -> None:
    first, _ = await filled(store)
    readers = [store.events.read_after(first, EventFilter(ACME)) for _ in range(8)]
    pages = await asyncio.gather(*readers, put_text(store, "meanwhile"))

    for page in pages[:8]:
        assert isinstance(page, tuple)
        assert brief(page)[:3] == ALL[1:]
