"""Contract of MaintenanceStore: ping, snapshots, and load into another store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path as File

import pytest
from msgspec.structs import replace
from tests.support.commits import (
    ACME,
    AGENT,
    TEMPLATE,
    commit,
    put_text,
    read_texts,
    start_run,
    version_numbers,
)
from tests.support.contract_stores import STORES, Ports, StoreLocation
from tests.support.populated_store import (
    LARGE,
    Rows,
    populate,
    read_everything,
    rows,
)

from carrel.core.errors import Conflict as StoreNotEmpty
from carrel.core.maintenance.tables import COLUMNS, KEY_LENGTHS, TABLES
from carrel.core.store.idempotency import Committed, Completed
from carrel.core.store.record import RecordChange, RecordType

pytestmark = pytest.mark.anyio


@pytest.fixture(params=STORES)
def other_store(
    request: pytest.FixtureRequest, tmp_path: File
) -> AbstractAsyncContextManager[Ports]:
    """A second, empty store of the same kind or another."""
    place = StoreLocation(
        tmp_path / "other", lambda: str(request.getfixturevalue("empty_postgres_url"))
    )
    return STORES[request.param](place)


async def batches(tables: dict[str, Rows]) -> AsyncIterator[tuple[str, Rows]]:
    for table, table_rows in tables.items():
        for first in range(0, len(table_rows), 2):
            yield table, table_rows[first : first + 2]


async def test_a_healthy_store_answers_ping(ports: Ports) -> None:
    await ports.upkeep.ping()


async def test_every_table_is_read_in_batches_in_key_order(ports: Ports) -> None:
    await populate(ports)

    async with ports.upkeep.snapshot() as view:
        for table, columns in COLUMNS.items():
            row_batches = [batch async for batch in view.rows(table, 2)]
            all_rows = [tuple(row) for batch in row_batches for row in batch]
            assert all(0 < len(batch) <= 2 for batch in row_batches)
            assert len(all_rows) == await view.count(table) > 0, table
            keys = [row[: KEY_LENGTHS[table]] for row in all_rows]
            assert keys == sorted(set(keys)), table
            for row in all_rows:
                assert all(map(isinstance, row, columns.values())), (table, row)


async def test_a_snapshot_is_unaffected_by_concurrent_writes(ports: Ports) -> None:
    await populate(ports)
    before = await rows(ports)

    async with ports.upkeep.snapshot() as view:
        first = [row async for batch in view.rows("scope") for row in batch]
        await asyncio.gather(*[put_text(ports, f"new {n}") for n in range(8)])
        await start_run(ports, "run_2")
        after = {table: [r async for batch in view.rows(table) for r in batch] for table in TABLES}

    assert [tuple(row) for row in first] == [tuple(row) for row in before["scope"]]
    for table in TABLES.keys() - {"counter"}:  # a counter may be ahead of the rows
        assert [tuple(r) for r in after[table]] == [tuple(r) for r in before[table]]
    assert (await version_numbers(ports))[0] == 13


async def test_a_store_can_be_loaded_into_another(
    ports: Ports, other_store: AbstractAsyncContextManager[Ports]
) -> None:
    await populate(ports)
    expected, tables = await read_everything(ports), await rows(ports)
    contents = await ports.blobs.put([LARGE.encode()])

    async with other_store as new:
        assert await new.blobs.put([LARGE.encode()]) == contents
        await new.upkeep.load(batches(tables))

        assert await read_everything(new) == expected
        assert isinstance(expected[-2][0], Completed)
        assert isinstance(expected[-2][1], Committed)


async def test_a_loaded_store_continues_its_counters(
    ports: Ports, other_store: AbstractAsyncContextManager[Ports]
) -> None:
    await populate(ports)
    tables = await rows(ports)

    async with other_store as new:
        await new.blobs.put([LARGE.encode()])
        await new.upkeep.load(batches(tables))
        before = await new.events.read_after(None)
        audit, revision = await new.records.audit(ACME), await new.records.revision()

        head = await put_text(new, "after the move")
        other = await put_text(new, "elsewhere", replace(AGENT, name="new"))
        await new.trees.commit(
            [commit(changes=(RecordChange(ACME, RecordType.PERSON, "bob", {}),))]
        )

        assert (head.version, head.revision, other.version) == (6, 7, 1)
        assert await read_texts(new, TEMPLATE) == {"SOUL.md": "text 3"}
        assert (await read_texts(new, AGENT))["SOUL.md"] == "after the move"
        later = await new.events.read_after(before[-1].cursor)
        assert [event.payload for event in later] == [
            {"path": "SOUL.md", "version": 6},
            {"path": "SOUL.md", "version": 1},
            {"noun": "person", "id": "bob"},
        ]
        assert not {event.id for event in later} & {event.id for event in before}
        assert (await new.records.audit(ACME))[0].id not in {entry.id for entry in audit}
        assert await new.records.revision() > revision
        await put_text(new, "in the run", run="run_1")
        sequences = [event.sequence for event in await new.events.read_after(None) if event.run]
        assert sequences == [1, 2, 3]


async def test_loading_into_a_store_with_data_is_refused(ports: Ports) -> None:
    await put_text(ports, "mine")
    tables = await rows(ports)

    with pytest.raises(StoreNotEmpty):
        await ports.upkeep.load(batches(tables))

    assert await read_texts(ports, AGENT) == {"SOUL.md": "mine"}


async def test_a_load_that_fails_leaves_the_store_empty(
    ports: Ports, other_store: AbstractAsyncContextManager[Ports]
) -> None:
    await populate(ports)
    tables = await rows(ports)

    async def torn() -> AsyncIterator[tuple[str, Rows]]:
        async for table, batch in batches(tables):
            if table == "event":
                raise EOFError("the archive ends here")
            yield table, batch

    async with other_store as new:
        with pytest.raises(EOFError):
            await new.upkeep.load(torn())

        assert await new.trees.revisions([AGENT]) == (0,)
        assert (await put_text(new, "still empty")).version == 1


async def test_a_store_lists_its_applied_migrations(ports: Ports) -> None:
    steps = await ports.upkeep.migrations()

    assert steps
    assert list(steps) == sorted(set(steps))
