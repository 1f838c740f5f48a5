"""Webhook dispatch: turns events into deliveries and posts them.

Any number of processes may run it. A cursor records which events became deliveries and moves
only from where it was read, so no event is enqueued twice. A delivery is leased to the worker
that posts it; if that worker dies, another takes over after the lease.
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
from carrel.actions.events.console_links import event_link
from carrel.actions.public_cursors import conceal_event
from carrel.core.identifiers import TimestampMs
from carrel.core.store.event import WEBHOOK_TEST, Event
from carrel.core.store.record import Record, RecordType
from carrel.core.webhooks import (
    BACKOFF_SECONDS,
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    PostResult,
    apply_attempt,
    signature_headers,
    webhook_from_record,
)
from carrel.ports import CorruptContent, Ports
from carrel.ports.logging import get_logger

MAX_CONCURRENT_POSTS: Final = 16
LEASE_MS: Final = 60_000
"""Milliseconds; longer than a post may take."""
_PAGE_SIZE: Final = 500
_BATCH_DELAY_SECONDS: Final = 0.1
"""Seconds to collect events, so that a busy store is not loaded by cursor updates."""
_POLL_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 5.0
_SHUTDOWN_SECONDS: Final = 1.0
_encode: Final = msgspec.json.Encoder().encode
_log = get_logger("carrel.dispatch")


async def run_dispatch(
    ports: Ports,
    stop: asyncio.Event,
    *,
    backoff: tuple[int, ...] = BACKOFF_SECONDS,
    public_url: str = "",
) -> None:
    """Enqueue and post deliveries until `stop` is set; retries after any failure.

    With a public URL, bodies have a link that opens what they report in the console.
    """
    async with _open_worker(ports, backoff) as worker:
        await asyncio.gather(
            _run_until_stopped(
                stop, lambda: _enqueue_until_stopped(ports, stop, worker, public_url)
            ),
            _run_until_stopped(stop, lambda: worker.run(stop)),
        )


async def _run_until_stopped(stop: asyncio.Event, work: Callable[[], Awaitable[None]]) -> None:
    while not stop.is_set():
        try:
            await work()
        except Exception as problem:
            _log.warning("webhook dispatch failed", error=type(problem).__name__)
            await _wait_for_first(_RETRY_SECONDS, stop.wait())


async def _wait_for_first(seconds: float, *waits: Coroutine[Any, Any, Any]) -> None:
    """Return when one awaitable finishes or the time is over; cancels the others."""
    tasks = {asyncio.create_task(wait) for wait in waits}
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _enqueue_until_stopped(
    ports: Ports, stop: asyncio.Event, worker: DeliveryWorker, public_url: str
) -> None:
    while not stop.is_set():
        if await webhooks.has_no_webhooks(ports):
            await _wait_for_first(_POLL_SECONDS, stop.wait())
            continue
        enqueued = await enqueue_deliveries(ports, public_url)
        if not enqueued:
            await _wait_for_first(
                _POLL_SECONDS, stop.wait(), ports.events.wait_for_new(_POLL_SECONDS)
            )
        else:
            worker.wake()
            if enqueued < _PAGE_SIZE:
                await _wait_for_first(_BATCH_DELAY_SECONDS, stop.wait())


async def enqueue_deliveries(ports: Ports, public_url: str = "") -> int:
    """Turn the next events into deliveries; return the number of events.

    The first call in a store starts with the events that follow it.
    """
    cursor = await ports.deliveries.cursor()
    if cursor is None:
        cursor = await ports.events.latest_cursor()
        await ports.deliveries.enqueue(None, cursor, ())
    events = await ports.events.read_after(cursor, limit=_PAGE_SIZE)
    if events:
        # Read webhooks after the events: a webhook created before an event receives it.
        webhooks_by_tenant = {
            t: await webhooks.load_active_webhooks(ports, t) for t in {e.tenant for e in events}
        }
        deliveries = [
            _new_delivery(ports, event, webhook, public_url)
            for event in events
            for webhook in webhooks_by_tenant[event.tenant]
            if webhooks.is_subscribed(webhook, event.type)
        ]
        await ports.deliveries.enqueue(cursor, events[-1].cursor, deliveries)
    return len(events)


def _new_delivery(ports: Ports, event: Event, webhook: Record, public_url: str) -> Delivery:
    now = ports.clock.now()
    return Delivery(
        id=ports.clock.new_id("msg"),
        tenant=webhook.tenant,
        webhook=webhook.id,
        type=event.type,
        body=event_body(conceal_event(ports, event), public_url),
        state=DeliveryState.PENDING,
        created_at=now,
        due_at=now,
    )


def event_body(event: Event, public_url: str = "") -> bytes:
    """Encode the webhook payload of an event; it never holds file content."""
    data: dict[str, Any] = {**event.payload, "eventId": event.id}
    if public_url and (link := event_link(event.type, event.payload)):
        data["url"] = public_url.rstrip("/") + link
    if event.scope is not None:
        data["workspace"] = {"kind": event.scope.kind, "name": event.scope.name}
    if event.run is not None:
        data["runId"] = event.run
    return _encode({"type": event.type, "timestamp": _rfc3339(event.at), "data": data})


def _rfc3339(timestamp: TimestampMs) -> str:
    return (
        datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
    )


@asynccontextmanager
async def _open_worker(ports: Ports, backoff: tuple[int, ...]) -> AsyncIterator[DeliveryWorker]:
    worker = DeliveryWorker(ports, backoff)
    try:
        yield worker
    finally:
        await worker.finish()


class DeliveryWorker:
    """Posts due deliveries, at most MAX_CONCURRENT_POSTS at a time."""

    def __init__(self, ports: Ports, backoff: tuple[int, ...] = BACKOFF_SECONDS) -> None:
        self._ports = ports
        self._backoff = backoff
        self._tasks: set[asyncio.Task[None]] = set()
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Make the worker look for due deliveries."""
        self._woken.set()

    async def run(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            self._woken.clear()
            if not await self._start_due():
                await _wait_for_first(_POLL_SECONDS, stop.wait(), self._woken.wait())

    async def _start_due(self) -> int:
        """Start as many due deliveries as there are free slots; return how many."""
        free = MAX_CONCURRENT_POSTS - len(self._tasks)
        if not free:
            return 0
        now = self._ports.clock.now()
        leased = await self._ports.deliveries.lease_due(now, now + LEASE_MS, free)
        for delivery in leased:
            task = asyncio.create_task(self._deliver(delivery))
            self._tasks.add(task)
            task.add_done_callback(self._on_done)
        return len(leased)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.wake()

    async def finish(self) -> None:
        """Wait briefly for running posts, then cancel them; their leases expire."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_SHUTDOWN_SECONDS)
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _deliver(self, delivery: Delivery) -> None:
        try:
            attempted_at = self._ports.clock.now()
            result, is_final = await self._post(delivery, attempted_at)
            updated = apply_attempt(delivery, result, self._ports.clock.now(), self._backoff)
            if is_final or (delivery.type == WEBHOOK_TEST and not result.ok):
                updated = replace(updated, state=DeliveryState.FAILED)
            await self._ports.deliveries.record_attempts(
                [(updated, DeliveryAttempt(attempted_at, result))]
            )
        except Exception as problem:
            kind = type(problem).__name__
            _log.warning("webhook delivery failed", delivery=delivery.id, error=kind)

    async def _post(self, delivery: Delivery, timestamp: TimestampMs) -> tuple[PostResult, bool]:
        """Post a delivery; return the result and whether a retry is useless."""
        lookup = (delivery.tenant, RecordType.WEBHOOK, [delivery.webhook])
        [record] = await self._ports.records.get(*lookup)
        if record is None:
            return PostResult(None, "the webhook was removed"), True
        webhook = webhook_from_record(record)
        if not webhook.active:
            return PostResult(None, "the webhook is inactive"), True
        try:
            secret = webhooks.open_secret(self._ports, record)
        except CorruptContent:
            return PostResult(None, "the webhook's secret cannot be opened"), False
        headers = {
            **signature_headers(secret, delivery.id, timestamp, delivery.body),
            "content-type": "application/json",
        }
        return await self._ports.webhook_sender.send(webhook.url, headers, delivery.body), False
