"""A run's event log: pages, streams and long polls, resumed by cursor, sequence or id."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final

from carrel.actions.events.event_access import Batch, Batches, select_visible, visible_to
from carrel.actions.events.streams import (
    PAGE_SIZE,
    conceal_batches,
    follow,
    store_cursor,
)
from carrel.actions.public_cursors import (
    EVENT_ID_PREFIX,
    FROM_START,
    conceal_event,
    reveal_event_id,
)
from carrel.core.access import Actor
from carrel.core.errors import ValidationError
from carrel.core.runs import Run, RunStatus
from carrel.core.store.event import RUN_ENDED_BY_STATUS, EventFilter
from carrel.ports import Ports

_RUN_END_TYPES: Final = frozenset(RUN_ENDED_BY_STATUS.values())
_MAX_SEQUENCE_DIGITS: Final = 18
"""A cursor is longer."""


@dataclass(frozen=True, slots=True)
class RunEventPage:
    """Events of a run that the caller may see, and where to go on."""

    events: Batch
    next: str
    last_sequence: int
    """Of the last event before `next`, visible to the caller or not; 0 if there is none."""
    status: RunStatus
    is_complete: bool
    """Whether the run has ended and no event follows these."""


@dataclass(frozen=True, slots=True)
class _Position:
    cursor: str
    """As the tenant sees it."""
    sequence: int | None
    """Of the event before the position, if it was looked up."""


async def listen_to_run(
    ports: Ports, actor: Actor, run: Run, since: str | None = None
) -> tuple[str, Batches]:
    """Follow the events of a run that the caller may see, by default from its start.

    The stream ends when the run ends. Raises ValidationError for an invalid position.
    """
    log = EventFilter(run.tenant, run=run.id)
    start = (await _find_position(ports, log, since)).cursor
    cursor = store_cursor(ports, log, start)
    first = await ports.events.read_after(cursor, log, limit=PAGE_SIZE)
    if await _has_ended(ports, run):
        followed = _remaining(ports, log, cursor)
    else:
        followed = _until_ended(follow(ports, log, cursor, first))
    return start, visible_to(ports, actor, conceal_batches(ports, followed))


async def poll_run(
    ports: Ports, actor: Actor, run: Run, since: str | None = None, seconds: float = 0
) -> RunEventPage:
    """Return the events after a position; wait up to `seconds` for the first.

    Does not wait for a run that has ended. Raises ValidationError for an invalid position.
    """
    log = EventFilter(run.tenant, run=run.id)
    start = await _find_position(ports, log, since)
    cursor = store_cursor(ports, log, start.cursor)
    has_ended = await _has_ended(ports, run)
    events = await ports.events.read_after(cursor, log, limit=PAGE_SIZE)
    if not (events or has_ended) and seconds:
        events = await _wait_for_events(follow(ports, log, cursor, ()), seconds)
    if events:
        sequence = events[-1].sequence
    else:
        sequence = await _last_sequence(ports, log) if start.sequence is None else start.sequence
    has_ended = has_ended or any(event.type in _RUN_END_TYPES for event in events)
    [current] = await ports.runs.get(run.tenant, [run.id])
    public = tuple(conceal_event(ports, event) for event in events)
    return RunEventPage(
        events=await select_visible(ports, actor, public),
        next=public[-1].cursor if public else start.cursor,
        last_sequence=sequence or 0,
        status=(current or run).status,
        is_complete=has_ended and len(events) < PAGE_SIZE,
    )


async def _wait_for_events(batches: Batches, seconds: float) -> Batch:
    async with aclosing(batches):
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await anext(batches)
    return ()


async def _find_position(ports: Ports, log: EventFilter, since: str | None) -> _Position:
    """Position after a cursor, a sequence or an event's id. Raises ValidationError."""
    if since is None or since == FROM_START:
        return _Position(FROM_START, 0)
    if since.isascii() and since.isdigit() and len(since) <= _MAX_SEQUENCE_DIGITS:
        return await _position_after_sequence(ports, log, int(since))
    if since.startswith(EVENT_ID_PREFIX):
        return await _position_after_id(ports, log, since)
    return _Position(since, None)


async def _position_after_sequence(ports: Ports, log: EventFilter, sequence: int) -> _Position:
    """Position after the last event up to the sequence."""
    position = _Position(FROM_START, 0)
    async for batch in _remaining(ports, log, None):
        for event in batch:
            if (event.sequence or 0) > sequence:
                return position
            position = _Position(conceal_event(ports, event).cursor, event.sequence)
    return position


async def _position_after_id(ports: Ports, log: EventFilter, id: str) -> _Position:
    stored_id = reveal_event_id(ports, log.tenant, id)
    async for batch in _remaining(ports, log, None):
        for event in batch:
            if event.id == stored_id:
                return _Position(conceal_event(ports, event).cursor, event.sequence)
    raise ValidationError("the run has no such event")


async def _last_sequence(ports: Ports, log: EventFilter) -> int | None:
    sequence = None
    async for batch in _remaining(ports, log, None):
        sequence = batch[-1].sequence
    return sequence


async def _until_ended(batches: Batches) -> Batches:
    async with aclosing(batches):
        async for batch in batches:
            yield batch
            if any(event.type in _RUN_END_TYPES for event in batch):
                return


async def _remaining(ports: Ports, filter: EventFilter, cursor: str | None) -> Batches:
    while batch := await ports.events.read_after(cursor, filter, limit=PAGE_SIZE):
        yield batch
        cursor = batch[-1].cursor


async def _has_ended(ports: Ports, run: Run) -> bool:
    """Return whether the log holds the run's end event or no longer holds the run."""
    if not run.has_ended:
        return False
    end_filter = EventFilter(run.tenant, run=run.id, types=_RUN_END_TYPES)
    return not run.snapshot_kept or bool(await ports.events.read_after(None, end_filter, limit=1))
