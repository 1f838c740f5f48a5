"""Event streams: many subscribers, one reader of the event log per process.

A subscriber first reads the event table. At its end it switches to a ring buffer of the newest
events, which one task fills for all; if it falls behind the ring it returns to the table. Each
read starts after the last event of the read before, so no event is missed or repeated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Final

from carrel.actions.events.event_access import Batch, Batches, visible_to
from carrel.actions.public_cursors import (
    FROM_START,
    conceal_cursor,
    conceal_event,
    reveal_cursor,
)
from carrel.core.access import Actor
from carrel.core.store.event import Event, EventFilter
from carrel.ports import Events, Ports
from carrel.ports.logging import get_logger

PAGE_SIZE: Final = 500
_RING_CAPACITY: Final = 4096
_POLL_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 5.0
_log = get_logger("carrel.streams")


class EventRingBuffer:
    """Ring buffer of the newest events, addressed by ever-increasing positions."""

    def __init__(self, capacity: int = _RING_CAPACITY) -> None:
        self._slots: list[Event | None] = [None] * capacity
        self._positions: dict[str, int] = {}
        self.end = 0
        """Position of the next event."""

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            slot = self.end % len(self._slots)
            if old := self._slots[slot]:
                del self._positions[old.cursor]
            self._slots[slot] = event
            self._positions[event.cursor] = self.end
            self.end += 1

    def position_after(self, cursor: str | None) -> int | None:
        """Return the position after this cursor's event, or None if it left the ring."""
        position = None if cursor is None else self._positions.get(cursor)
        return None if position is None else position + 1

    def has_position(self, position: int) -> bool:
        """Return whether every event from this position on is still in the ring."""
        return self.end - position <= len(self._slots)

    def read_from(self, position: int) -> Batch:
        """Return up to PAGE_SIZE events from a position that is still in the ring."""
        positions = range(position, min(self.end, position + PAGE_SIZE))
        return tuple(filter(None, (self._slots[index % len(self._slots)] for index in positions)))


class EventBroadcaster:
    """The process's one reader of an event log; runs while it has listeners."""

    def __init__(self, events: Events, capacity: int = _RING_CAPACITY) -> None:
        self.events = events
        self.ring = EventRingBuffer(capacity)
        self.listeners = 0
        self._last_cursor = ""
        self._reads_started = 0
        self._reads_finished = 0
        self._read_lock = asyncio.Lock()
        self._new_events = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._running = True

    async def start(self) -> None:
        async with self._read_lock:
            if self._task is None:
                self._last_cursor = await self.events.latest_cursor()
                self._task = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        """Stop reading, even if the wait returns in the moment it is cancelled."""
        self._running = False
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def wait_for_events(self) -> None:
        """Return once the ring has grown."""
        await self._new_events.wait()

    async def catch_up(self) -> None:
        """Read every event visible at the time of the call into the ring.

        Concurrent callers share the next read.
        """
        reads_started = self._reads_started
        async with self._read_lock:
            if self._reads_finished <= reads_started:
                await self._read()

    async def _read(self) -> None:
        self._reads_started += 1
        while events := await self.events.read_after(self._last_cursor, limit=PAGE_SIZE):
            self._last_cursor = events[-1].cursor
            self.ring.add(events)
            previous, self._new_events = self._new_events, asyncio.Event()
            previous.set()
            if len(events) < PAGE_SIZE:
                break
        self._reads_finished = self._reads_started

    async def _follow(self) -> None:
        """Read new events until stopped.

        No await lies between the last read and the wait, so no wake-up is lost.
        """
        while self._running:
            try:
                async with self._read_lock:
                    await self._read()
                await self.events.wait_for_new(_POLL_SECONDS)
            except Exception as problem:
                _log.warning("event log read failed", error=type(problem).__name__)
                await asyncio.sleep(_RETRY_SECONDS)


_BROADCASTERS: Final[dict[Events, EventBroadcaster]] = {}
"""Running broadcasters of this process, by event log."""


@asynccontextmanager
async def shared_broadcaster(
    events: Events, capacity: int = _RING_CAPACITY
) -> AsyncIterator[EventBroadcaster]:
    """Share one broadcaster per log: the first listener starts it, the last stops it."""
    broadcaster = _BROADCASTERS.setdefault(events, EventBroadcaster(events, capacity))
    broadcaster.listeners += 1
    try:
        await broadcaster.start()
        yield broadcaster
    finally:
        broadcaster.listeners -= 1
        if not broadcaster.listeners:
            del _BROADCASTERS[events]
            await broadcaster.stop()


class EventSubscriber:
    """Follows the event log from a cursor."""

    def __init__(
        self, broadcaster: EventBroadcaster, filter: EventFilter, cursor: str | None
    ) -> None:
        self._broadcaster = broadcaster
        self._filter = filter
        self._cursor = cursor
        self._ring_position: int | None = None
        """Next position in the ring; None while reading the table."""

    async def next(self) -> Batch:
        """Wait for and return the next events."""
        while True:
            reads_table = self._ring_position is None
            if batch := await (self._from_table() if reads_table else self._from_ring()):
                return batch

    async def _from_table(self) -> Batch:
        ring = self._broadcaster.ring
        self._ring_position = ring.position_after(self._cursor)
        if self._ring_position is not None:
            return ()
        ring_end = ring.end
        batch = await self._broadcaster.events.read_after(
            self._cursor, self._filter, limit=PAGE_SIZE
        )
        if batch:
            self._cursor = batch[-1].cursor
        if len(batch) < PAGE_SIZE:
            await self._broadcaster.catch_up()
            # The ring has read past this page by now. If the page's last event is not in the
            # ring, it is older than the ring, and the page holds every event before that read.
            position = ring.position_after(self._cursor)
            self._ring_position = ring_end if position is None else position
        return batch

    async def _from_ring(self) -> Batch:
        assert self._ring_position is not None
        if not self._broadcaster.ring.has_position(self._ring_position):
            self._ring_position = None
            return ()
        batch = self._broadcaster.ring.read_from(self._ring_position)
        if not batch:
            await self._broadcaster.wait_for_events()
            return ()
        self._ring_position += len(batch)
        self._cursor = batch[-1].cursor
        return tuple(filter(self._filter.matches, batch))


async def read_page(
    ports: Ports, filter: EventFilter, since: str | None = None, limit: int = PAGE_SIZE
) -> tuple[Batch, str | None]:
    """Return events after a cursor, and the next cursor. Raises ValidationError."""
    cursor = store_cursor(ports, filter, since)
    events = await ports.events.read_after(cursor, filter, limit=limit)
    page = tuple(conceal_event(ports, event) for event in events)
    return page, page[-1].cursor if page else since


async def listen(
    ports: Ports, filter: EventFilter, since: str | None = None
) -> tuple[str, Batches]:
    """Follow the log after a cursor, or from now on.

    Returns the start cursor and the batches. Raises ValidationError for an invalid cursor before
    the first batch is read.
    """
    if since is None:
        since = conceal_cursor(
            ports, filter.tenant, await ports.events.latest_cursor(filter.tenant)
        )
    cursor = store_cursor(ports, filter, since)
    first = await ports.events.read_after(cursor, filter, limit=PAGE_SIZE)
    return since, conceal_batches(ports, follow(ports, filter, cursor, first))


async def conceal_batches(ports: Ports, batches: Batches) -> Batches:
    async with aclosing(batches):
        async for batch in batches:
            yield tuple(conceal_event(ports, event) for event in batch)


async def listen_as(
    ports: Ports, actor: Actor, filter: EventFilter, since: str | None = None
) -> tuple[str, Batches]:
    """Follow the events that the caller may see; the stream ends with their credential."""
    start, batches = await listen(ports, filter, since)
    return start, visible_to(ports, actor, batches)


def store_cursor(ports: Ports, filter: EventFilter, since: str | None) -> str | None:
    """Return the position in the log. Raises ValidationError."""
    if since is None or since == FROM_START:
        return None
    return reveal_cursor(ports, filter.tenant, since)


async def follow(ports: Ports, filter: EventFilter, cursor: str | None, first: Batch) -> Batches:
    if first:
        yield first
        cursor = first[-1].cursor
    async with shared_broadcaster(ports.events) as broadcaster:
        subscriber = EventSubscriber(broadcaster, filter, cursor)
        while True:
            yield await subscriber.next()
