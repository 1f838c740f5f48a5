"""REST endpoints for a run's event log: page, stream and long poll."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from carrel.actions.events import run_log
from carrel.actions.runs import runs
from carrel.core.access import Permission
from carrel.core.errors import NotFound, UnsupportedStreamMode, ValidationError
from carrel.core.runs import RunStatus
from carrel.server.http.endpoint import (
    LAST_EVENT_ID,
    Request,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.response import EVENT_STREAM, Response
from carrel.server.rest.events.events import (
    RunEventModel,
    event_stream,
    resume_cursor,
    run_event_to_model,
)

_TAG: Final = "Runs"
_STREAM_MODES: Final = ("updates", "debug")
_MAX_POLL_SECONDS: Final = 30
Position = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9_-]{0,128}$",
        description="`next` of a page, a `sequence` or an `eventId`; 0 starts at the beginning.",
    ),
]
Sequence = Annotated[int, Meta(ge=-1, le=2**31 - 1)]


class RunEventsQuery(RequestModel, frozen=True):
    since: Position | None = None
    stream_mode: Annotated[str, Meta(max_length=64)] = msgspec.field(
        default="updates", name="streamMode"
    )


class RunEventPollQuery(RunEventsQuery, frozen=True):
    last_sequence: (
        Annotated[Sequence, Meta(description="`sequence` of the last event received.")] | None
    ) = msgspec.field(default=None, name="lastSequence")
    after_sequence: Annotated[Sequence, Meta(description="Same as lastSequence.")] | None = (
        msgspec.field(default=None, name="afterSequence")
    )
    timeout: Annotated[
        int, Meta(ge=0, le=3600, description=f"Seconds, at most {_MAX_POLL_SECONDS} of them.")
    ] = _MAX_POLL_SECONDS


class RunEventPageModel(ResponseModel, frozen=True):
    events: list[RunEventModel]
    is_complete: bool
    """Whether these are the last events of the run."""
    next: str | None
    """Cursor to pass as `since`."""


class RunEventPollModel(RunEventPageModel, frozen=True):
    run_id: str
    status: RunStatus
    last_sequence: int
    """Sequence to pass next: that of the last event of the page."""
    is_terminal: bool
    """Same as isComplete."""


def _require_stream_mode(mode: str) -> None:
    """Check one mode, or several separated by commas."""
    if not set(mode.split(",")) <= set(_STREAM_MODES):
        message = f"streamMode {mode!a} is not supported; supported: {', '.join(_STREAM_MODES)}"
        raise UnsupportedStreamMode(message, supported=_STREAM_MODES)


@endpoint(
    "GET",
    "/v1/runs/{id}/events",
    query=RunEventsQuery,
    permission=Permission.RUNS_READ,
    allow_unknown_query=True,
    responses={200: RunEventPageModel},
    refusals=(ValidationError, UnsupportedStreamMode, NotFound),
    headers=(LAST_EVENT_ID,),
    id="runs_events",
    tag=_TAG,
)
async def list_run_events(request: Request[None, RunEventsQuery]) -> Response:
    """List a run's events as JSON, or stream them if text/event-stream is accepted.

    Last-Event-ID and `since` take the id of a streamed event, its `sequence` or its `eventId`.
    """
    run = await runs.get(request.ports, request.actor, request.params["id"])
    _require_stream_mode(request.query.stream_mode)
    since = resume_cursor(request)
    if EVENT_STREAM in (request.header(b"accept") or ""):
        stream = await run_log.listen_to_run(request.ports, request.actor, run, since)
        return Response.stream(event_stream(*stream, for_run=True))
    page = await run_log.poll_run(request.ports, request.actor, run, since)
    return Response.json(
        RunEventPageModel(
            events=[run_event_to_model(event) for event in page.events],
            is_complete=page.is_complete,
            next=page.next,
        )
    )


@endpoint(
    "GET",
    "/v1/runs/{id}/events/poll",
    query=RunEventPollQuery,
    permission=Permission.RUNS_READ,
    allow_unknown_query=True,
    responses={200: RunEventPollModel},
    refusals=(ValidationError, UnsupportedStreamMode, NotFound),
    id="runs_events_poll",
    tag=_TAG,
)
async def poll_run_events(request: Request[None, RunEventPollQuery]) -> Response:
    """Wait for the next events of a run; ends with none after `timeout` seconds.

    The response to an ended run is immediate.
    """
    query = request.query
    run = await runs.get(request.ports, request.actor, request.params["id"])
    _require_stream_mode(query.stream_mode)
    sequence = query.after_sequence if query.last_sequence is None else query.last_sequence
    since = query.since if sequence is None else str(max(sequence, 0))
    timeout = min(query.timeout, _MAX_POLL_SECONDS)
    page = await run_log.poll_run(request.ports, request.actor, run, since, timeout)
    return Response.json(
        RunEventPollModel(
            events=[run_event_to_model(event) for event in page.events],
            is_complete=page.is_complete,
            next=page.next,
            run_id=run.id,
            status=page.status,
            last_sequence=page.last_sequence,
            is_terminal=page.is_complete,
        )
    )


ENDPOINTS: Final = (list_run_events, poll_run_events)
