"""What every Upkeep must do: hold still, move house, and throw away only what nobody wants."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import pytest
from tests.contract.scenes import (
    ACME,
    AGENT,
    SOUL,
    TEMPLATE,
    commit,
    numbers,
    say,
    start,
    texts,
    write,
)
from tests.contract.worlds import STORES, Place, World

from carrel.core.archive import COLUMNS, KEYS, TABLES
from carrel.core.delivery import Attempt, Delivery, Posted, State
from carrel.core.errors import Taken as Occupied
from carrel.core.names import Path, Scope
from carrel.core.receipt import Marked, Receipt, Settled, Taken
from carrel.core.record import Change, Noun
from carrel.core.run import Layer
from carrel.core.tree import Entry, ReceiptKey, Write
from carrel.ports import Upkeep

pytestmark = pytest.mark.anyio

NOW = time.time_ns() // 1_000_000
SECOND, HOUR = 1000, 3600 * 1000
DAY = 24 * HOUR
LARGE = "large " * 20_000
ANSWER = Receipt(200, "sealed")
REQUESTS = [ReceiptKey(ACME, "PUT", f"key-{n}") for n in range(3)]
Rows = Sequence[Sequence[Any]]


KEPT = [name for name in STORES if name != "memory"]


@pytest.fixture(params=KEPT)
async def world(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[World]:
    async with STORES[request.param](place) as opened:
        yield opened


@pytest.fixture(params=KEPT)
def elsewhere(request: pytest.FixtureRequest, tmp_path: File) -> AbstractAsyncContextManager[World]:
    """A second store, empty, of the same kind or another."""
    place = Place(tmp_path / "other", lambda: str(request.getfixturevalue("empty_postgres_url")))
    return STORES[request.param](place)


def upkeep(world: World) -> Upkeep:
    assert world.upkeep
    return world.upkeep


async def tidy(world: World, now: int = NOW, grace: int = 0, events_kept: int = DAY) -> int:
    """Collect, and say how much went in all."""
    gone = await upkeep(world).collect(now, grace, events_kept)
    return sum(gone.values())


async def rows(world: World) -> dict[str, Rows]:
    async with upkeep(world).frozen() as view:
        return {table: [r async for some in view.rows(table) for r in some] for table in TABLES}


async def poured(tables: dict[str, Rows]) -> AsyncIterator[tuple[str, Rows]]:
    for table, found in tables.items():
        for place in range(0, len(found), 2):
            yield table, found[place : place + 2]


async def live_in(world: World) -> None:
    """Leave something in every table."""
    for n, key in enumerate(REQUESTS):
        assert await world.receipts.claim(key, f"f{n}", NOW, 0) == Taken()
    await world.receipts.settle(REQUESTS[0], ANSWER)
    for n in range(4):
        await say(world, f"text {n}", at=NOW, receipt=REQUESTS[1] if n == 2 else None)
    run = await start(world, "run_1", AGENT, TEMPLATE)
    await say(world, LARGE, path=Path("large.md"), at=NOW, run=run.id)
    [tree] = await world.trees.read([AGENT], [SOUL])
    beneath = tree.entry(SOUL)
    assert beneath
    pin = Write(TEMPLATE, SOUL, Entry(beneath.blob, beneath.blob, "text/plain"))
    person = Change(ACME, Noun.PERSON, "ada", {"name": "Ada ✓"}, handles=("h",), links=("l",))
    await world.trees.commit([commit(pin, at=NOW, changes=(person,), by="ada", why="é")])
    await say(world, None, at=NOW)
    await world.records.used({"k1": NOW})
    [_, second, *_] = await world.events.after(None)
    posted = Delivery("dl_1", ACME, "wh_1", "t", b"\x00body", State.PENDING, NOW, NOW)
    assert await world.deliveries.enqueue(None, second.cursor, [posted])
    await world.deliveries.settle([(replace(posted, tries=1), Attempt(NOW, Posted(500, "x", 3)))])


async def portrait(world: World) -> list[Any]:
    """All that can be asked of a store, in one value."""
    [run] = await world.runs.get(ACME, ["run_1"])
    assert run
    events = await world.events.after(None)
    layers: list[Scope | Layer] = [AGENT, TEMPLATE, *run.snapshot]
    return [
        await world.trees.read(layers),
        [await texts(world, layer) for layer in layers],
        [await world.trees.history(scope, SOUL) for scope in (AGENT, TEMPLATE)],
        run,
        [replace(event, cursor="") for event in events],
        len(await world.events.after(await world.deliveries.mark())),
        await world.records.list(ACME, Noun.PERSON, link="l"),
        await world.records.named(["h"]),
        await world.records.shelves([(ACME, Noun.PERSON)]),
        await world.records.revision(),
        await world.records.audit(ACME),
        await world.records.last_used(["k1"]),
        [await world.receipts.claim(key, f"f{n}", NOW, 0) for n, key in enumerate(REQUESTS)],
        await world.deliveries.list(ACME, "wh_1"),
    ]


async def test_a_store_that_is_well_answers(world: World) -> None:
    await upkeep(world).ping()


async def test_every_table_is_shown_row_by_row_in_order_of_its_key(world: World) -> None:
    await live_in(world)

    async with upkeep(world).frozen() as view:
        for table, columns in COLUMNS.items():
            batches = [batch async for batch in view.rows(table, 2)]
            found = [tuple(row) for batch in batches for row in batch]
            assert all(0 < len(batch) <= 2 for batch in batches)
            assert len(found) == await view.count(table) > 0, table
            keys = [row[: KEYS[table]] for row in found]
            assert keys == sorted(set(keys)), table
            for row in found:
                assert all(map(isinstance, row, columns.values())), (table, row)


async def test_a_frozen_view_stands_still_while_others_go_on_writing(world: World) -> None:
    await live_in(world)
    before = await rows(world)

    async with upkeep(world).frozen() as view:
        first = [row async for some in view.rows("scope") for row in some]
        await asyncio.gather(*[say(world, f"new {n}") for n in range(8)])
        await start(world, "run_2")
        after = {table: [r async for some in view.rows(table) for r in some] for table in TABLES}

    assert [tuple(row) for row in first] == [tuple(row) for row in before["scope"]]
    for table in TABLES.keys() - {"counter"}:  # which may run ahead of what it counts
        assert [tuple(r) for r in after[table]] == [tuple(r) for r in before[table]]
    assert (await numbers(world))[0] == 13


async def test_a_store_can_move_house(
    world: World, elsewhere: AbstractAsyncContextManager[World]
) -> None:
    await live_in(world)
    expected, tables = await portrait(world), await rows(world)
    contents = await world.blobs.put([LARGE.encode()])

    async with elsewhere as new:
        assert await new.blobs.put([LARGE.encode()]) == contents
        await upkeep(new).load(poured(tables))

        assert await portrait(new) == expected
        assert isinstance(expected[-2][0], Settled)
        assert isinstance(expected[-2][1], Marked)


async def test_a_store_that_moved_goes_on_counting_where_it_was(
    world: World, elsewhere: AbstractAsyncContextManager[World]
) -> None:
    await live_in(world)
    tables = await rows(world)

    async with elsewhere as new:
        await new.blobs.put([LARGE.encode()])
        await upkeep(new).load(poured(tables))
        before = await new.events.after(None)
        audit, revision = await new.records.audit(ACME), await new.records.revision()

        head = await say(new, "after the move")
        other = await say(new, "elsewhere", replace(AGENT, name="new"))
        await new.trees.commit([commit(changes=(Change(ACME, Noun.PERSON, "bob", {}),))])

        assert (head.version, head.revision, other.version) == (6, 7, 1)
        assert await texts(new, TEMPLATE) == {"SOUL.md": "text 3"}
        assert (await texts(new, AGENT))["SOUL.md"] == "after the move"
        later = await new.events.after(before[-1].cursor)
        assert [event.payload["path"] for event in later] == ["SOUL.md", "SOUL.md"]
        assert not {event.id for event in later} & {event.id for event in before}
        assert (await new.records.audit(ACME))[0].id > audit[0].id
        assert await new.records.revision() > revision
        await say(new, "in the run", run="run_1")
        sequences = [event.sequence for event in await new.events.after(None) if event.run]
        assert sequences == [1, 2, 3]


async def test_a_store_that_is_not_empty_is_not_overwritten(world: World) -> None:
    await say(world, "mine")
    tables = await rows(world)

    with pytest.raises(Occupied):
        await upkeep(world).load(poured(tables))

    assert await texts(world, AGENT) == {"SOUL.md": "mine"}


async def test_what_cannot_be_loaded_whole_is_not_loaded_at_all(
    world: World, elsewhere: AbstractAsyncContextManager[World]
) -> None:
    await live_in(world)
    tables = await rows(world)

    async def torn() -> AsyncIterator[tuple[str, Rows]]:
        async for table, some in poured(tables):
            if table == "event":
                raise EOFError("the archive ends here")
            yield table, some

    async with elsewhere as new:
        with pytest.raises(EOFError):
            await upkeep(new).load(torn())

        assert await new.trees.revisions([AGENT]) == (0,)
        assert (await say(new, "still empty")).version == 1


async def test_bytes_outside_are_referred_to_for_as_long_as_a_version_speaks_of_them(
    world: World,
) -> None:
    [large] = await world.blobs.put([LARGE.encode()])
    assert await upkeep(world).referred() == frozenset()

    await say(world, LARGE, at=NOW, keep=1)
    run = await start(world, "run_1")
    for text in ("small", None):
        await say(world, text, at=NOW, keep=1)
        await tidy(world, NOW + HOUR)
        assert await upkeep(world).referred() == {large.digest}

    assert await world.runs.change(replace(run, kept=False), run)
    await world.trees.commit([commit(await write(world, f"{n}"), at=NOW) for n in range(101)])
    await tidy(world, NOW + HOUR, grace=2 * HOUR)
    assert await upkeep(world).referred() == {large.digest}
    await tidy(world, NOW + HOUR)
    assert await upkeep(world).referred() == frozenset()


async def test_a_store_knows_the_steps_by_which_it_got_its_shape(world: World) -> None:
    steps = await upkeep(world).migrations()

    assert steps
    assert list(steps) == sorted(set(steps))


@pytest.mark.parametrize("text", ["small", LARGE], ids=["small", "large"])
async def test_bytes_go_with_the_last_version_that_speaks_of_them(world: World, text: str) -> None:
    async def contents() -> int:
        async with upkeep(world).frozen() as view:
            return await view.count("content")

    old = NOW - 3 * HOUR
    await say(world, text, at=old, keep=1)
    run = await start(world, "run_1")
    await say(world, "new", at=old, keep=1)
    await tidy(world, NOW + 3 * HOUR)
    assert await texts(world, run.snapshot[0]) == {"SOUL.md": text}

    assert await world.runs.change(replace(run, kept=False), run)
    # What is over the limit and no longer held is pruned by number: a hundred are the usual limit.
    await world.trees.commit([commit(await write(world, f"{n}"), at=old) for n in range(110)])
    await tidy(world, NOW + 3 * HOUR)

    assert await contents() == 100
    assert 1 not in await numbers(world)
    assert await texts(world, AGENT) == {"SOUL.md": "109"}


async def test_what_somebody_still_reads_is_never_taken(world: World) -> None:
    await live_in(world)
    expected = await portrait(world)

    await tidy(world, NOW + SECOND)

    assert await portrait(world) == expected


async def test_tidying_twice_is_tidying_once(world: World) -> None:
    await live_in(world)
    await tidy(world, NOW + 60 * DAY, grace=0, events_kept=0)

    assert await tidy(world, NOW + 60 * DAY, grace=0, events_kept=0) == 0


async def test_tidying_does_not_hurt_those_who_write_meanwhile(world: World) -> None:
    async def writer(n: int) -> None:
        for turn in range(10):
            await say(world, f"{n} {turn}", path=Path(f"{n}.md"), at=NOW, keep=1)

    async def tidier(writing: asyncio.Future[Any]) -> None:
        while not writing.done():
            await tidy(world, NOW + DAY)

    writing = asyncio.ensure_future(asyncio.gather(*[writer(n) for n in range(6)]))
    await asyncio.gather(writing, tidier(writing))

    assert await texts(world, AGENT) == {f"{n}.md": f"{n} 9" for n in range(6)}


async def test_events_go_when_they_are_old_and_have_been_turned_into_deliveries(
    world: World,
) -> None:
    for n in range(4):
        await say(world, f"{n}", at=NOW + n * DAY)
    whole = await world.events.after(None)

    await tidy(world, NOW + 9 * DAY, events_kept=DAY)
    assert await world.events.after(None) == whole

    await world.deliveries.enqueue(None, whole[2].cursor, [])
    await tidy(world, NOW + 2 * DAY, events_kept=DAY)
    assert await world.events.after(None) == whole[1:]
    assert await world.events.after(whole[0].cursor) == whole[1:]
    await tidy(world, NOW + 9 * DAY, events_kept=DAY)
    assert await world.events.after(None) == whole[3:]


async def test_the_log_goes_on_after_all_of_it_has_gone(world: World) -> None:
    await say(world, "one", at=NOW)
    [first] = await world.events.after(None)
    await world.deliveries.enqueue(None, first.cursor, [])
    await tidy(world, NOW + 9 * DAY, events_kept=DAY)
    assert await world.events.after(None) == ()

    await say(world, "two", at=NOW + 9 * DAY)

    [second] = await world.events.after(first.cursor)
    assert second.payload["version"] == 2
    assert second.id != first.id


async def test_receipts_are_kept_for_a_day(world: World) -> None:
    for n, key in enumerate(REQUESTS):
        await world.receipts.claim(key, "f", NOW + n * 2 * HOUR, 0)
        await world.receipts.settle(key, ANSWER)

    await tidy(world, NOW + DAY + HOUR)

    claims = [await world.receipts.claim(key, "f", NOW + DAY, 0) for key in REQUESTS]
    assert claims == [Taken(), Settled(ANSWER), Settled(ANSWER)]


async def test_finished_deliveries_are_kept_for_a_month_and_others_until_they_are_finished(
    world: World,
) -> None:
    posted = Delivery("dl_1", ACME, "wh_1", "t", b"body", State.DELIVERED, NOW, NOW, 1)
    young = replace(posted, id="dl_2", created=NOW + 2 * DAY)
    waiting = replace(posted, id="dl_3", state=State.PENDING)
    end = await world.events.latest()
    await world.deliveries.enqueue(None, end, [posted, young, waiting])
    await world.deliveries.settle([(one, Attempt(NOW, Posted(200))) for one in (posted, young)])

    await tidy(world, NOW + 29 * DAY)
    assert len(await world.deliveries.list(ACME, "wh_1")) == 3
    await tidy(world, NOW + 31 * DAY)

    left = await world.deliveries.list(ACME, "wh_1")
    assert [one.id for one, _ in left] == ["dl_3", "dl_2"]
