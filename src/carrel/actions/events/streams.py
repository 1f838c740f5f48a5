"""Following the log of events: any number of listeners, one reader of the log a process.

A listener begins at the table. Once it has come to the end of it, it goes on from a ring of the
newest events, which one tail fills for all; if it falls behind the ring it goes back to the table.
Each step starts after the last event that the step before had looked at, so that none is missed
and none comes twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Final

from carrel.core.access import Actor, CredentialKind, Role
from carrel.core.items import is_of_a_person, items_of_person
from carrel.core.runs import Run, RunStatus
from carrel.core.store.event import RUN_ENDED, Event, EventFilter
from carrel.ports import Events, Ports
from carrel.ports.logging import log_of

PAGE: Final = 500
BEGINNING: Final = "0"
"""What a listener says who wants everything that is kept."""
_ROOM: Final = 4096
_LOOK: Final = 1.0
_PAUSE: Final = 5.0
_ENDS: Final = frozenset(RUN_ENDED.values())
_log = log_of("carrel.streams")

Batch = tuple[Event, ...]
Batches = AsyncGenerator[Batch, None]
"""To be closed by whoever does not read it to its end."""


class EventRingBuffer:
    """The newest events, each in a place whose number only rises."""

    def __init__(self, room: int = _ROOM) -> None:
        self._slots: list[Event | None] = [None] * room
        self._places: dict[str, int] = {}
        self.end = 0
        """The place that the next event will have."""

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            slot = self.end % len(self._slots)
            if old := self._slots[slot]:
                del self._places[old.cursor]
            self._slots[slot] = event
            self._places[event.cursor] = self.end
            self.end += 1

    def after(self, cursor: str | None) -> int | None:
        """The place after this event, if it is still here."""
        place = None if cursor is None else self._places.get(cursor)
        return None if place is None else place + 1

    def holds(self, place: int) -> bool:
        """Whether every event from this place on is still here."""
        return self.end - place <= len(self._slots)

    def since(self, place: int) -> Batch:
        """The next few events from a place that is held."""
        places = range(place, min(self.end, place + PAGE))
        return tuple(filter(None, (self._slots[each % len(self._slots)] for each in places)))


class EventBroadcaster:
    """The one reader of a process's log. It reads for as long as somebody listens."""

    def __init__(self, events: Events, room: int = _ROOM) -> None:
        self.events = events
        self.ring = EventRingBuffer(room)
        self.listeners = 0
        self._tip = ""
        self._begun = 0
        self._done = 0
        self._reading = asyncio.Lock()
        self._bell = asyncio.Event()
        self._tail: asyncio.Task[None] | None = None
        self._open = True

    async def start(self) -> None:
        async with self._reading:
            if self._tail is None:
                self._tip = await self.events.latest()
                self._tail = asyncio.create_task(self._follow())

    async def stop(self) -> None:
        """Also where the waiting returns at the very moment at which it is called off."""
        self._open = False
        if self._tail is not None:
            self._tail.cancel()
            await asyncio.wait({self._tail})

    async def news(self) -> None:
        """Return once the ring has grown."""
        await self._bell.wait()

    async def catch_up(self) -> None:
        """Have everything in the ring that could be seen when this was called.

        Those who ask while the log is being read share the next reading.
        """
        asked = self._begun
        async with self._reading:
            if self._done <= asked:
                await self._read()

    async def _read(self) -> None:
        self._begun += 1
        while events := await self.events.after(self._tip, limit=PAGE):
            self._tip = events[-1].cursor
            self.ring.add(events)
            bell, self._bell = self._bell, asyncio.Event()
            bell.set()
            if len(events) < PAGE:
                break
        self._done = self._begun

    async def _follow(self) -> None:
        """Nothing else runs between the last look and the waiting, so no news is slept over."""
        while self._open:
            try:
                async with self._reading:
                    await self._read()
                await self.events.wait_for_new(_LOOK)
            except Exception as problem:
                _log.warning("the log of events cannot be read", error=type(problem).__name__)
                await asyncio.sleep(_PAUSE)


_HUBS: Final[dict[Events, EventBroadcaster]] = {}
"""Of every log that somebody in this process listens to."""


@asynccontextmanager
async def broadcaster_of(events: Events, room: int = _ROOM) -> AsyncIterator[EventBroadcaster]:
    """The process's one reader of this log: the first listener starts it, the last one stops it."""
    broadcaster = _HUBS.setdefault(events, EventBroadcaster(events, room))
    broadcaster.listeners += 1
    try:
        await broadcaster.start()
        yield broadcaster
    finally:
        broadcaster.listeners -= 1
        if not broadcaster.listeners:
            del _HUBS[events]
            await broadcaster.stop()


class EventSubscriber:
    """One who follows the log from a cursor on."""

    def __init__(
        self, broadcaster: EventBroadcaster, filter: EventFilter, cursor: str | None
    ) -> None:
        self._hub = broadcaster
        self._filter = filter
        self._cursor = cursor
        self._place: int | None = None
        """Where it goes on in the ring; None while it reads the table."""

    async def next(self) -> Batch:
        """The events that come next, when there are some."""
        while True:
            table = self._place is None
            if batch := await (self._from_table() if table else self._from_ring()):
                return batch

    async def _from_table(self) -> Batch:
        ring = self._hub.ring
        self._place = ring.after(self._cursor)
        if self._place is not None:
            return ()
        before = ring.end
        batch = await self._hub.events.after(self._cursor, self._filter, limit=PAGE)
        if batch:
            self._cursor = batch[-1].cursor
        if len(batch) < PAGE:
            await self._hub.catch_up()
            # The ring has read past this page by now. If its last event is not there it is older
            # than the ring, and whatever came before the page was read is in the page.
            place = ring.after(self._cursor)
            self._place = before if place is None else place
        return batch

    async def _from_ring(self) -> Batch:
        assert self._place is not None
        if not self._hub.ring.holds(self._place):
            self._place = None
            return ()
        fresh = self._hub.ring.since(self._place)
        if not fresh:
            await self._hub.news()
            return ()
        self._place += len(fresh)
        self._cursor = fresh[-1].cursor
        return tuple(filter(self._filter.admits, fresh))


async def page(
    ports: Ports, filter: EventFilter, since: str | None = None, limit: int = PAGE
) -> tuple[Batch, str | None]:
    """Events past a cursor, and the cursor to go on from. Raises Malformed for what is none."""
    found = await ports.events.after(_cursor(since), filter, limit=limit)
    return found, found[-1].cursor if found else since


async def listen(
    ports: Ports, filter: EventFilter, since: str | None = None
) -> tuple[str, Batches]:
    """Follow the log past a cursor, else from now on: where that is, and what comes after it.

    Raises Malformed for what is not a cursor, here and not when the first event is asked for.
    """
    start = await ports.events.latest() if since is None else since
    first = await ports.events.after(_cursor(start), filter, limit=PAGE)
    return start, _followed(ports, filter, _cursor(start), first)


async def listen_to_tenant(
    ports: Ports, actor: Actor, types: frozenset[str], since: str | None = None
) -> tuple[str, Batches]:
    """Follow all that happens in a tenant, as far as this caller may know of it."""
    start, batches = await listen(ports, EventFilter(actor.tenant, types=types), since)
    return start, _known_to(actor, batches)


async def _known_to(actor: Actor, batches: Batches) -> Batches:
    async with aclosing(batches):
        async for batch in batches:
            if known := tuple(event for event in batch if _may_know(actor, event)):
                yield known


def _may_know(actor: Actor, event: Event) -> bool:
    """What a person's agents share is nobody else's, and what it is called tells of it."""
    scope = event.scope
    if scope is None or not is_of_a_person(scope):
        return True
    leads = actor.kind is not CredentialKind.PERSON or actor.role in {Role.OWNER, Role.ADMIN}
    return leads or bool(actor.person and scope == items_of_person(actor.tenant, actor.person))


async def listen_to_run(
    ports: Ports, actor: Actor, run: Run, since: str | None = None
) -> tuple[str, Batches]:
    """Follow a run's own log, by default from its beginning; it ends when the run has.

    What this caller may not know of is left out.
    """
    start = BEGINNING if since is None else since
    log = EventFilter(run.tenant, run=run.id)
    first = await ports.events.after(_cursor(start), log, limit=PAGE)
    if await _is_over(ports, run):
        return start, _known_to(actor, _remaining(ports, log, _cursor(start)))
    followed = _followed(ports, log, _cursor(start), first)
    return start, _known_to(actor, _until_ended(followed))


async def page_of_run(
    ports: Ports, actor: Actor, run: Run, since: str
) -> tuple[Batch, str | None, bool]:
    """A part of a run's log: what this caller may know of, where to go on, whether that is all."""
    found, after = await page(ports, EventFilter(run.tenant, run=run.id), since)
    known = tuple(event for event in found if _may_know(actor, event))
    return known, after, len(found) < PAGE


def _cursor(since: str | None) -> str | None:
    return None if since == BEGINNING else since


async def _followed(ports: Ports, filter: EventFilter, cursor: str | None, first: Batch) -> Batches:
    if first:
        yield first
        cursor = first[-1].cursor
    async with broadcaster_of(ports.events) as broadcaster:
        listener = EventSubscriber(broadcaster, filter, cursor)
        while True:
            yield await listener.next()


async def _until_ended(batches: Batches) -> Batches:
    async with aclosing(batches):
        async for batch in batches:
            yield batch
            if any(event.type in _ENDS for event in batch):
                return


async def _remaining(ports: Ports, filter: EventFilter, cursor: str | None) -> Batches:
    while batch := await ports.events.after(cursor, filter, limit=PAGE):
        yield batch
        cursor = batch[-1].cursor


async def _is_over(ports: Ports, run: Run) -> bool:
    """Whether the log already shows how the run ended, or has forgotten it."""
    if run.status is RunStatus.RUNNING:
        return False
    ends = EventFilter(run.tenant, run=run.id, types=_ENDS)
    return not run.snapshot_kept or bool(await ports.events.after(None, ends, limit=1))
