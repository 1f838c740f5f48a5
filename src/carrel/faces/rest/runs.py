"""Runs over HTTP: starting, ending and reading what they saw."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.actions import runs, streams
from carrel.actions.runs import Difference, Start
from carrel.core.access import Permission
from carrel.core.errors import Busy, Malformed, Missing, Taken
from carrel.core.event import Filter
from carrel.core.names import Kind, Path
from carrel.core.run import Mode, Run, Status
from carrel.faces.rest.answer import EVENT_STREAM, Answer
from carrel.faces.rest.endpoint import (
    IF_NONE_MATCH,
    LAST_EVENT_ID,
    Call,
    Received,
    Sent,
    endpoint,
)
from carrel.faces.rest.events import Cursor, RunEvent, poured, run_event, since
from carrel.faces.rest.fields import PageQuery
from carrel.faces.rest.files import matches, unchanged
from carrel.faces.rest.wire import (
    LayeredFile,
    LayeredFiles,
    Number,
    When,
    layered_file,
    moment,
)

_TAG: Final = "Runs"
_FROZEN: Final = "private, max-age=31536000, immutable"
Asked = Call[Any, Any]
Text = Annotated[str, Meta(max_length=256)]


class NewRun(Received, frozen=True):
    """What openwop's clients may say beside it is taken and left aside."""

    workflow_id: Text = ""
    agent_id: Text | None = None
    parent_run_id: Text | None = None
    share_snapshot: bool = False
    replay_of: Text | None = None
    scope: (
        Annotated[str, Meta(max_length=64, description="main, or anything else: shared.")] | None
    ) = None
    inputs: Any = None
    configurable: Any = None
    metadata: Any = None
    tags: Any = None
    callback_url: Any = None
    scope_id: Any = None
    tenant_id: Any = None


class Started(Sent, frozen=True):
    run_id: str
    status: Status
    events_url: str
    status_url: str


class Seen(Sent, frozen=True):
    path: str
    version: Number


class RunRow(Sent, frozen=True):
    run_id: str
    workflow_id: str
    status: Status
    owner: dict[str, str]
    scope: Mode
    agent_id: str | None
    parent_run_id: str | None
    replay_of: str | None
    started_at: When
    ended_at: When | None
    completed_at: When | None
    kept: bool


class RunShown(RunRow, frozen=True):
    workspace: list[Seen]


class RunPage(Sent, frozen=True):
    items: list[RunRow]
    next: str | None


class RunPatch(Received, frozen=True):
    status: Status | None = None
    kept: bool | None = None


class RunsQuery(PageQuery, frozen=True):
    agent_id: Text | None = None


class DiffQuery(Received, frozen=True):
    path: Annotated[str, Meta(max_length=1024)] | None = None


class Changed(Sent, frozen=True):
    path: str
    change: str
    before_version: Number | None
    after_version: Number | None
    diff: str | msgspec.UnsetType = msgspec.UNSET


class RunDiff(Sent, frozen=True):
    run_id: str
    changes: list[Changed]


class LogQuery(Received, frozen=True):
    since: Cursor | None = None


class RunEvents(Sent, frozen=True):
    events: list[RunEvent]
    is_complete: bool


def row(run: Run) -> RunRow:
    owner = {"tenant": run.tenant, "workspace": run.scope.name, "principal": run.by}
    ended = moment(run.ended) if run.ended else None
    return RunRow(
        run_id=run.id,
        workflow_id=run.workflow,
        status=run.status,
        owner=owner,
        scope=run.mode,
        agent_id=run.scope.name if run.scope.kind is Kind.AGENT else None,
        parent_run_id=run.parent,
        replay_of=run.replay_of,
        started_at=moment(run.started),
        ended_at=ended,
        completed_at=ended,
        kept=run.kept,
    )


@endpoint(
    "POST",
    "/v1/runs",
    body=NewRun,
    permission=Permission.RUNS_WRITE,
    answers={201: Started},
    refuses=(Malformed, Missing, Taken, Busy),
    gives=("Location",),
    idempotent=True,
    id="runs_start",
    tag=_TAG,
)
async def start(call: Call[NewRun]) -> Answer:
    """Start a run: the workspace is frozen for it at this moment."""
    asked = call.body
    mode = None if asked.scope is None else Mode.MAIN if asked.scope == "main" else Mode.SHARED
    run = await runs.start(
        call.world,
        call.actor,
        Start(
            workflow=asked.workflow_id,
            agent=asked.agent_id,
            parent=asked.parent_run_id,
            share_parent=asked.share_snapshot,
            replay_of=asked.replay_of,
            mode=mode,
        ),
    )
    url = f"/v1/runs/{run.id}"
    shown = Started(run_id=run.id, status=run.status, events_url=f"{url}/events", status_url=url)
    return Answer.json(shown, 201, {"Location": url})


@endpoint(
    "GET",
    "/v1/runs",
    query=RunsQuery,
    permission=Permission.RUNS_READ,
    answers={200: RunPage},
    refuses=(Malformed, Missing),
    id="runs_list",
    tag=_TAG,
)
async def listing(call: Call[None, RunsQuery]) -> Answer:
    """List runs, newest first."""
    query = call.query
    found = await runs.page(
        call.world, call.actor, agent=query.agent_id, cursor=query.cursor, limit=query.limit
    )
    return Answer.json(RunPage(items=[row(run) for run in found.items], next=found.next))


async def _shown(call: Asked, run: Run) -> Answer:
    seen = (await runs.manifest(call.world, run)).files.values() if run.kept else ()
    workspace = [Seen(path=file.path.text, version=file.head.version) for file in seen]
    return Answer.json(RunShown(**msgspec.structs.asdict(row(run)), workspace=workspace))


@endpoint(
    "GET",
    "/v1/runs/{id}",
    permission=Permission.RUNS_READ,
    answers={200: RunShown},
    refuses=(Missing,),
    id="runs_get",
    tag=_TAG,
)
async def get(call: Call) -> Answer:
    """Show a run, and which version of which file it sees."""
    return await _shown(call, await runs.get(call.world, call.actor, call.params["id"]))


@endpoint(
    "PATCH",
    "/v1/runs/{id}",
    body=RunPatch,
    permission=Permission.RUNS_WRITE,
    answers={200: RunShown},
    refuses=(Malformed, Missing, Taken, Busy),
    idempotent=True,
    id="runs_patch",
    tag=_TAG,
)
async def patch(call: Call[RunPatch]) -> Answer:
    """End a run, or let go of the snapshot that it holds."""
    run = await runs.change(
        call.world, call.actor, call.params["id"], status=call.body.status, kept=call.body.kept
    )
    return await _shown(call, run)


@endpoint(
    "GET",
    "/v1/runs/{id}/files",
    permission=Permission.WORKSPACE_READ,
    answers={200: LayeredFiles},
    refuses=(Missing,),
    id="runs_files",
    tag=_TAG,
)
async def frozen_files(call: Call) -> Answer:
    """List the files that a run sees."""
    run = await runs.get(call.world, call.actor, call.params["id"])
    seen = await runs.manifest(call.world, run)
    return Answer.json(LayeredFiles(files=[layered_file(file) for file in seen.files.values()]))


@endpoint(
    "GET",
    "/v1/runs/{id}/files/{path...}",
    permission=Permission.WORKSPACE_READ,
    answers={200: LayeredFile, 304: None},
    refuses=(Malformed, Missing),
    headers=(IF_NONE_MATCH,),
    gives=("ETag", "Cache-Control"),
    id="runs_file",
    tag=_TAG,
)
async def frozen_file(call: Call) -> Answer:
    """Read a file as a run sees it: the same bytes for ever."""
    run = await runs.get(call.world, call.actor, call.params["id"])
    file, content = await runs.file(call.world, run, Path(call.params["path"]))
    if matches(call, file.etag):
        return unchanged(file.etag)
    headers = {"ETag": file.etag, "Cache-Control": _FROZEN}
    return Answer.json(layered_file(file, content), headers=headers)


@endpoint(
    "GET",
    "/v1/runs/{id}/diff",
    query=DiffQuery,
    permission=Permission.WORKSPACE_READ,
    answers={200: RunDiff},
    refuses=(Malformed, Missing),
    id="runs_diff",
    tag=_TAG,
)
async def diff(call: Call[None, DiffQuery]) -> Answer:
    """Show what has changed in the workspace since; with a path, the text that changed there."""
    run = await runs.get(call.world, call.actor, call.params["id"])
    if call.query.path is None:
        found = await runs.diff(call.world, run)
        return Answer.json(RunDiff(run_id=run.id, changes=[_changed(each) for each in found]))
    one, text = await runs.difference(call.world, run, Path(call.query.path))
    return Answer.json(RunDiff(run_id=run.id, changes=[_changed(one, text)] if one else []))


def _changed(difference: Difference, text: str | None = None) -> Changed:
    before, after = difference.before, difference.after
    return Changed(
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
    loose_query=True,
    answers={200: RunEvents},
    refuses=(Malformed, Missing),
    headers=(LAST_EVENT_ID,),
    id="runs_events",
    tag=_TAG,
)
async def log(call: Call[None, LogQuery]) -> Answer:
    """Show a run's log as JSON, or follow it where text/event-stream is accepted."""
    run = await runs.get(call.world, call.actor, call.params["id"])
    if EVENT_STREAM in (call.header("accept") or ""):
        stream = await streams.listen_to_run(call.world, run, since(call))
        return Answer.stream(poured(*stream, of_run=True))
    wanted = Filter(run.tenant, run=run.id)
    found, _ = await streams.page(call.world, wanted, since(call) or streams.BEGINNING)
    complete = run.status is not Status.RUNNING
    return Answer.json(RunEvents(events=[run_event(each) for each in found], is_complete=complete))


ENDPOINTS: Final = (
    start,
    listing,
    get,
    patch,
    frozen_files,
    frozen_file,
    diff,
    log,
)
