"""Contract of DeliveryQueue: events enqueued once, deliveries leased once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.commits import ACME, GLOBEX, NOW, put_text
from tests.support.contract_stores import Ports

from carrel.core.store.idempotency import Claimed, Committed, IdempotencyKey
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, PostResult

pytestmark = pytest.mark.anyio


def delivery(id: str, **changed: Any) -> Delivery:
    fields = {
        "tenant": ACME,
        "webhook": "wh_1",
        "type": "workspace.updated",
        "body": b'{"\xc3\xa9": 1}',
        "state": DeliveryState.PENDING,
        "created_at": NOW,
        "due_at": NOW,
    }
    return Delivery(id, **{**fields, **changed})


async def enqueue(ports: Ports, *deliveries: Delivery) -> None:
    """Enqueue the deliveries and advance the cursor."""
    await put_text(ports, "something happened")
    cursor = await ports.deliveries.cursor()
    assert await ports.deliveries.enqueue(cursor, await ports.events.latest_cursor(), deliveries)


async def due(ports: Ports, now: int = NOW, lease: int = NOW + 60, limit: int = 100) -> set[str]:
    return {delivery.id for delivery in await ports.deliveries.lease_due(now, lease, limit)}


async def test_the_queue_is_empty_at_first(ports: Ports) -> None:
    assert await ports.deliveries.cursor() is None
    assert await ports.deliveries.lease_due(NOW, NOW, 10) == ()
    assert await ports.deliveries.get(ACME, ["dl_1"]) == (None,)
    assert await ports.deliveries.list(ACME, "wh_1") == ()


async def test_deliveries_and_the_cursor_are_written_together(ports: Ports) -> None:
    start = await ports.events.latest_cursor()

    assert await ports.deliveries.enqueue(None, start, [delivery("dl_1")])

    assert await ports.deliveries.cursor() == start
    assert await ports.deliveries.get(ACME, ["dl_2", "dl_1"]) == (None, delivery("dl_1"))


async def test_an_enqueue_with_an_old_cursor_adds_nothing(ports: Ports) -> None:
    await enqueue(ports)
    cursor = await ports.deliveries.cursor()

    assert not await ports.deliveries.enqueue(None, "9", [delivery("dl_1")])
    assert not await ports.deliveries.enqueue("never", "9", [delivery("dl_1")])

    assert await ports.deliveries.cursor() == cursor
    assert await ports.deliveries.get(ACME, ["dl_1"]) == (None,)


async def test_of_many_enqueues_of_the_same_events_one_succeeds(ports: Ports) -> None:
    await put_text(ports, "something happened")
    cursor = await ports.events.latest_cursor()

    answers = await asyncio.gather(
        *[ports.deliveries.enqueue(None, cursor, [delivery(f"dl_{n}")]) for n in range(16)]
    )

    assert answers.count(True) == 1
    assert await due(ports) == {f"dl_{answers.index(True)}"}


async def test_the_cursor_can_advance_without_deliveries(ports: Ports) -> None:
    await enqueue(ports)
    first = await ports.deliveries.cursor()
    await enqueue(ports)

    assert first is not None
    assert await ports.deliveries.cursor() not in {None, first}


async def test_only_pending_deliveries_past_their_due_time_are_leased(ports: Ports) -> None:
    await enqueue(
        ports,
        delivery("dl_past", due_at=NOW - 5),
        delivery("dl_now", due_at=NOW, tenant=GLOBEX),
        delivery("dl_future", due_at=NOW + 1),
        delivery("dl_done", state=DeliveryState.DELIVERED),
        delivery("dl_failed", state=DeliveryState.FAILED),
    )

    assert await due(ports) == {"dl_past", "dl_now"}


async def test_a_leased_delivery_is_not_leased_again_before_its_lease_ends(ports: Ports) -> None:
    await enqueue(ports, delivery("dl_1"))

    assert await due(ports, NOW, lease=NOW + 60) == {"dl_1"}
    assert await due(ports, NOW + 59, lease=NOW + 99) == set()
    assert await due(ports, NOW + 60, lease=NOW + 120) == {"dl_1"}


async def test_a_lease_is_limited_and_takes_the_longest_due_first(ports: Ports) -> None:
    await enqueue(ports, *[delivery(f"dl_{n}", due_at=NOW - n) for n in range(5)])

    assert await due(ports, limit=2) == {"dl_4", "dl_3"}
    assert await due(ports, limit=9) == {"dl_2", "dl_1", "dl_0"}


async def test_a_leased_delivery_has_all_its_fields(ports: Ports) -> None:
    await enqueue(ports, delivery("dl_1", attempts=2))

    [leased] = await ports.deliveries.lease_due(NOW, NOW + 60, 1)

    assert replace(leased, due_at=NOW) == delivery("dl_1", attempts=2)


async def test_two_workers_never_lease_the_same_delivery(ports: Ports) -> None:
    await enqueue(ports, *[delivery(f"dl_{n:02}") for n in range(60)])

    async def worker() -> list[str]:
        mine: list[str] = []
        while leased := await ports.deliveries.lease_due(NOW, NOW + 60, 4):
            mine += [item.id for item in leased]
            await asyncio.sleep(0)
        return mine

    leased = [id for mine in await asyncio.gather(*[worker() for _ in range(6)]) for id in mine]

    assert sorted(leased) == [f"dl_{n:02}" for n in range(60)]


async def test_an_attempt_is_recorded_with_its_delivery(ports: Ports) -> None:
    await enqueue(ports, delivery("dl_1"), delivery("dl_2"))
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


async def test_a_recorded_delivery_is_due_again_only_at_its_new_time(ports: Ports) -> None:
    await enqueue(ports, delivery("dl_1"), delivery("dl_2"))
    for leased in await ports.deliveries.lease_due(NOW, NOW + 60, 2):
        state = DeliveryState.PENDING if leased.id == "dl_1" else DeliveryState.FAILED
        updated = replace(leased, state=state, attempts=1, due_at=NOW + 30)
        await ports.deliveries.record_attempts([(updated, DeliveryAttempt(NOW, PostResult(500)))])

    assert await due(ports, NOW + 29) == set()
    assert await due(ports, NOW + 30) == {"dl_1"}


async def test_deliveries_are_visible_only_to_their_tenant_and_webhook(ports: Ports) -> None:
    await enqueue(
        ports,
        delivery("dl_1"),
        delivery("dl_2", webhook="wh_2"),
        delivery("dl_3", tenant=GLOBEX),
    )

    assert await ports.deliveries.get(ACME, ["dl_3"]) == (None,)
    assert [item.id for item, _ in await ports.deliveries.list(ACME, "wh_1")] == ["dl_1"]
    assert [item.id for item, _ in await ports.deliveries.list(ACME, "wh_2")] == ["dl_2"]
    assert [item.id for item, _ in await ports.deliveries.list(GLOBEX, "wh_1")] == ["dl_3"]


async def test_deliveries_are_listed_newest_first_in_pages(ports: Ports) -> None:
    names = [f"dl_{n}" for n in "0123456789abcdef"]
    await enqueue(ports, *[delivery(name) for name in names])
    expected = names[::-1]

    assert [item.id for item, _ in await ports.deliveries.list(ACME, "wh_1")] == expected
    page = await ports.deliveries.list(ACME, "wh_1", before=expected[2], limit=3)
    assert [item.id for item, _ in page] == expected[3:6]
    assert await ports.deliveries.count(ACME, "wh_1") == len(names)
    assert await ports.deliveries.count(GLOBEX, "wh_1") == 0


@pytest.mark.parametrize("state", [DeliveryState.DELIVERED, DeliveryState.FAILED])
async def test_a_replayed_delivery_is_due_again_with_zero_attempts(
    ports: Ports, state: DeliveryState
) -> None:
    await enqueue(ports, delivery("dl_1"))
    finished = delivery("dl_1", state=state, attempts=8)
    attempts = tuple(DeliveryAttempt(NOW + n, PostResult(500)) for n in range(3))
    for attempt in attempts:
        await ports.deliveries.record_attempts([(finished, attempt)])
    assert await due(ports) == set()

    await ports.deliveries.replay(replace(finished, due_at=NOW + 7))

    assert await ports.deliveries.get(ACME, ["dl_1"]) == (delivery("dl_1", due_at=NOW + 7),)
    assert await due(ports, NOW + 6) == set()
    [leased] = await ports.deliveries.lease_due(NOW + 7, NOW + 60, 1)
    assert leased.attempts == 0
    last = DeliveryAttempt(NOW + 9, PostResult(200))
    await ports.deliveries.record_attempts(
        [(replace(leased, state=DeliveryState.DELIVERED, attempts=1), last)]
    )
    [(_, listed)] = await ports.deliveries.list(ACME, "wh_1")
    assert listed == (*attempts, last)


async def test_a_replay_marks_its_idempotency_key(ports: Ports) -> None:
    key = IdempotencyKey(ACME, "POST replay", "k")
    await enqueue(ports, delivery("dl_1"))
    assert await ports.idempotency.claim(key, "f", NOW, 0) == Claimed()

    await ports.deliveries.replay(delivery("dl_1"), key)

    assert await ports.idempotency.claim(key, "f", NOW, NOW + 1) == Committed(())
