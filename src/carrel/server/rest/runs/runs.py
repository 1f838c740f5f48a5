"""Runs over HTTP: starting them, looking at them, ending them."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.actions.runs import runs
from carrel.actions.runs.runs import Start
from carrel.core.access import Permission
from carrel.core.errors import Busy, Malformed, Missing, Taken
from carrel.core.identifiers import Kind
from carrel.core.runs import Mode, Run, Status
from carrel.core.store.record import Noun
from carrel.server.http.endpoint import Call, Received, Sent, endpoint
from carrel.server.http.query_fields import PageQuery
from carrel.server.http.response import Answer
from carrel.server.rest.files.file_models import Number, When, moment
from carrel.server.rest.runs import run_files as frozen

_TAG: Final = "Runs"
Asked = Call[Any, Any]
Text = Annotated[str, Meta(max_length=256)]


class NewRun(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """What may be asked for. Whatever else openwop's clients say is taken and left aside."""

    workflow_id: Text = ""
    agent_id: Text | None = None
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


async def _tenant(call: Asked) -> str:
    """The tenant's slug, as people know it."""
    id = call.actor.tenant
    [record] = await call.world.records.get(id, Noun.TENANT, [id])
    return str(record.body["slug"]) if record else id


def row(run: Run, tenant: str) -> RunRow:
    owner = {"tenant": tenant, "principal": run.by}
    if run.scope.kind is Kind.WORKSPACE:
        owner["workspace"] = run.scope.name
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
    body=OpenRun,
    permission=Permission.RUNS_WRITE,
    answers={201: Started},
    refuses=(Malformed, Missing, Taken, Busy),
    gives=("Location",),
    idempotent=True,
    id="runs_start",
    tag=_TAG,
)
async def start(call: Asked) -> Answer:
    """Start a run: the workspace is frozen for it at this moment.

    It needs a `workflowId` or an `agentId`, unless it follows another run. Unknown fields are
    ignored.
    """
    try:
        asked = msgspec.convert(call.body, NewRun)
    except msgspec.ValidationError as wrong:
        raise Malformed(f"the body does not fit: {wrong}") from None
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
    tenant = await _tenant(call)
    return Answer.json(RunPage(items=[row(run, tenant) for run in found.items], next=found.next))


async def _shown(call: Asked, run: Run) -> Answer:
    try:
        seen = (await runs.manifest(call.world, run)).files.values()
    except Missing:  # Its snapshot was let go, perhaps just now.
        run, seen = await runs.get(call.world, call.actor, run.id), {}.values()
    workspace = [Seen(path=file.path.text, version=file.head.version) for file in seen]
    shown = row(run, await _tenant(call))
    return Answer.json(RunShown(**msgspec.structs.asdict(shown), workspace=workspace))


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


ENDPOINTS: Final = (start, listing, get, patch, *frozen.ENDPOINTS)
