"""What every Deliveries must do: each event turned into posts once, each post one worker's."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.commits import ACME, GLOBEX, NOW, put_text
from tests.support.contract_stores import Ports

from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, PostResult

pytestmark = pytest.mark.anyio


def delivery(id: str, **more: Any) -> Delivery:
    facts = {
        "tenant": ACME,
        "webhook": "wh_1",
        "type": "workspace.updated",
        "body": b'{"\xc3\xa9": 1}',
        "state": DeliveryState.PENDING,
        "created_at": NOW,
        "due_at": NOW,
    }
    return Delivery(id, **{**facts, **more})


async def queued(ports: Ports, *deliveries: Delivery) -> None:
    """Add these, and move the mark on."""
    await put_text(ports, "something happened")
    was = await ports.deliveries.cursor()
    assert await ports.deliveries.enqueue(was, await ports.events.latest_cursor(), deliveries)


async def due(ports: Ports, now: int = NOW, lease: int = NOW + 60, limit: int = 100) -> set[str]:
    return {one.id for one in await ports.deliveries.lease_due(now, lease, limit)}


async def test_nothing_has_been_turned_into_deliveries_at_first(ports: Ports) -> None:
    assert await ports.deliveries.cursor() is None
    assert await ports.deliveries.lease_due(NOW, NOW, 10) == ()
    assert await ports.deliveries.get(ACME, ["dl_1"]) == (None,)
    assert await ports.deliveries.list(ACME, "wh_1") == ()


async def test_deliveries_and_the_mark_move_together(ports: Ports) -> None:
    start = await ports.events.latest_cursor()

    assert await ports.deliveries.enqueue(None, start, [delivery("dl_1")])

    assert await ports.deliveries.cursor() == start
    assert await ports.deliveries.get(ACME, ["dl_2", "dl_1"]) == (None, delivery("dl_1"))


async def test_whoever_comes_with_an_old_mark_adds_nothing(ports: Ports) -> None:
    await queued(ports)
    mark = await ports.deliveries.cursor()

    assert not await ports.deliveries.enqueue(None, "9", [delivery("dl_1")])
    assert not await ports.deliveries.enqueue("never", "9", [delivery("dl_1")])

    assert await ports.deliveries.cursor() == mark
    assert await ports.deliveries.get(ACME, ["dl_1"]) == (None,)


async def test_of_many_who_turn_the_same_events_into_deliveries_one_does(ports: Ports) -> None:
    await put_text(ports, "something happened")
    mark = await ports.events.latest_cursor()

    answers = await asyncio.gather(
        *[ports.deliveries.enqueue(None, mark, [delivery(f"dl_{n}")]) for n in range(16)]
    )

    assert answers.count(True) == 1
    assert await due(ports) == {f"dl_{answers.index(True)}"}


async def test_the_mark_can_move_on_without_deliveries(ports: Ports) -> None:
    await queued(ports)
    first = await ports.deliveries.cursor()
    await queued(ports)

    assert first is not None
    assert await ports.deliveries.cursor() not in {None, first}


async def test_only_what_is_pending_and_whose_time_has_come_is_due(ports: Ports) -> None:
    await queued(
        ports,
        delivery("dl_past", due_at=NOW - 5),
        delivery("dl_now", due_at=NOW, tenant=GLOBEX),
        delivery("dl_future", due_at=NOW + 1),
        delivery("dl_done", state=DeliveryState.DELIVERED),
        delivery("dl_failed", state=DeliveryState.FAILED),
    )

    assert await due(ports) == {"dl_past", "dl_now"}


async def test_nobody_else_is_given_a_delivery_until_the_lease_is_over(ports: Ports) -> None:
    await queued(ports, delivery("dl_1"))

    assert await due(ports, NOW, lease=NOW + 60) == {"dl_1"}
    assert await due(ports, NOW + 59, lease=NOW + 99) == set()
    assert await due(ports, NOW + 60, lease=NOW + 120) == {"dl_1"}


async def test_no_more_are_given_than_asked_for_and_the_longest_due_first(ports: Ports) -> None:
    await queued(ports, *[delivery(f"dl_{n}", due_at=NOW - n) for n in range(5)])

    assert await due(ports, limit=2) == {"dl_4", "dl_3"}
    assert await due(ports, limit=9) == {"dl_2", "dl_1", "dl_0"}


async def test_a_delivery_that_is_given_is_whole(ports: Ports) -> None:
    await queued(ports, delivery("dl_1", attempts=2))

    [given] = await ports.deliveries.lease_due(NOW, NOW + 60, 1)

    assert replace(given, due_at=NOW) == delivery("dl_1", attempts=2)


async def test_two_workers_never_get_the_same_one(ports: Ports) -> None:
    await queued(ports, *[delivery(f"dl_{n:02}") for n in range(60)])

    async def worker() -> list[str]:
        mine: list[str] = []
        while given := await ports.deliveries.lease_due(NOW, NOW + 60, 4):
            mine += [one.id for one in given]
            await asyncio.sleep(0)
        return mine

    given = [id for mine in await asyncio.gather(*[worker() for _ in range(6)]) for id in mine]

    assert sorted(given) == [f"dl_{n:02}" for n in range(60)]


async def test_what_became_of_an_attempt_is_kept_with_the_delivery(ports: Ports) -> None:
    await queued(ports, delivery("dl_1"), delivery("dl_2"))
    failed = DeliveryAttempt(NOW + 1, PostResult(503, elapsed_ms=12))
    broken = DeliveryAttempt(NOW + 2, PostResult(None, "connection refused", 3))
    again = delivery("dl_1", attempts=1, due_at=NOW + 5000)
    done = delivery("dl_2", attempts=1, state=DeliveryState.DELIVERED)

    await ports.deliveries.record_attempts(
        [(again, failed), (done, DeliveryAttempt(NOW + 1, PostResult(204)))]
    )
    await ports.deliveries.record_attempts([(replace(again, attempts=2), broken)])
    await ports.deliveries.record_attempts([])

    assert await ports.deliveries.get(ACME, ["dl_1", "dl_2"]) == (replace(again, attempts=2), done)
    listed = dict(await ports.deliveries.list(ACME, "wh_1"))
    assert listed[replace(again, attempts=2)] == (failed, broken)
    assert listed[done] == (DeliveryAttempt(NOW + 1, PostResult(204)),)


async def test_a_settled_delivery_is_due_again_only_at_its_new_time(ports: Ports) -> None:
    await queued(ports, delivery("dl_1"), delivery("dl_2"))
    for one in await ports.deliveries.lease_due(NOW, NOW + 60, 2):
        state = DeliveryState.PENDING if one.id == "dl_1" else DeliveryState.FAILED
        moved = replace(one, state=state, attempts=1, due_at=NOW + 30)
        await ports.deliveries.record_attempts([(moved, DeliveryAttempt(NOW, PostResult(500)))])

    assert await due(ports, NOW + 29) == set()
    assert await due(ports, NOW + 30) == {"dl_1"}


async def test_deliveries_are_seen_only_by_their_tenant_and_webhook(ports: Ports) -> None:
    await queued(
        ports,
        delivery("dl_1"),
        delivery("dl_2", webhook="wh_2"),
        delivery("dl_3", tenant=GLOBEX),
    )

    assert await ports.deliveries.get(ACME, ["dl_3"]) == (None,)
    assert [one.id for one, _ in await ports.deliveries.list(ACME, "wh_1")] == ["dl_1"]
    assert [one.id for one, _ in await ports.deliveries.list(ACME, "wh_2")] == ["dl_2"]
    assert [one.id for one, _ in await ports.deliveries.list(GLOBEX, "wh_1")] == ["dl_3"]


async def test_deliveries_are_listed_newest_first_and_can_be_paged(ports: Ports) -> None:
    names = [f"dl_{n}" for n in "0123456789abcdef"]
    await queued(ports, *[delivery(name) for name in names])
    expected = names[::-1]

    assert [one.id for one, _ in await ports.deliveries.list(ACME, "wh_1")] == expected
    page = await ports.deliveries.list(ACME, "wh_1", before=expected[2], limit=3)
    assert [one.id for one, _ in page] == expected[3:6]


@pytest.mark.parametrize("state", [DeliveryState.DELIVERED, DeliveryState.FAILED])
async def test_a_replayed_delivery_is_due_again_with_its_attempts_forgiven(
    ports: Ports, state: DeliveryState
) -> None:
    await queued(ports, delivery("dl_1"))
    over = delivery("dl_1", state=state, attempts=8)
    attempts = tuple(DeliveryAttempt(NOW + n, PostResult(500)) for n in range(3))
    for attempt in attempts:
        await ports.deliveries.record_attempts([(over, attempt)])
    assert await due(ports) == set()

    await ports.deliveries.replay(replace(over, due_at=NOW + 7))

    assert await ports.deliveries.get(ACME, ["dl_1"]) == (delivery("dl_1", due_at=NOW + 7),)
    assert await due(ports, NOW + 6) == set()
    [given] = await ports.deliveries.lease_due(NOW + 7, NOW + 60, 1)
    assert given.attempts == 0
    last = DeliveryAttempt(NOW + 9, PostResult(200))
    await ports.deliveries.record_attempts(
        [(replace(given, state=DeliveryState.DELIVERED, attempts=1), last)]
    )
    [(_, kept)] = await ports.deliveries.list(ACME, "wh_1")
    assert kept == (*attempts, last)
