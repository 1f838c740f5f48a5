"""The log of events in SQLite, where a tenant's events lie among those of all others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path as File

import pytest
from tests.support.commits import ACME, AGENT, STRANGER, TEMPLATE, commit, say, start, write

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


async def crowd(store: SqliteStore) -> None:
    """Many events of somebody else."""
    one = await write(store, "x", STRANGER)
    writes = [type(one)(STRANGER, Path(f"{n}"), one.entry) for n in range(MANY)]
    [outcome] = await store.trees.commit([commit(*writes)])
    assert isinstance(outcome, Applied)


async def filled(store: SqliteStore) -> tuple[str, str]:
    """Few events among many; the cursors of the first, and of the last of the strangers."""
    await say(store, "one")
    first = await store.events.latest_cursor()
    await crowd(store)
    await say(store, "two", TEMPLATE)
    await start(store, "run_1")
    await crowd(store)
    last = await store.events.latest_cursor()
    await say(store, "three")
    return first, last


def on_the_loop(store: SqliteStore) -> list[str]:
    """What is asked on the loop's own connection from now on."""
    asked: list[str] = []
    store.reader.db.set_trace_callback(asked.append)
    return asked


def brief(events: tuple[Event, ...]) -> list[tuple[str, str]]:
    return [(event.type, event.scope.kind if event.scope else "") for event in events]


ALL = [
    (WORKSPACE_UPDATED, "agent"),
    (WORKSPACE_UPDATED, "template"),
    (RUN_STARTED, "agent"),
    (WORKSPACE_UPDATED, "agent"),
]


async def test_few_events_among_many_of_others_come_whole_and_in_order(store: SqliteStore) -> None:
    await filled(store)

    events = await store.events.read_after(None, EventFilter(ACME))
    assert brief(events) == ALL
    assert [event.tenant for event in events] == [ACME] * 4
    cursors = [int(event.cursor) for event in events]
    assert cursors == sorted(cursors)
    assert cursors[1] - cursors[0] > MANY < cursors[3] - cursors[2]


async def test_they_come_page_by_page(store: SqliteStore) -> None:
    await filled(store)
    cursor, found = None, []
    while page := await store.events.read_after(cursor, EventFilter(ACME), limit=1):
        cursor = page[-1].cursor
        found += brief(page)
        assert len(page) == 1

    assert found == ALL


async def test_they_are_chosen_by_type_and_scope(store: SqliteStore) -> None:
    first, last = await filled(store)

    async def chosen(cursor: str | None, filter: EventFilter) -> list[tuple[str, str]]:
        return brief(await store.events.read_after(cursor, filter))

    runs, own = frozenset({RUN_STARTED}), frozenset({TEMPLATE})
    assert await chosen(first, EventFilter(ACME)) == ALL[1:]
    assert await chosen(last, EventFilter(ACME)) == ALL[3:]
    assert await chosen(None, EventFilter(ACME, types=runs)) == ALL[2:3]
    assert await chosen(None, EventFilter(ACME, scopes=own)) == ALL[1:2]
    assert await chosen(first, EventFilter(ACME, scopes=frozenset({AGENT}))) == ALL[2:]
    assert await chosen(first, EventFilter(ACME, scopes=frozenset({STRANGER}))) == []
    assert await chosen(None, EventFilter(ACME, run="run_1")) == ALL[2:3]
    assert await chosen(None, EventFilter("nobody")) == []


async def test_a_long_gap_is_read_beside_the_loop_and_a_short_one_on_it(
    store: SqliteStore,
) -> None:
    first, last = await filled(store)
    asked = on_the_loop(store)

    await store.events.read_after(first, EventFilter(ACME))
    assert asked
    assert not [sql for sql in asked if "e.tenant" in sql]
    await store.events.read_after(last, EventFilter(ACME))
    assert len([sql for sql in asked if "e.tenant" in sql]) == 1


async def test_many_who_read_a_long_gap_at_once_all_see_the_same(store: SqliteStore) -> None:
    first, _ = await filled(store)
    readers = [store.events.read_after(first, EventFilter(ACME)) for _ in range(8)]
    pages = await asyncio.gather(*readers, say(store, "meanwhile"))

    for page in pages[:8]:
        assert isinstance(page, tuple)
        assert brief(page)[:3] == ALL[1:]
