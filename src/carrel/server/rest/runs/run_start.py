"""REST endpoint that starts a run, with its files, prompt and tools if requested."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from carrel.actions.runs import runs
from carrel.actions.runs.run_request import RunRequest
from carrel.core.access import Permission
from carrel.core.errors import Busy, Conflict, NotFound, ValidationError
from carrel.core.runs import Audience, Run, RunStatus
from carrel.server.http.endpoint import IF_NONE_MATCH, Request, ResponseModel, endpoint
from carrel.server.http.not_modified import etag_matches
from carrel.server.http.response import JSON_TYPE, Response, encode, encode_headers
from carrel.server.rest.agents.prompts import PromptModel
from carrel.server.rest.agents.session_models import SessionId
from carrel.server.rest.files.file_models import OverlayFileModel
from carrel.server.rest.runs.run_parts import RunPart, composed_etag, load_parts
from carrel.tools.schema_formats import SchemaFormat

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
    session_id: (
        Annotated[
            SessionId,
            Meta(description="Session of the agent that the run answers in; started if absent."),
        ]
        | None
    ) = None
    scope: (
        Annotated[str, Meta(max_length=64, description="`main`; any other value means shared.")]
        | None
    ) = None
    include: Annotated[
        list[RunPart], Meta(max_length=8, description="Parts to return with the run.")
    ] = msgspec.field(default_factory=list)
    dialect: Annotated[SchemaFormat, Meta(description="Format of the included tools.")] = (
        SchemaFormat.MCP
    )


_, _COMPONENTS = msgspec.json.schema_components(
    [CreateRunBody], ref_template="#/components/schemas/{name}"
)
OpenCreateRunBody: Any = Annotated[
    dict[str, Any],
    Meta(extra_json_schema={**_COMPONENTS["CreateRunBody"], "additionalProperties": True}),
]
"""CreateRunBody with additional fields allowed: `inputs`, `metadata`, `tags` …"""


class RunCreatedModel(ResponseModel, frozen=True):
    """A started run, with the parts that were requested."""

    run_id: str
    status: RunStatus
    events_url: str
    status_url: str
    session_id: str | UnsetType = UNSET
    etag: str | UnsetType = UNSET
    """ETag of all included parts."""
    etags: dict[RunPart, str] | UnsetType = UNSET
    """ETag of each included part. A part that If-None-Match names is omitted."""
    not_modified: bool | UnsetType = UNSET
    """Whether all parts are omitted, since If-None-Match names them."""
    files: list[OverlayFileModel] | UnsetType = UNSET
    prompt: PromptModel | UnsetType = UNSET
    tools: list[dict[str, Any]] | UnsetType = UNSET


def _parse_body(request: AnyRequest) -> CreateRunBody:
    try:
        return msgspec.convert(request.body, CreateRunBody)
    except msgspec.ValidationError as error:
        raise ValidationError(f"invalid body: {error}") from None


async def _rebuild_start(request: AnyRequest, versions: tuple[int, ...]) -> Response:
    run = await runs.get_started(request.ports, request.actor, *versions)
    facts = _run_facts(run)
    return Response.json(facts, 201, {"Location": facts["statusUrl"]})


def _run_facts(run: Run) -> dict[str, Any]:
    url = f"/v1/runs/{run.id}"
    facts: dict[str, Any] = {
        "runId": run.id,
        "status": run.status,
        "eventsUrl": f"{url}/events",
        "statusUrl": url,
    }
    return facts if run.session is None else {**facts, "sessionId": run.session}


async def _complete_replay(request: AnyRequest, response: Response) -> Response:
    """Add the included parts, which were not stored, to a replayed response."""
    include = _parse_body(request).include
    if response.status != 201 or not include:
        return response
    facts = msgspec.json.decode(response.body)
    run = await runs.get(request.ports, request.actor, facts["runId"])
    completed = await _with_parts(request, run, facts, is_current=False)
    completed.headers += [pair for pair in response.headers if pair not in completed.headers]
    return completed


@endpoint(
    "POST",
    "/v1/runs",
    body=OpenCreateRunBody,
    permission=Permission.RUNS_WRITE,
    responses={201: RunCreatedModel},
    refusals=(ValidationError, NotFound, Conflict, Busy),
    headers=(IF_NONE_MATCH,),
    response_headers=("Location", "ETag"),
    idempotent=True,
    rebuild=_rebuild_start,
    complete=_complete_replay,
    allow_unknown_query=True,
    id="runs_start",
    tag=_TAG,
)
async def start(request: AnyRequest) -> Response:
    """Start a run with a snapshot of the workspace.

    Requires a `workflowId` or an `agentId`, unless it follows another run. With `include`, the
    response has the frozen files, the prompt and the tools; parts whose ETag, or that of all,
    is in `If-None-Match` are omitted. Unknown fields are ignored.
    """
    body = _parse_body(request)
    if body.include:
        request.actor.require(Permission.WORKSPACE_READ)
    run = await runs.start(
        request.ports, request.actor, _run_request(body), request.idempotency_key
    )
    facts = _run_facts(run)
    if not body.include:
        return Response.json(facts, 201, {"Location": facts["statusUrl"]})
    try:
        is_current = body.replay_of is None and not body.share_snapshot
        return await _with_parts(request, run, facts, is_current=is_current)
    except BaseException:
        await runs.abandon_start(request.ports, run, request.idempotency_key)
        raise


def _run_request(body: CreateRunBody) -> RunRequest:
    audience = (
        None if body.scope is None else Audience.MAIN if body.scope == "main" else Audience.SHARED
    )
    return RunRequest(
        workflow=body.workflow_id,
        agent=body.agent_id,
        workspace=body.workspace_id,
        parent=body.parent_run_id,
        share_parent=body.share_snapshot,
        replay_of=body.replay_of,
        mode=audience,
        session=body.session_id,
    )


async def _with_parts(
    request: AnyRequest, run: Run, facts: dict[str, Any], *, is_current: bool
) -> Response:
    """Response for a run with its included parts; without them it is stored for replays."""
    body = _parse_body(request)
    parts = await load_parts(request, run, body.include, body.dialect, is_current=is_current)
    etag = composed_etag(parts)
    is_known = etag_matches(request, etag)
    sent = {
        name: part.body
        for name, part in parts.items()
        if not (is_known or etag_matches(request, part.etag))
    }
    etags = {name: part.etag for name, part in parts.items()}
    head = encode({**facts, "etag": etag, "etags": etags, "notModified": not sent})
    chunks = (chunk for name in sent for chunk in (b',"%b":' % name.encode(), sent[name]))
    headers = encode_headers({"Location": facts["statusUrl"], "ETag": etag})
    response = Response(201, b"".join((head[:-1], *chunks, b"}")), [JSON_TYPE, *headers])
    response.stored_body = encode(facts)
    return response
