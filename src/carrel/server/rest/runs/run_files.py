"""What a run saw, over HTTP: its files, what has changed since, and its log."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from carrel.actions.events import streams
from carrel.actions.runs import diff as runs_diff
from carrel.actions.runs import runs
from carrel.actions.runs.diff import Difference
from carrel.core.access import Permission
from carrel.core.errors import Conflict, NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.runs import RunStatus
from carrel.server.http.conditional import matches
from carrel.server.http.endpoint import (
    IF_NONE_MATCH,
    LAST_EVENT_ID,
    Request,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.response import EVENT_STREAM, Response
from carrel.server.rest.events.events import Cursor, RunEvent, event_stream, run_event, since
from carrel.server.rest.files.file_models import Number, OverlayFile, OverlayFileList, layered_file

_TAG: Final = "Runs"
_FROZEN: Final = "private, max-age=31536000, immutable"


class DiffQuery(RequestModel, frozen=True):
    path: Annotated[str, Meta(max_length=1024)] | None = None


class ChangedFile(ResponseModel, frozen=True):
    path: str
    change: str
    before_version: Number | None
    after_version: Number | None
    diff: str | msgspec.UnsetType = msgspec.UNSET


class RunDiff(ResponseModel, frozen=True):
    run_id: str
    changes: list[ChangedFile]


class LogQuery(RequestModel, frozen=True):
    since: Cursor | None = None


class RunEvents(ResponseModel, frozen=True):
    events: list[RunEvent]
    is_complete: bool
    """Whether these are the last."""
    next: str | None
    """What to go on after, as `since`."""


@endpoint(
    "GET",
    "/v1/runs/{id}/files",
    permission=Permission.WORKSPACE_READ,
    responses={200: OverlayFileList},
    refusals=(NotFound,),
    id="runs_files",
    tag=_TAG,
)
async def frozen_files(call: Request) -> Response:
    """List the files that a run sees."""
    run = await runs.get(call.ports, call.actor, call.params["id"])
    seen = await runs.manifest(call.ports, run)
    return Response.json(
        OverlayFileList(files=[layered_file(file) for file in seen.files.values()])
    )


@endpoint(
    "GET",
    "/v1/runs/{id}/files/{path...}",
    permission=Permission.WORKSPACE_READ,
    responses={200: OverlayFile, 304: None},
    refusals=(ValidationError, NotFound, Conflict),
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag", "Cache-Control"),
    id="runs_file",
    tag=_TAG,
)
async def frozen_file(call: Request) -> Response:
    """Read a file as a run sees it: the same bytes for ever."""
    run = await runs.get(call.ports, call.actor, call.params["id"])
    file, content = await runs.file(call.ports, run, Path(call.params["path"]))
    headers = {"ETag": file.etag, "Cache-Control": _FROZEN}
    if matches(call, file.etag):
        return Response.empty(304, headers)
    return Response.json(layered_file(file, content), headers=headers)


@endpoint(
    "GET",
    "/v1/runs/{id}/diff",
    query=DiffQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: RunDiff},
    refusals=(ValidationError, NotFound),
    id="runs_diff",
    tag=_TAG,
)
async def diff(call: Request[None, DiffQuery]) -> Response:
    """Show what has changed in the workspace since; with a path, the text that changed there."""
    run = await runs.get(call.ports, call.actor, call.params["id"])
    if call.query.path is None:
        found = await runs_diff.diff(call.ports, run)
        return Response.json(RunDiff(run_id=run.id, changes=[_changed(each) for each in found]))
    one, text = await runs_diff.difference(call.ports, run, Path(call.query.path))
    return Response.json(RunDiff(run_id=run.id, changes=[_changed(one, text)] if one else []))


def _changed(difference: Difference, text: str | None = None) -> ChangedFile:
    before, after = difference.before, difference.after
    return ChangedFile(
        path=difference.path.text,
        change=difference.kind,
        before_version=before.head.version if before else None,
        after_version=after.head.version if after else None,
        diff=msgspec.UNSET if text is None else text,
    )


@endpoint(
    "GET",
    "/v1/runs/{id}/events",
    query=LogQuery,
    permission=Permission.RUNS_READ,
    allow_unknown_query=True,
    responses={200: RunEvents},
    refusals=(ValidationError, NotFound),
    headers=(LAST_EVENT_ID,),
    id="runs_events",
    tag=_TAG,
)
async def log(call: Request[None, LogQuery]) -> Response:
    """Show a run's log as JSON, or follow it where text/event-stream is accepted."""
    run = await runs.get(call.ports, call.actor, call.params["id"])
    if EVENT_STREAM in (call.header(b"accept") or ""):
        stream = await streams.listen_to_run(call.ports, call.actor, run, since(call))
        return Response.stream(event_stream(*stream, of_run=True))
    start = since(call) or streams.BEGINNING
    found, after, whole = await streams.page_of_run(call.ports, call.actor, run, start)
    shown = RunEvents(
        events=[run_event(each) for each in found],
        is_complete=run.status is not RunStatus.RUNNING and whole,
        next=after,
    )
    return Response.json(shown)


ENDPOINTS: Final = (frozen_files, frozen_file, diff, log)
