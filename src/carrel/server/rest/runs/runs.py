"""Runs over HTTP: starting them, looking at them, ending them."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.actions.runs import runs
from carrel.actions.runs.runs import RunRequest
from carrel.core.access import Permission
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError
from carrel.core.identifiers import ScopeKind
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.store.record import RecordType
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Number, When, rfc3339
from carrel.server.rest.runs import run_files

_TAG: Final = "Runs"
Asked = Request[Any, Any]
Text = Annotated[str, Meta(max_length=256)]


class NewRun(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """What may be asked for. Whatever else openwop's clients say is taken and left aside."""

    workflow_id: Text = ""
    agent_id: Text | None = None
    workspace_id: Text | None = None
    parent_run_id: Text | None = None
    share_snapshot: bool = False
    replay_of: Text | None = None
    scope: (
        Annotated[str, Meta(max_length=64, description="main, or anything else: shared.")] | None
    ) = None


_, _KNOWN = msgspec.json.schema_components([NewRun])
OpenRun: Any = Annotated[
    dict[str, Any],
    Meta(extra_json_schema={**_KNOWN["NewRun"], "additionalProperties": True}),
]
"""A NewRun, and perhaps more: `inputs`, `configurable`, `metadata`, `tags`, `tenantId` …"""


class RunCreated(ResponseModel, frozen=True):
    run_id: str
    status: RunStatus
    events_url: str
    status_url: str


class SnapshotFile(ResponseModel, frozen=True):
    path: str
    version: Number


class RunRow(ResponseModel, frozen=True):
    run_id: str
    workflow_id: str
    status: RunStatus
    owner: dict[str, str]
    scope: Audience
    agent_id: str | None
    parent_run_id: str | None
    replay_of: str | None
    started_at: When
    ended_at: When | None
    completed_at: When | None
    kept: bool


class RunModel(RunRow, frozen=True):
    workspace: list[SnapshotFile]


class RunPage(ResponseModel, frozen=True):
    items: list[RunRow]
    next: str | None


class RunPatch(RequestModel, frozen=True):
    status: RunStatus | None = None
    kept: bool | None = None


class RunsQuery(PageQuery, frozen=True):
    agent_id: Text | None = None
    workspace_id: Text | None = None


async def _tenant(call: Asked) -> str:
    """The tenant's slug, as people know it."""
    id = call.actor.tenant
    [record] = await call.ports.records.get(id, RecordType.TENANT, [id])
    return str(record.body["slug"]) if record else id


def row(run: Run, tenant: str) -> RunRow:
    owner = {"tenant": tenant, "principal": run.by}
    if run.scope.kind is ScopeKind.WORKSPACE:
        owner["workspace"] = run.scope.name
    ended = rfc3339(run.ended) if run.ended else None
    return RunRow(
        run_id=run.id,
        workflow_id=run.workflow,
        status=run.status,
        owner=owner,
        scope=run.mode,
        agent_id=run.scope.name if run.scope.kind is ScopeKind.AGENT else None,
        parent_run_id=run.parent,
        replay_of=run.replay_of,
        started_at=rfc3339(run.started),
        ended_at=ended,
        completed_at=ended,
        kept=run.snapshot_kept,
    )


@endpoint(
    "POST",
    "/v1/runs",
    body=OpenRun,
    permission=Permission.RUNS_WRITE,
    responses={201: RunCreated},
    refusals=(ValidationError, NotFound, Conflict, Busy),
    response_headers=("Location",),
    idempotent=True,
    id="runs_start",
    tag=_TAG,
)
async def start(call: Asked) -> Response:
    """Start a run: the workspace is frozen for it at this moment.

    It needs a `workflowId` or an `agentId`, unless it follows another run. Unknown fields are
    ignored.
    """
    try:
        asked = msgspec.convert(call.body, NewRun)
    except msgspec.ValidationError as wrong:
        raise ValidationError(f"the body does not fit: {wrong}") from None
    mode = (
        None if asked.scope is None else Audience.MAIN if asked.scope == "main" else Audience.SHARED
    )
    run = await runs.start(
        call.ports,
        call.actor,
        RunRequest(
            workflow=asked.workflow_id,
            agent=asked.agent_id,
            workspace=asked.workspace_id,
            parent=asked.parent_run_id,
            share_parent=asked.share_snapshot,
            replay_of=asked.replay_of,
            mode=mode,
        ),
    )
    url = f"/v1/runs/{run.id}"
    shown = RunCreated(run_id=run.id, status=run.status, events_url=f"{url}/events", status_url=url)
    return Response.json(shown, 201, {"Location": url})


@endpoint(
    "GET",
    "/v1/runs",
    query=RunsQuery,
    permission=Permission.RUNS_READ,
    responses={200: RunPage},
    refusals=(ValidationError, NotFound),
    id="runs_list",
    tag=_TAG,
)
async def listing(call: Request[None, RunsQuery]) -> Response:
    """List runs, newest first."""
    query = call.query
    found = await runs.page(
        call.ports,
        call.actor,
        agent=query.agent_id,
        workspace=query.workspace_id,
        cursor=query.cursor,
        limit=query.limit,
    )
    tenant = await _tenant(call)
    return Response.json(RunPage(items=[row(run, tenant) for run in found.items], next=found.next))


async def _shown(call: Asked, run: Run) -> Response:
    try:
        seen = (await runs.manifest(call.ports, run)).files.values()
    except NotFound:  # Its snapshot was let go, perhaps just now.
        run, seen = await runs.get(call.ports, call.actor, run.id), {}.values()
    workspace = [SnapshotFile(path=file.path.text, version=file.head.version) for file in seen]
    shown = row(run, await _tenant(call))
    return Response.json(RunModel(**msgspec.structs.asdict(shown), workspace=workspace))


@endpoint(
    "GET",
    "/v1/runs/{id}",
    permission=Permission.RUNS_READ,
    responses={200: RunModel},
    refusals=(NotFound,),
    id="runs_get",
    tag=_TAG,
)
async def get(call: Request) -> Response:
    """Show a run, and which version of which file it sees."""
    return await _shown(call, await runs.get(call.ports, call.actor, call.params["id"]))


@endpoint(
    "PATCH",
    "/v1/runs/{id}",
    body=RunPatch,
    permission=Permission.RUNS_WRITE,
    responses={200: RunModel},
    refusals=(ValidationError, NotFound, Conflict, Busy),
    idempotent=True,
    id="runs_patch",
    tag=_TAG,
)
async def patch(call: Request[RunPatch]) -> Response:
    """End a run, or let go of the snapshot that it holds."""
    run = await runs.change(
        call.ports, call.actor, call.params["id"], status=call.body.status, kept=call.body.kept
    )
    return await _shown(call, run)


ENDPOINTS: Final = (start, listing, get, patch, *run_files.ENDPOINTS)
