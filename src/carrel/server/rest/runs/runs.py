"""REST endpoints for runs: start, list, get and end."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.actions.runs import runs, snapshots
from carrel.actions.runs.runs import RunRequest
from carrel.core.access import Permission
from carrel.core.accounts import tenant_from_record
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError
from carrel.core.identifiers import ScopeKind
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.store.record import RecordType
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import PositiveInt, Rfc3339, rfc3339
from carrel.server.rest.runs import run_events, run_files, workflows

_TAG: Final = "Runs"
AnyRequest = Request[Any, Any]
Text = Annotated[str, Meta(max_length=256)]


class CreateRunBody(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """Known fields of a run; other fields sent by openwop clients are ignored."""

    workflow_id: Text = ""
    agent_id: Text | None = None
    workspace_id: Text | None = None
    parent_run_id: Text | None = None
    share_snapshot: bool = False
    replay_of: Text | None = None
    scope: (
        Annotated[str, Meta(max_length=64, description="`main`; any other value means shared.")]
        | None
    ) = None


_, _COMPONENTS = msgspec.json.schema_components([CreateRunBody])
OpenCreateRunBody: Any = Annotated[
    dict[str, Any],
    Meta(extra_json_schema={**_COMPONENTS["CreateRunBody"], "additionalProperties": True}),
]
"""CreateRunBody with additional fields allowed: `inputs`, `metadata`, `tags` …"""


class RunCreatedModel(ResponseModel, frozen=True):
    run_id: str
    status: RunStatus
    events_url: str
    status_url: str


class SnapshotFileModel(ResponseModel, frozen=True):
    path: str
    version: PositiveInt
    layer: str
    """Kind of the layer that the file comes from."""


class RunSummaryModel(ResponseModel, frozen=True, kw_only=True):
    run_id: str
    workflow_id: str
    status: RunStatus
    owner: dict[str, str]
    scope: Audience
    agent_id: str | None
    parent_run_id: str | None
    replay_of: str | None
    started_at: Rfc3339
    ended_at: Rfc3339 | None
    completed_at: Rfc3339 | msgspec.UnsetType = msgspec.UNSET
    kept: bool


class RunModel(RunSummaryModel, frozen=True, kw_only=True):
    workspace: list[SnapshotFileModel]


class RunPageModel(ResponseModel, frozen=True):
    items: list[RunSummaryModel]
    next: str | None


class RunCancelledModel(ResponseModel, frozen=True):
    run_id: str
    status: RunStatus


class UpdateRunBody(RequestModel, frozen=True):
    status: RunStatus | None = None
    kept: bool | None = None


class RunListQuery(PageQuery, frozen=True):
    agent_id: Text | None = None
    workspace_id: Text | None = None


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
        started_at=rfc3339(run.started_at),
        ended_at=ended,
        completed_at=msgspec.UNSET if ended is None else ended,
        kept=run.snapshot_kept,
    )


def _run_created(run: Run) -> Response:
    url = f"/v1/runs/{run.id}"
    model = RunCreatedModel(
        run_id=run.id, status=run.status, events_url=f"{url}/events", status_url=url
    )
    return Response.json(model, 201, {"Location": url})


async def _rebuild_start(request: AnyRequest, versions: tuple[int, ...]) -> Response:
    return _run_created(await runs.get_started(request.ports, request.actor, *versions))


@endpoint(
    "POST",
    "/v1/runs",
    body=OpenCreateRunBody,
    permission=Permission.RUNS_WRITE,
    responses={201: RunCreatedModel},
    refusals=(ValidationError, NotFound, Conflict, Busy),
    response_headers=("Location",),
    idempotent=True,
    rebuild=_rebuild_start,
    id="runs_start",
    tag=_TAG,
)
async def start(request: AnyRequest) -> Response:
    """Start a run with a snapshot of the workspace.

    Requires a `workflowId` or an `agentId`, unless it follows another run. Unknown fields are
    ignored.
    """
    try:
        body = msgspec.convert(request.body, CreateRunBody)
    except msgspec.ValidationError as error:
        raise ValidationError(f"invalid body: {error}") from None
    audience = (
        None if body.scope is None else Audience.MAIN if body.scope == "main" else Audience.SHARED
    )
    run = await runs.start(
        request.ports,
        request.actor,
        RunRequest(
            workflow=body.workflow_id,
            agent=body.agent_id,
            workspace=body.workspace_id,
            parent=body.parent_run_id,
            share_parent=body.share_snapshot,
            replay_of=body.replay_of,
            mode=audience,
        ),
        request.idempotency_key,
    )
    return _run_created(run)


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
        cursor=query.cursor,
        limit=query.limit,
    )
    tenant = await _tenant_slug(request)
    return Response.json(
        RunPageModel(items=[run_to_summary(run, tenant) for run in page.items], next=page.next)
    )


async def _run_response(request: AnyRequest, run: Run) -> Response:
    try:
        files = (await snapshots.load_manifest(request.ports, run)).files.values()
    except NotFound:  # The snapshot was released, possibly by a concurrent request.
        run, files = await runs.get(request.ports, request.actor, run.id), {}.values()
    workspace = [
        SnapshotFileModel(path=file.path.text, version=file.version, layer=file.source.kind)
        for file in files
    ]
    summary = run_to_summary(run, await _tenant_slug(request))
    return Response.json(RunModel(**msgspec.structs.asdict(summary), workspace=workspace))


@endpoint(
    "GET",
    "/v1/runs/{id}",
    permission=Permission.RUNS_READ,
    responses={200: RunModel},
    refusals=(NotFound,),
    id="runs_get",
    tag=_TAG,
)
async def get(request: Request) -> Response:
    """Get a run, with the version of each file in its snapshot."""
    return await _run_response(
        request, await runs.get(request.ports, request.actor, request.params["id"])
    )


@endpoint(
    "PATCH",
    "/v1/runs/{id}",
    body=UpdateRunBody,
    permission=Permission.RUNS_WRITE,
    responses={200: RunModel},
    refusals=(ValidationError, NotFound, Conflict, Busy),
    idempotent=True,
    id="runs_patch",
    tag=_TAG,
)
async def patch(request: Request[UpdateRunBody]) -> Response:
    """End a run, or release its snapshot."""
    run = await runs.update(
        request.ports,
        request.actor,
        request.params["id"],
        status=request.body.status,
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


ENDPOINTS: Final = (
    *(start, list_runs, get, patch, cancel),
    *run_files.ENDPOINTS,
    *run_events.ENDPOINTS,
    *workflows.ENDPOINTS,
)
