"""REST endpoints for runs: start, list, get and end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.actions import run_reports
from carrel.actions.runs import run_entries, runs, snapshots
from carrel.actions.sessions.sessions import MAX_ENTRIES_PER_APPEND
from carrel.core.access import Permission
from carrel.core.accounts import tenant_from_record
from carrel.core.errors import Busy, Conflict, NotFound, PayloadTooLarge, ValidationError
from carrel.core.identifiers import Path, ScopeKind
from carrel.core.overlay.compose import File
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.skills.skill_folder import group_skills
from carrel.core.store.record import RecordType
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Instant, PageQuery, Total, milliseconds
from carrel.server.http.response import Response
from carrel.server.rest.agents.session_entries import MAX_ENTRIES_BYTES
from carrel.server.rest.agents.session_models import (
    NewEntryBody,
    SessionId,
    new_entry_from_body,
)
from carrel.server.rest.files.file_models import PositiveInt, Rfc3339, rfc3339
from carrel.server.rest.files.skills import SkillDigest
from carrel.server.rest.runs import (
    provenance,
    run_events,
    run_files,
    run_start,
    time_line,
    workflows,
)

_TAG: Final = "Runs"
AnyRequest = Request[Any, Any]
Text = Annotated[str, Meta(max_length=256)]


class SnapshotFileModel(ResponseModel, frozen=True):
    path: str
    version: PositiveInt
    layer: str
    """Kind of the layer that the file comes from."""


class RunSkillModel(ResponseModel, frozen=True):
    """A skill that the run could read."""

    name: str
    digest: SkillDigest
    file_count: Annotated[int, Meta(ge=1)] = msgspec.field(name="files")
    """How many files it has."""


class RunSummaryModel(ResponseModel, frozen=True, kw_only=True):
    run_id: str
    workflow_id: str
    status: RunStatus
    owner: dict[str, str]
    scope: Audience
    agent_id: str | None
    parent_run_id: str | None
    replay_of: str | None
    session_id: str | None
    started_at: Rfc3339
    ended_at: Rfc3339 | None
    reason: str | None
    """Why it ended, if its runtime reported that."""
    abandoned_at: Rfc3339 | None
    """When it stopped counting as running, since it did not report; it may have ended later."""
    completed_at: Rfc3339 | msgspec.UnsetType = msgspec.UNSET
    kept: bool


class RunModel(RunSummaryModel, frozen=True, kw_only=True):
    workspace: list[SnapshotFileModel]
    skills: list[RunSkillModel]
    """In order of name; computed from the snapshot."""


class RunPageModel(ResponseModel, frozen=True):
    items: list[RunSummaryModel]
    next: str | None
    total: Total


class RunCancelledModel(ResponseModel, frozen=True):
    run_id: str
    status: RunStatus


class RunHeartbeatModel(ResponseModel, frozen=True):
    run_id: str
    status: RunStatus
    lease_ends_at: Rfc3339 | None
    """When it becomes abandoned without another report; null if it ended, or never."""


class UpdateRunBody(RequestModel, frozen=True):
    status: Annotated[RunStatus, Meta(description="Not `abandoned`.")] | None = None
    reason: Annotated[str, Meta(max_length=4000, description="Why it ended.")] | None = None
    kept: bool | None = None
    entries: (
        Annotated[
            list[NewEntryBody],
            Meta(
                min_length=1,
                max_length=MAX_ENTRIES_PER_APPEND,
                description="Entries to append to the run's session first.",
            ),
        ]
        | None
    ) = None


class RunListQuery(PageQuery, frozen=True):
    status: RunStatus | None = None
    start: Annotated[Instant, Meta(description="Earliest start.")] | None = msgspec.field(
        default=None, name="from"
    )
    end: Annotated[Instant, Meta(description="Latest start, exclusive.")] | None = msgspec.field(
        default=None, name="to"
    )
    agent_id: Text | None = None
    workspace_id: Text | None = None
    session_id: Annotated[SessionId, Meta(description="Session of the agent `agentId`.")] | None = (
        None
    )


async def _tenant_slug(request: AnyRequest) -> str:
    """Slug of the caller's tenant."""
    id = request.actor.tenant
    [record] = await request.ports.records.get(id, RecordType.TENANT, [id])
    return tenant_from_record(record).slug if record else id


def run_to_summary(run: Run, tenant: str) -> RunSummaryModel:
    owner = {"tenant": tenant, "principal": run.author}
    if run.scope.kind is ScopeKind.WORKSPACE:
        owner["workspace"] = run.scope.name
    ended = rfc3339(run.ended_at) if run.ended_at else None
    return RunSummaryModel(
        run_id=run.id,
        workflow_id=run.workflow_id,
        status=run.status,
        owner=owner,
        scope=run.mode,
        agent_id=run.scope.name if run.scope.kind is ScopeKind.AGENT else None,
        parent_run_id=run.parent,
        replay_of=run.replay_of,
        session_id=run.session,
        started_at=rfc3339(run.started_at),
        ended_at=ended,
        reason=run.reason,
        abandoned_at=rfc3339(run.abandoned_at) if run.abandoned_at else None,
        completed_at=msgspec.UNSET if ended is None else ended,
        kept=run.snapshot_kept,
    )


@endpoint(
    "GET",
    "/v1/runs",
    query=RunListQuery,
    permission=Permission.RUNS_READ,
    responses={200: RunPageModel},
    refusals=(ValidationError, NotFound),
    id="runs_list",
    tag=_TAG,
)
async def list_runs(request: Request[None, RunListQuery]) -> Response:
    """List runs, newest first."""
    query = request.query
    page = await runs.list_runs(
        request.ports,
        request.actor,
        agent=query.agent_id,
        workspace=query.workspace_id,
        session=query.session_id,
        status=query.status,
        start=milliseconds(query.start) if query.start else 0,
        end=milliseconds(query.end) if query.end else None,
        cursor=query.cursor,
        limit=query.limit,
    )
    tenant = await _tenant_slug(request)
    items = [run_to_summary(run, tenant) for run in page.items]
    return Response.json(RunPageModel(items=items, next=page.next, total=page.total))


async def _run_response(request: AnyRequest, run: Run) -> Response:
    files: Mapping[Path, File] = {}
    try:
        files = (await snapshots.load_manifest(request.ports, run)).files
    except NotFound:  # The snapshot was released, possibly by a concurrent request.
        run = await runs.get(request.ports, request.actor, run.id)
    workspace = [
        SnapshotFileModel(path=file.path.text, version=file.version, layer=file.source.kind)
        for file in files.values()
    ]
    skills = [
        RunSkillModel(name=skill.name, digest=skill.digest, file_count=len(skill.files))
        for skill in group_skills(files)
        if skill.main_file is not None
    ]
    summary = run_to_summary(run, await _tenant_slug(request))
    return Response.json(
        RunModel(**msgspec.structs.asdict(summary), workspace=workspace, skills=skills)
    )


@endpoint(
    "GET",
    "/v1/runs/{id}",
    permission=Permission.RUNS_READ,
    responses={200: RunModel},
    refusals=(NotFound,),
    allow_unknown_query=True,
    id="runs_get",
    tag=_TAG,
)
async def get(request: Request) -> Response:
    """Get a run, with the version of each file in its snapshot."""
    return await _run_response(
        request, await runs.get(request.ports, request.actor, request.params["id"])
    )


async def _rebuild_patch(request: Request[UpdateRunBody], versions: tuple[int, ...]) -> Response:
    """The entries are stored; the rest may be repeated."""
    del versions
    return await _update(request)


@endpoint(
    "PATCH",
    "/v1/runs/{id}",
    body=UpdateRunBody,
    permission=Permission.RUNS_WRITE,
    responses={200: RunModel},
    refusals=(ValidationError, NotFound, Conflict, Busy, PayloadTooLarge),
    max_body=MAX_ENTRIES_BYTES,
    idempotent=True,
    rebuild=_rebuild_patch,
    id="runs_patch",
    tag=_TAG,
)
async def patch(request: Request[UpdateRunBody]) -> Response:
    """End a run, or release its snapshot; its last entries may come along."""
    if request.body.entries is not None:
        await run_entries.append(
            request.ports,
            request.actor,
            request.params["id"],
            [new_entry_from_body(entry) for entry in request.body.entries],
            request.body.status,
            request.idempotency_key,
        )
    return await _update(request)


async def _update(request: Request[UpdateRunBody]) -> Response:
    run = await runs.update(
        request.ports,
        request.actor,
        request.params["id"],
        status=request.body.status,
        reason=request.body.reason,
        keep_snapshot=request.body.kept,
    )
    return await _run_response(request, run)


@endpoint(
    "POST",
    "/v1/runs/{id}/cancel",
    body=dict[str, Any],
    permission=Permission.RUNS_WRITE,
    responses={200: RunCancelledModel},
    refusals=(ValidationError, NotFound, Conflict, Busy),
    idempotent=True,
    allow_unknown_query=True,
    id="runs_cancel",
    tag=_TAG,
)
async def cancel(request: AnyRequest) -> Response:
    """Cancel a run; the fields of the body are ignored.

    A cancelled run stays cancelled. The conflict of a run that ended otherwise names its status.
    """
    run = await runs.update(
        request.ports, request.actor, request.params["id"], status=RunStatus.CANCELLED
    )
    return Response.json(RunCancelledModel(run_id=run.id, status=run.status))


@endpoint(
    "POST",
    "/v1/runs/{id}/heartbeat",
    body=dict[str, Any],
    permission=Permission.RUNS_WRITE,
    responses={200: RunHeartbeatModel},
    refusals=(ValidationError, NotFound),
    idempotent=True,
    id="runs_heartbeat",
    tag=_TAG,
)
async def send_heartbeat(request: AnyRequest) -> Response:
    """Report that a run still runs; the fields of the body are ignored.

    Entries, tool calls and writes of a run are reports too. The status of a run that was ended or
    abandoned meanwhile is returned and stays as it is.
    """
    run = await run_reports.heartbeat(
        request.ports, await runs.get(request.ports, request.actor, request.params["id"])
    )
    lease = run_reports.lease_end(request.ports, run)
    lease_ends_at = None if lease is None else rfc3339(lease)
    return Response.json(
        RunHeartbeatModel(
            run_id=run.id,
            status=run.status,
            lease_ends_at=lease_ends_at,
        )
    )


ENDPOINTS: Final = (
    *(run_start.start, list_runs, get, patch, cancel, send_heartbeat),
    *run_files.ENDPOINTS,
    *run_events.ENDPOINTS,
    *workflows.ENDPOINTS,
    *provenance.ENDPOINTS,
    *time_line.ENDPOINTS,
)
