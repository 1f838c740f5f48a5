"""What every Deliveries must do: each event turned into posts once, each post one worker's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.contract.scenes import ACME, GLOBEX, NOW, say
from tests.contract.worlds import World

from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, PostResult

pytestmark = pytest.mark.anyio


def delivery(id: str, **more: Any) -> Delivery:
    facts = {
        "tenant": ACME,
        "webhook": "wh_1",
        "type": "workspace.updated",
        "body": b'{"\xc3\xa9": 1}',
        "state": DeliveryState.PENDING,
        "created": NOW,
        "due": NOW,
    }
    return Delivery(id, **{**facts, **more})


async def queued(world: World, *deliveries: Delivery) -> None:
    """Add these, and move the mark on."""
    await say(world, "something happened")
    was = await world.deliveries.mark()
    assert await world.deliveries.enqueue(was, await world.events.latest(), deliveries)


async def due(world: World, now: int = NOW, lease: int = NOW + 60, limit: int = 100) -> set[str]:
    return {one.id for one in await world.deliveries.due(now, lease, limit)}


async def test_nothing_has_been_turned_into_deliveries_at_first(world: World) -> None:
    assert await world.deliveries.mark() is None
    assert await world.deliveries.due(NOW, NOW, 10) == ()
    assert await world.deliveries.get(ACME, ["dl_1"]) == (None,)
    assert await world.deliveries.list(ACME, "wh_1") == ()


async def test_deliveries_and_the_mark_move_together(world: World) -> None:
    start = await world.events.latest()

    assert await world.deliveries.enqueue(None, start, [delivery("dl_1")])

    assert await world.deliveries.mark() == start
    assert await world.deliveries.get(ACME, ["dl_2", "dl_1"]) == (None, delivery("dl_1"))


async def test_whoever_comes_with_an_old_mark_adds_nothing(world: World) -> None:
    await queued(world)
    mark = await world.deliveries.mark()

    assert not await world.deliveries.enqueue(None, "9", [delivery("dl_1")])
    assert not await world.deliveries.enqueue("never", "9", [delivery("dl_1")])

    assert await world.deliveries.mark() == mark
    assert await world.deliveries.get(ACME, ["dl_1"]) == (None,)


async def test_of_many_who_turn_the_same_events_into_deliveries_one_does(world: World) -> None:
    await say(world, "something happened")
    mark = await world.events.latest()

    answers = await asyncio.gather(
        *[world.deliveries.enqueue(None, mark, [delivery(f"dl_{n}")]) for n in range(16)]
    )

    assert answers.count(True) == 1
    assert await due(world) == {f"dl_{answers.index(True)}"}


async def test_the_mark_can_move_on_without_deliveries(world: World) -> None:
    await queued(world)
    first = await world.deliveries.mark()
    await queued(world)

    assert first is not None
    assert await world.deliveries.mark() not in {None, first}


async def test_only_what_is_pending_and_whose_time_has_come_is_due(world: World) -> None:
    await queued(
        world,
        delivery("dl_past", due=NOW - 5),
        delivery("dl_now", due=NOW, tenant=GLOBEX),
        delivery("dl_future", due=NOW + 1),
        delivery("dl_done", state=DeliveryState.DELIVERED),
        delivery("dl_failed", state=DeliveryState.FAILED),
    )

    assert await due(world) == {"dl_past", "dl_now"}


async def test_nobody_else_is_given_a_delivery_until_the_lease_is_over(world: World) -> None:
    await queued(world, delivery("dl_1"))

    assert await due(world, NOW, lease=NOW + 60) == {"dl_1"}
    assert await due(world, NOW + 59, lease=NOW + 99) == set()
    assert await due(world, NOW + 60, lease=NOW + 120) == {"dl_1"}


async def test_no_more_are_given_than_asked_for_and_the_longest_due_first(world: World) -> None:
    await queued(world, *[delivery(f"dl_{n}", due=NOW - n) for n in range(5)])

    assert await due(world, limit=2) == {"dl_4", "dl_3"}
    assert await due(world, limit=9) == {"dl_2", "dl_1", "dl_0"}


async def test_a_delivery_that_is_given_is_whole(world: World) -> None:
    await queued(world, delivery("dl_1", tries=2))

    [given] = await world.deliveries.due(NOW, NOW + 60, 1)

    assert replace(given, due=NOW) == delivery("dl_1", tries=2)


async def test_two_workers_never_get_the_same_one(world: World) -> None:
    await queued(world, *[delivery(f"dl_{n:02}") for n in range(60)])

    async def worker() -> list[str]:
        mine: list[str] = []
        while given := await world.deliveries.due(NOW, NOW + 60, 4):
            mine += [one.id for one in given]
            await asyncio.sleep(0)
        return mine

    given = [id for mine in await asyncio.gather(*[worker() for _ in range(6)]) for id in mine]

    assert sorted(given) == [f"dl_{n:02}" for n in range(60)]


async def test_what_became_of_an_attempt_is_kept_with_the_delivery(world: World) -> None:
    await queued(world, delivery("dl_1"), delivery("dl_2"))
    failed = DeliveryAttempt(NOW + 1, PostResult(503, took=12))
    broken = DeliveryAttempt(NOW + 2, PostResult(None, "connection refused", 3))
    again = delivery("dl_1", tries=1, due=NOW + 5000)
    done = delivery("dl_2", tries=1, state=DeliveryState.DELIVERED)

    await world.deliveries.settle(
        [(again, failed), (done, DeliveryAttempt(NOW + 1, PostResult(204)))]
    )
    await world.deliveries.settle([(replace(again, tries=2), broken)])
    await world.deliveries.settle([])

    assert await world.deliveries.get(ACME, ["dl_1", "dl_2"]) == (replace(again, tries=2), done)
    listed = dict(await world.deliveries.list(ACME, "wh_1"))
    assert listed[replace(again, tries=2)] == (failed, broken)
    assert listed[done] == (DeliveryAttempt(NOW + 1, PostResult(204)),)


async def test_a_settled_delivery_is_due_again_only_at_its_new_time(world: World) -> None:
    await queued(world, delivery("dl_1"), delivery("dl_2"))
    for one in await world.deliveries.due(NOW, NOW + 60, 2):
        state = DeliveryState.PENDING if one.id == "dl_1" else DeliveryState.FAILED
        moved = replace(one, state=state, tries=1, due=NOW + 30)
        await world.deliveries.settle([(moved, DeliveryAttempt(NOW, PostResult(500)))])

    assert await due(world, NOW + 29) == set()
    assert await due(world, NOW + 30) == {"dl_1"}


async def test_deliveries_are_seen_only_by_their_tenant_and_webhook(world: World) -> None:
    await queued(
        world,
        delivery("dl_1"),
        delivery("dl_2", webhook="wh_2"),
        delivery("dl_3", tenant=GLOBEX),
    )

    assert await world.deliveries.get(ACME, ["dl_3"]) == (None,)
    assert [one.id for one, _ in await world.deliveries.list(ACME, "wh_1")] == ["dl_1"]
    assert [one.id for one, _ in await world.deliveries.list(ACME, "wh_2")] == ["dl_2"]
    assert [one.id for one, _ in await world.deliveries.list(GLOBEX, "wh_1")] == ["dl_3"]


async def test_deliveries_are_listed_newest_first_and_can_be_paged(world: World) -> None:
    names = [f"dl_{n}" for n in "0123456789abcdef"]
    await queued(world, *[delivery(name) for name in names])
    expected = names[::-1]

    assert [one.id for one, _ in await world.deliveries.list(ACME, "wh_1")] == expected
    page = await world.deliveries.list(ACME, "wh_1", before=expected[2], limit=3)
    assert [one.id for one, _ in page] == expected[3:6]


@pytest.mark.parametrize("state", [DeliveryState.DELIVERED, DeliveryState.FAILED])
async def test_a_replayed_delivery_is_due_again_with_its_attempts_forgiven(
    world: World, state: DeliveryState
) -> None:
    await queued(world, delivery("dl_1"))
    over = delivery("dl_1", state=state, tries=8)
    attempts = tuple(DeliveryAttempt(NOW + n, PostResult(500)) for n in range(3))
    for attempt in attempts:
        await world.deliveries.settle([(over, attempt)])
    assert await due(world) == set()

    await world.deliveries.replay(replace(over, due=NOW + 7))

    assert await world.deliveries.get(ACME, ["dl_1"]) == (delivery("dl_1", due=NOW + 7),)
    assert await due(world, NOW + 6) == set()
    [given] = await world.deliveries.due(NOW + 7, NOW + 60, 1)
    assert given.tries == 0
    last = DeliveryAttempt(NOW + 9, PostResult(200))
    await world.deliveries.settle([(replace(given, state=DeliveryState.DELIVERED, tries=1), last)])
    [(_, kept)] = await world.deliveries.list(ACME, "wh_1")
    assert kept == (*attempts, last)
