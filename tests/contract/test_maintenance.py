"""What every Upkeep must do: answer, hold still, and move house."""

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

from carrel.core.errors import Conflict as Occupied
from carrel.core.maintenance.tables import COLUMNS, KEY_LENGTHS, TABLES
from carrel.core.store.idempotency import Committed, Completed
from carrel.core.store.record import RecordChange, RecordType

pytestmark = pytest.mark.anyio


@pytest.fixture(params=STORES)
def elsewhere(request: pytest.FixtureRequest, tmp_path: File) -> AbstractAsyncContextManager[Ports]:
    """A second store, empty, of the same kind or another."""
    place = StoreLocation(
        tmp_path / "other", lambda: str(request.getfixturevalue("empty_postgres_url"))
    )
    return STORES[request.param](place)


async def poured(tables: dict[str, Rows]) -> AsyncIterator[tuple[str, Rows]]:
    for table, found in tables.items():
        for place in range(0, len(found), 2):
            yield table, found[place : place + 2]


async def test_a_store_that_is_well_answers(ports: Ports) -> None:
    await ports.upkeep.ping()


async def test_every_table_is_shown_row_by_row_in_order_of_its_key(ports: Ports) -> None:
    await populate(ports)

    async with ports.upkeep.snapshot() as view:
        for table, columns in COLUMNS.items():
            batches = [batch async for batch in view.rows(table, 2)]
            found = [tuple(row) for batch in batches for row in batch]
            assert all(0 < len(batch) <= 2 for batch in batches)
            assert len(found) == await view.count(table) > 0, table
            keys = [row[: KEY_LENGTHS[table]] for row in found]
            assert keys == sorted(set(keys)), table
            for row in found:
                assert all(map(isinstance, row, columns.values())), (table, row)


async def test_a_frozen_view_stands_still_while_others_go_on_writing(ports: Ports) -> None:
    await populate(ports)
    before = await rows(ports)

    async with ports.upkeep.snapshot() as view:
        first = [row async for some in view.rows("scope") for row in some]
        await asyncio.gather(*[put_text(ports, f"new {n}") for n in range(8)])
        await start_run(ports, "run_2")
        after = {table: [r async for some in view.rows(table) for r in some] for table in TABLES}

    assert [tuple(row) for row in first] == [tuple(row) for row in before["scope"]]
    for table in TABLES.keys() - {"counter"}:  # which may run ahead of what it counts
        assert [tuple(r) for r in after[table]] == [tuple(r) for r in before[table]]
    assert (await version_numbers(ports))[0] == 13


async def test_a_store_can_move_house(
    ports: Ports, elsewhere: AbstractAsyncContextManager[Ports]
) -> None:
    await populate(ports)
    expected, tables = await read_everything(ports), await rows(ports)
    contents = await ports.blobs.put([LARGE.encode()])

    async with elsewhere as new:
        assert await new.blobs.put([LARGE.encode()]) == contents
        await new.upkeep.load(poured(tables))

        assert await read_everything(new) == expected
        assert isinstance(expected[-2][0], Completed)
        assert isinstance(expected[-2][1], Committed)


async def test_a_store_that_moved_goes_on_counting_where_it_was(
    ports: Ports, elsewhere: AbstractAsyncContextManager[Ports]
) -> None:
    await populate(ports)
    tables = await rows(ports)

    async with elsewhere as new:
        await new.blobs.put([LARGE.encode()])
        await new.upkeep.load(poured(tables))
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
        assert (await new.records.audit(ACME))[0].id > audit[0].id
        assert await new.records.revision() > revision
        await put_text(new, "in the run", run="run_1")
        sequences = [event.sequence for event in await new.events.read_after(None) if event.run]
        assert sequences == [1, 2, 3]


async def test_a_store_that_is_not_empty_is_not_overwritten(ports: Ports) -> None:
    await put_text(ports, "mine")
    tables = await rows(ports)

    with pytest.raises(Occupied):
        await ports.upkeep.load(poured(tables))

    assert await read_texts(ports, AGENT) == {"SOUL.md": "mine"}


async def test_what_cannot_be_loaded_whole_is_not_loaded_at_all(
    ports: Ports, elsewhere: AbstractAsyncContextManager[Ports]
) -> None:
    await populate(ports)
    tables = await rows(ports)

    async def torn() -> AsyncIterator[tuple[str, Rows]]:
        async for table, some in poured(tables):
            if table == "event":
                raise EOFError("the archive ends here")
            yield table, some

    async with elsewhere as new:
        with pytest.raises(EOFError):
            await new.upkeep.load(torn())

        assert await new.trees.revisions([AGENT]) == (0,)
        assert (await put_text(new, "still empty")).version == 1


async def test_a_store_knows_the_steps_by_which_it_got_its_shape(ports: Ports) -> None:
    steps = await ports.upkeep.migrations()

    assert steps
    assert list(steps) == sorted(set(steps))
