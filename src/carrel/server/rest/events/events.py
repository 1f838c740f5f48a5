"""Server-sent event streams of a workspace, a run and a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress
from typing import Annotated, Any, Final

from msgspec import Meta

from carrel.actions.events import streams
from carrel.actions.events.event_access import Batches
from carrel.actions.overlay import stacks
from carrel.core.access import Permission
from carrel.core.errors import Forbidden, ValidationError
from carrel.core.store.event import EVENT_TYPES, WORKSPACE_UPDATED, Event, EventFilter
from carrel.server.http import sse_transport
from carrel.server.http.endpoint import (
    LAST_EVENT_ID,
    Request,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.response import EVENT_STREAM, Response
from carrel.server.rest.files.file_models import PositiveInt, Rfc3339, rfc3339

_TAG: Final = "Events"
_MAX_STREAM_SECONDS: Final = 3600.0
"""A stream ends after this time, so that the client authenticates again."""
Cursor = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9_-]{0,128}$",
        description="Same as Last-Event-ID; 0 starts at the beginning.",
    ),
]


class EventModel(ResponseModel, frozen=True):
    """Event of a workspace or tenant. Carries no content."""

    event_id: str
    type: str
    payload: dict[str, Any]
    timestamp: Rfc3339
    workspace: dict[str, str] | None
    run_id: str | None


class RunEventModel(ResponseModel, frozen=True):
    """Entry of a run's event log."""

    event_id: str
    run_id: str
    type: str
    payload: dict[str, Any]
    timestamp: Rfc3339
    sequence: PositiveInt


class WorkspaceEventsQuery(RequestModel, frozen=True):
    since: Cursor | None = None


class TenantEventsQuery(RequestModel, frozen=True):
    types: Annotated[str, Meta(max_length=500, description="Event types, comma-separated.")] = ""
    since: Cursor | None = None


def event_to_model(event: Event) -> EventModel:
    scope = event.scope
    return EventModel(
        event_id=event.id,
        type=event.type,
        payload=dict(event.payload),
        timestamp=rfc3339(event.at),
        workspace={"kind": scope.kind, "name": scope.name} if scope else None,
        run_id=event.run,
    )


def run_event_to_model(event: Event) -> RunEventModel:
    return RunEventModel(
        event_id=event.id,
        run_id=event.run or "",
        type=event.type,
        payload=dict(event.payload),
        timestamp=rfc3339(event.at),
        sequence=event.sequence or 1,
    )


def resume_cursor(request: Request[Any, Any]) -> str | None:
    """Cursor from which the caller resumes, or None."""
    return request.header(b"last-event-id") or getattr(request.query, "since", None)


async def event_stream(start: str, batches: Batches, for_run: bool = False) -> AsyncIterator[bytes]:
    """Encode event batches; the first chunk carries the start cursor."""
    to_model = run_event_to_model if for_run else event_to_model
    deadline = asyncio.get_running_loop().time() + _MAX_STREAM_SECONDS
    async with aclosing(batches):
        yield sse_transport.RETRY_FIELD + f"id: {start}\n\n".encode()
        with suppress(TimeoutError):
            while batch := await _next_batch(batches, deadline):
                chunks = (
                    sse_transport.encode_event(to_model(event), id=event.cursor, type=event.type)
                    for event in batch
                )
                yield b"".join(chunks)


async def _next_batch(batches: Batches, deadline: float) -> tuple[Event, ...]:
    """Next events; empty at the end of the stream. Raises TimeoutError at `deadline`."""
    async with asyncio.timeout_at(deadline):
        async for batch in batches:
            return batch
    return ()


@endpoint(
    "GET",
    "/v1/host/workspace/events",
    query=WorkspaceEventsQuery,
    permission=Permission.EVENTS_READ,
    allow_unknown_query=True,
    responses={200: EVENT_STREAM},
    refusals=(ValidationError,),
    headers=(LAST_EVENT_ID,),
    id="workspace_events",
    tag=_TAG,
)
async def follow_workspace(request: Request[None, WorkspaceEventsQuery]) -> Response:
    """Stream changes of the caller's workspace."""
    stack = await stacks.default_stack(request.ports, request.actor)
    event_filter = EventFilter(
        request.actor.tenant, frozenset(stack), types=frozenset({WORKSPACE_UPDATED})
    )
    return await _stream_events(request, event_filter)


@endpoint(
    "GET",
    "/v1/events",
    query=TenantEventsQuery,
    permission=Permission.EVENTS_READ,
    responses={200: EVENT_STREAM},
    refusals=(ValidationError, Forbidden),
    headers=(LAST_EVENT_ID,),
    id="tenant_events",
    tag=_TAG,
)
async def follow_tenant(request: Request[None, TenantEventsQuery]) -> Response:
    """Stream all events of the tenant."""
    if request.actor.is_confined:
        raise Forbidden("this credential is confined to one workspace")
    types = frozenset(filter(None, (name.strip() for name in request.query.types.split(","))))
    if unknown := sorted(types - set(EVENT_TYPES)):
        raise ValidationError(
            f"{unknown[0][:80]!a} is not a type of event: {', '.join(EVENT_TYPES)}"
        )
    return await _stream_events(request, EventFilter(request.actor.tenant, types=types))


async def _stream_events(request: Request[Any, Any], filter: EventFilter) -> Response:
    subscription = await streams.listen_as(
        request.ports, request.actor, filter, resume_cursor(request)
    )
    return Response.stream(event_stream(*subscription))


ENDPOINTS: Final = (follow_workspace, follow_tenant)
