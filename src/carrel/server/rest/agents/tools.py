"""REST endpoints that list and call an agent's tools."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.actions.idempotency import check_key
from carrel.core.access import Permission
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    IdempotencyInFlight,
    NotFound,
    TooManyCommands,
    ValidationError,
    WorkspaceTooLarge,
)
from carrel.core.sessions.session_ids import MAX_ID_LENGTH
from carrel.server.http.endpoint import (
    Request,
    RequestHeader,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.idempotency import IDEMPOTENCY_HEADER
from carrel.server.http.query_fields import Id
from carrel.server.http.response import Response
from carrel.server.rest.sandbox.approvals import ApprovalModel, approval_to_model
from carrel.tools.calls import MAX_CALL_ID_LENGTH, open_tool_context, tools_with_schemas
from carrel.tools.calls import run_call as call_tool
from carrel.tools.schema_formats import SchemaFormat, describe_tool

_TAG: Final = "Tools"
_CALL_KEY: Final = RequestHeader(
    "Idempotency-Key",
    f"The `callId`, if the body has none; at most {MAX_CALL_ID_LENGTH} characters.",
)


class ToolListQuery(RequestModel, frozen=True):
    dialect: SchemaFormat = SchemaFormat.MCP


class ToolListModel(ResponseModel, frozen=True):
    items: list[dict[str, Any]]
    """Tool definitions in the requested dialect."""
    next: str | None = None


class ToolCallBody(RequestModel, frozen=True):
    arguments: Annotated[dict[str, Any], Meta(max_length=64)] = msgspec.field(default_factory=dict)
    session_id: Annotated[str, Meta(max_length=MAX_ID_LENGTH)] | None = None
    scope: (
        Annotated[str, Meta(max_length=64, description="`main`; any other value means shared.")]
        | None
    ) = None
    run_id: Id | None = None
    call_id: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=MAX_CALL_ID_LENGTH,
                description="Idempotency id of the call: a repeated id does not run again.",
            ),
        ]
        | None
    ) = None


class ToolReplyModel(ResponseModel, frozen=True):
    content: str
    is_error: bool
    structured: Any | msgspec.UnsetType = msgspec.UNSET
    """Result as an object, by the tool's `outputSchema`; absent from most errors."""


class ToolApprovalPendingModel(ResponseModel, frozen=True):
    """The call awaits approval and has not run."""

    approval: ApprovalModel


@endpoint(
    "GET",
    "/v1/agents/{id}/tools",
    query=ToolListQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: ToolListModel},
    refusals=(NotFound,),
    tag=_TAG,
)
async def tools_list(request: Request[Any, ToolListQuery]) -> Response:
    """List an agent's tools, in the schema format of a model API."""
    context = await open_tool_context(request.ports, request.actor, request.params["id"])
    dialect = request.query.dialect
    items = [
        dict(describe_tool(tool, dialect, schema))
        for tool, schema in await tools_with_schemas(context)
    ]
    return Response.json(ToolListModel(items=items))


@endpoint(
    "POST",
    "/v1/agents/{id}/tools/{name}",
    body=ToolCallBody,
    permission=Permission.WORKSPACE_READ,
    responses={200: ToolReplyModel, 202: ToolApprovalPendingModel},
    refusals=(
        *(ValidationError, NotFound, Forbidden, Conflict, IdempotencyInFlight, Busy),
        *(WorkspaceTooLarge, TooManyCommands),
    ),
    headers=(_CALL_KEY,),
    tag=_TAG,
)
async def tools_call(request: Request[ToolCallBody]) -> Response:
    """Call a tool as an agent. Errors the model can correct return `isError`.

    If the call requires approval, the response is 202 with the approval: `GET` it until it has a
    result, or repeat the call with the same `callId`.
    """
    body = request.body
    call_id = body.call_id
    if call_id is None and (call_id := request.header(IDEMPOTENCY_HEADER)) is not None:
        check_key(call_id, _CALL_KEY.name)
    context = await open_tool_context(
        request.ports,
        request.actor,
        request.params["id"],
        scope=body.scope,
        session=body.session_id,
        run=body.run_id,
    )
    reply = await call_tool(context, request.params["name"], body.arguments, call_id)
    if reply.approval is not None:
        approval = await approval_to_model(request.ports, reply.approval)
        return Response.json(ToolApprovalPendingModel(approval=approval), 202)
    structured = msgspec.UNSET if reply.structured is None else reply.structured
    model = ToolReplyModel(content=reply.content, is_error=reply.is_error, structured=structured)
    return Response.json(model)


ENDPOINTS: Final = (tools_list, tools_call)
