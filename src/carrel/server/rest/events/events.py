"""What happened, as it happens: server-sent events of a workspace, a run and a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Annotated, Any, Final

from msgspec import Meta

from carrel.actions.events import streams
from carrel.actions.events.streams import Batches
from carrel.actions.overlay import stacks
from carrel.core.access import Permission
from carrel.core.errors import Forbidden, ValidationError
from carrel.core.store.event import TYPES, UPDATED, Event, EventFilter
from carrel.server.http import sse
from carrel.server.http.endpoint import (
    LAST_EVENT_ID,
    Request,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.response import EVENT_STREAM, Response
from carrel.server.rest.files.file_models import Number, When, rfc3339

_TAG: Final = "Events"
_LONGEST: Final = 3600.0
"""Seconds after which a stream ends, so that its reader comes back and shows its credential."""
Cursor = Annotated[
    str, Meta(pattern="^[0-9.]{0,64}$", description="As Last-Event-ID; 0 is the beginning.")
]


class EventModel(ResponseModel, frozen=True):
    """An event of a workspace or a tenant, free of content."""

    event_id: str
    type: str
    payload: dict[str, Any]
    timestamp: When
    workspace: dict[str, str] | None
    run_id: str | None


class RunEvent(ResponseModel, frozen=True):
    """An entry of a run's log."""

    event_id: str
    run_id: str
    type: str
    payload: dict[str, Any]
    timestamp: When
    sequence: Number


class FollowQuery(RequestModel, frozen=True):
    since: Cursor | None = None


class TenantQuery(RequestModel, frozen=True):
    types: Annotated[str, Meta(max_length=500, description="Types of events, with commas.")] = ""
    since: Cursor | None = None


def told(event: Event) -> EventModel:
    scope = event.scope
    return EventModel(
        event_id=event.id,
        type=event.type,
        payload=dict(event.payload),
        timestamp=rfc3339(event.at),
        workspace={"kind": scope.kind, "name": scope.name} if scope else None,
        run_id=event.run,
    )


def run_event(event: Event) -> RunEvent:
    return RunEvent(
        event_id=event.id,
        run_id=event.run or "",
        type=event.type,
        payload=dict(event.payload),
        timestamp=rfc3339(event.at),
        sequence=event.sequence or 1,
    )


def since(call: Request[Any, Any]) -> str | None:
    """Where the caller left off."""
    return call.header(b"last-event-id") or getattr(call.query, "since", None)


async def event_stream(start: str, batches: Batches, of_run: bool = False) -> AsyncIterator[bytes]:
    """Events as bytes, as many at once as there are; first, where the stream stands."""
    shown = run_event if of_run else told
    ends = asyncio.get_running_loop().time() + _LONGEST
    async with aclosing(batches):
        yield sse.RETRY + f"id: {start}\n\n".encode()
        with suppress(TimeoutError):
            while batch := await _next(batches, ends):
                chunks = (sse.event(shown(each), id=each.cursor, type=each.type) for each in batch)
                yield b"".join(chunks)


async def _next(batches: Batches, ends: float) -> tuple[Event, ...]:
    """The events that come next, none where the stream is over. Raises TimeoutError."""
    async with asyncio.timeout_at(ends):
        async for batch in batches:
            return batch
    return ()


@endpoint(
    "GET",
    "/v1/host/workspace/events",
    query=FollowQuery,
    permission=Permission.EVENTS_READ,
    allow_unknown_query=True,
    responses={200: EVENT_STREAM},
    refusals=(ValidationError,),
    headers=(LAST_EVENT_ID,),
    id="workspace_events",
    tag=_TAG,
)
async def of_workspace(call: Request[None, FollowQuery]) -> Response:
    """Follow what changes in the caller's own workspace."""
    stack = await stacks.default_stack(call.ports, call.actor)
    wanted = EventFilter(call.actor.tenant, frozenset(stack), types=frozenset({UPDATED}))
    return Response.stream(event_stream(*await streams.listen(call.ports, wanted, since(call))))


@endpoint(
    "GET",
    "/v1/events",
    query=TenantQuery,
    permission=Permission.EVENTS_READ,
    responses={200: EVENT_STREAM},
    refusals=(ValidationError, Forbidden),
    headers=(LAST_EVENT_ID,),
    id="tenant_events",
    tag=_TAG,
)
async def of_tenant(call: Request[None, TenantQuery]) -> Response:
    """Follow everything that happens in the tenant."""
    if call.actor.is_confined:
        raise Forbidden("this credential is confined to one workspace")
    types = frozenset(filter(None, (name.strip() for name in call.query.types.split(","))))
    if unknown := sorted(types - set(TYPES)):
        raise ValidationError(f"{unknown[0][:80]!a} is not a type of event: {', '.join(TYPES)}")
    heard = await streams.listen_to_tenant(call.ports, call.actor, types, since(call))
    return Response.stream(event_stream(*heard))


ENDPOINTS: Final = (of_workspace, of_tenant)
