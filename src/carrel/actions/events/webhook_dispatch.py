"""Telling webhooks what happened: events become deliveries, and deliveries are posted.

Both can be done by any number of processes at once. A mark says which events have become
deliveries and moves only from where it was read, so that none is told twice; a delivery is leased
to whoever posts it, so that one who dies in the middle is followed by another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from carrel.actions.events import webhooks
from carrel.core.identifiers import TimestampMs
from carrel.core.store.event import Event
from carrel.core.store.record import Record, RecordType
from carrel.core.webhooks import (
    BACKOFF,
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    PostResult,
    after,
    signed,
)
from carrel.ports import CorruptContent, Ports
from carrel.ports.logging import log_of

AT_ONCE: Final = 16
LEASE: Final = 60_000
"""Milliseconds: longer than a post may take."""
_PAGE: Final = 500
_GATHER: Final = 0.1
"""Seconds in which events gather, so that a busy store is not kept busy by moving the mark."""
_IDLE: Final = 1.0
_PAUSE: Final = 5.0
_GRACE: Final = 1.0
_encode: Final = msgspec.json.Encoder().encode
_log = log_of("carrel.dispatch")


async def run_dispatch(
    ports: Ports, stop: asyncio.Event, *, backoff: tuple[int, ...] = BACKOFF
) -> None:
    """Turn events into deliveries and post them until told to stop, whatever goes wrong."""
    async with _courier(ports, backoff) as worker:
        await asyncio.gather(
            _go_on(stop, lambda: _tell(ports, stop, worker)),
            _go_on(stop, lambda: worker.carry(stop)),
        )


async def _go_on(stop: asyncio.Event, work: Callable[[], Awaitable[None]]) -> None:
    while not stop.is_set():
        try:
            await work()
        except Exception as problem:
            _log.warning("webhooks are held up", error=type(problem).__name__)
            await _first(_PAUSE, stop.wait())


async def _first(seconds: float, *waits: Coroutine[Any, Any, Any]) -> None:
    """Return when one of these is done or the time is over; the others are called off."""
    tasks = {asyncio.create_task(wait) for wait in waits}
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _tell(ports: Ports, stop: asyncio.Event, worker: DeliveryWorker) -> None:
    while not stop.is_set():
        if await webhooks.has_no_webhooks(ports):
            await _first(_IDLE, stop.wait())
            continue
        told = await fan_out(ports)
        if not told:
            await _first(_IDLE, stop.wait(), ports.events.wait_for_new(_IDLE))
        else:
            worker.call()
            if told < _PAGE:
                await _first(_GATHER, stop.wait())


async def fan_out(ports: Ports) -> int:
    """Turn the next events into deliveries, and say how many events those were.

    Where nobody ever did, it begins with what happens from now on.
    """
    mark = await ports.deliveries.cursor()
    if mark is None:
        mark = await ports.events.latest()
        await ports.deliveries.enqueue(None, mark, ())
    events = await ports.events.after(mark, limit=_PAGE)
    if events:
        # The webhooks are read after the events: one that was there before an event hears of it.
        listening = {
            t: await webhooks.active_webhooks(ports, t) for t in {e.tenant for e in events}
        }
        deliveries = [
            _delivery(ports, event, webhook)
            for event in events
            for webhook in listening[event.tenant]
            if webhooks.wants(webhook, event.type)
        ]
        await ports.deliveries.enqueue(mark, events[-1].cursor, deliveries)
    return len(events)


def _delivery(ports: Ports, event: Event, webhook: Record) -> Delivery:
    now = ports.clock.now()
    return Delivery(
        id=ports.clock.new_id("msg"),
        tenant=webhook.tenant,
        webhook=webhook.id,
        type=event.type,
        body=body_of(event),
        state=DeliveryState.PENDING,
        created=now,
        due=now,
    )


def body_of(event: Event) -> bytes:
    """What a receiver is told: that and where something happened, never the content of a file."""
    told: dict[str, Any] = {**event.payload, "eventId": event.id}
    if event.scope is not None:
        told["workspace"] = {"kind": event.scope.kind, "name": event.scope.name}
    if event.run is not None:
        told["runId"] = event.run
    return _encode({"type": event.type, "timestamp": _when(event.at), "data": told})


def _when(at: TimestampMs) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


@asynccontextmanager
async def _courier(ports: Ports, backoff: tuple[int, ...]) -> AsyncIterator[DeliveryWorker]:
    worker = DeliveryWorker(ports, backoff)
    try:
        yield worker
    finally:
        await worker.finish()


class DeliveryWorker:
    """Posts what is due, a bounded number of deliveries at a time."""

    def __init__(self, ports: Ports, backoff: tuple[int, ...] = BACKOFF) -> None:
        self._ports = ports
        self._backoff = backoff
        self._busy: set[asyncio.Task[None]] = set()
        self._called = asyncio.Event()

    def call(self) -> None:
        """There may be something to do."""
        self._called.set()

    async def carry(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self._called.clear()
            if not await self._take():
                await _first(_IDLE, stop.wait(), self._called.wait())

    async def _take(self) -> int:
        """Set out with as many as hands are free; say how many those were."""
        free = AT_ONCE - len(self._busy)
        if not free:
            return 0
        now = self._ports.clock.now()
        taken = await self._ports.deliveries.lease_due(now, now + LEASE, free)
        for delivery in taken:
            task = asyncio.create_task(self._deliver(delivery))
            self._busy.add(task)
            task.add_done_callback(self._back)
        return len(taken)

    def _back(self, task: asyncio.Task[None]) -> None:
        self._busy.discard(task)
        self.call()

    async def finish(self) -> None:
        """Let those who are out come back, but not for long; their lease runs out by itself."""
        if self._busy:
            await asyncio.wait(self._busy, timeout=_GRACE)
        for task in list(self._busy):
            task.cancel()
        if self._busy:
            await asyncio.wait(self._busy)

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            at = self._ports.clock.now()
            posted, lost = await self._posted(delivery, at)
            settled = after(delivery, posted, self._ports.clock.now(), self._backoff)
            if lost:
                settled = replace(settled, state=DeliveryState.FAILED)
            await self._ports.deliveries.record_attempts([(settled, DeliveryAttempt(at, posted))])
        except Exception as problem:
            kind = type(problem).__name__
            _log.warning("a delivery is held up", delivery=delivery.id, error=kind)

    async def _posted(self, delivery: Delivery, at: TimestampMs) -> tuple[PostResult, bool]:
        """What came of posting it, and whether it is of no use to try again."""
        ask = (delivery.tenant, RecordType.WEBHOOK, [delivery.webhook])
        [webhook] = await self._ports.records.get(*ask)
        if webhook is None or not webhook.body["active"]:
            state = "removed" if webhook is None else "switched off"
            return PostResult(None, f"the webhook was {state}"), True
        try:
            secret = webhooks.secret_of(self._ports, webhook)
        except CorruptContent:
            return PostResult(None, "the webhook's secret cannot be opened"), False
        headers = {
            **signed(secret, delivery.id, at, delivery.body),
            "content-type": "application/json",
        }
        return await self._ports.webhook_sender.send(
            webhook.body["url"], headers, delivery.body
        ), False
