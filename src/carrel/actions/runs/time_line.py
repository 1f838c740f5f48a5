"""Time line of a run: its events and the entries of its sessions, in order of time."""

from __future__ import annotations

import base64
import binascii
import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from msgspec import Struct

from carrel.actions.agent_access import authorize_agent_read
from carrel.actions.events.event_access import select_visible
from carrel.actions.events.streams import store_cursor
from carrel.actions.public_cursors import conceal_event
from carrel.actions.records import Page
from carrel.actions.runs import runs
from carrel.core.access import Actor
from carrel.core.agents.private_access import PrivateResource
from carrel.core.errors import ValidationError
from carrel.core.identifiers import ScopeKind, TimestampMs
from carrel.core.runs import Run
from carrel.core.sessions.session import TranscriptHit
from carrel.core.store.event import RUN_STARTED, Event, EventFilter
from carrel.ports import Ports

MAX_ITEMS: Final = 200
"""Items of one page."""


class _Position(Struct, frozen=True, array_like=True):
    """Where the next page begins in each of the two lists."""

    event: str | None = None
    """Cursor of the last event, as the tenant sees it."""
    entry: tuple[TimestampMs, str, int] = (0, "", 0)


@dataclass(frozen=True, slots=True)
class TimeLineItem:
    """One event or one entry."""

    at: TimestampMs
    event: Event | None = None
    entry: TranscriptHit | None = None


async def list_time_line(
    ports: Ports, actor: Actor, id: str, *, cursor: str = "", limit: int = 100
) -> Page[TimeLineItem]:
    """List what happened in a run, oldest first. Raises NotFound, Forbidden and ValidationError.

    The cost of a page does not depend on what is before it.
    """
    run = await runs.get(ports, actor, id)
    position = _parse_cursor(cursor)
    events = await _read_events(ports, run, position, limit + 1)
    entries, has_more_entries = await _read_entries(ports, actor, run, position, limit + 1)
    end = entries[-1].at if has_more_entries else None
    merged = list(heapq.merge(events, entries, key=_order))
    complete = [item for item in merged if end is None or item.at <= end]
    page = complete[:limit]
    for item in page:
        position = _after(position, item)
    has_more = len(merged) > len(page) or has_more_entries
    return Page(await _visible(ports, actor, page), _to_cursor(position) if has_more else None)


def _order(item: TimeLineItem) -> tuple[TimestampMs, int]:
    """At the same time, entries are after the start of the run and before other events."""
    if item.event is None:
        return item.at, 1
    return item.at, 0 if item.event.type == RUN_STARTED else 2


async def _read_events(
    ports: Ports, run: Run, position: _Position, limit: int
) -> Sequence[TimeLineItem]:
    log = EventFilter(run.tenant, run=run.id)
    cursor = None if position.event is None else store_cursor(ports, log, position.event)
    events = await ports.events.read_after(cursor, log, limit=limit)
    return [TimeLineItem(event.at, event=conceal_event(ports, event)) for event in events]


async def _read_entries(
    ports: Ports, actor: Actor, run: Run, position: _Position, limit: int
) -> tuple[Sequence[TimeLineItem], bool]:
    """Return entries after a position, and whether large ones were left for the next page."""
    if run.scope.kind is not ScopeKind.AGENT:
        return (), False
    agent = run.scope.name
    await authorize_agent_read(ports, actor, PrivateResource.SESSIONS, agent)
    hits = await ports.sessions.read_of_run(
        run.tenant, agent, run.id, after=position.entry, limit=limit
    )
    is_cut = False
    if hits and len(hits) < limit:
        is_cut = bool(
            await ports.sessions.read_of_run(
                run.tenant, agent, run.id, after=_entry_position(hits[-1]), limit=1
            )
        )
    return [TimeLineItem(hit.entry.at, entry=hit) for hit in hits], is_cut


def _entry_position(hit: TranscriptHit) -> tuple[TimestampMs, str, int]:
    return hit.entry.at, hit.session, hit.entry.sequence


def _after(position: _Position, item: TimeLineItem) -> _Position:
    if item.entry is not None:
        return _Position(position.event, _entry_position(item.entry))
    return _Position(item.event.cursor if item.event else None, position.entry)


async def _visible(
    ports: Ports, actor: Actor, page: Sequence[TimeLineItem]
) -> tuple[TimeLineItem, ...]:
    """Omit the events that the caller may not see."""
    events = tuple(item.event for item in page if item.event)
    cursors = {event.cursor for event in await select_visible(ports, actor, events)}
    return tuple(item for item in page if item.event is None or item.event.cursor in cursors)


def _parse_cursor(text: str) -> _Position:
    if not text:
        return _Position()
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        return msgspec.json.decode(content, type=_Position)
    except (ValueError, binascii.Error, msgspec.DecodeError):
        raise ValidationError("the cursor is not of this list") from None


def _to_cursor(position: _Position) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")
