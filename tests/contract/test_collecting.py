"""What every Upkeep throws away: what nobody wants, when it is old enough, and nothing else."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.contract.households import (
    ANSWER,
    DAY,
    HOUR,
    KEPT,
    LARGE,
    NOW,
    REQUESTS,
    SECOND,
    live_in,
    portrait,
    tidy,
    upkeep,
)
from tests.contract.scenes import (
    ACME,
    AGENT,
    commit,
    numbers,
    say,
    start,
    texts,
    write,
)
from tests.contract.worlds import World

from carrel.core.identifiers import Path
from carrel.core.store.idempotency import Claimed, Completed
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, PostResult

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("world", KEPT, indirect=True)]


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
    assert claims == [Claimed(), Completed(ANSWER), Completed(ANSWER)]


async def test_finished_deliveries_are_kept_for_a_month_and_others_until_they_are_finished(
    world: World,
) -> None:
    posted = Delivery("dl_1", ACME, "wh_1", "t", b"body", DeliveryState.DELIVERED, NOW, NOW, 1)
    young = replace(posted, id="dl_2", created=NOW + 2 * DAY)
    waiting = replace(posted, id="dl_3", state=DeliveryState.PENDING)
    end = await world.events.latest()
    await world.deliveries.enqueue(None, end, [posted, young, waiting])
    await world.deliveries.settle(
        [(one, DeliveryAttempt(NOW, PostResult(200))) for one in (posted, young)]
    )

    await tidy(world, NOW + 29 * DAY)
    assert len(await world.deliveries.list(ACME, "wh_1")) == 3
    await tidy(world, NOW + 31 * DAY)

    left = await world.deliveries.list(ACME, "wh_1")
    assert [one.id for one, _ in left] == ["dl_3", "dl_2"]
