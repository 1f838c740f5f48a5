"""The tools of an agent, over HTTP."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.core.access import Permission
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    IdempotencyInFlight,
    NotFound,
    ValidationError,
)
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Id
from carrel.server.http.response import Response
from carrel.server.rest.sandbox.approvals import ApprovalModel, approval_shown
from carrel.tools.calls import LONGEST_CALL, open_tool_context, tools_with_schemas
from carrel.tools.calls import call as call_tool
from carrel.tools.schema_formats import SchemaFormat, described

_TAG: Final = "Tools"


class ToolsQuery(RequestModel, frozen=True):
    dialect: SchemaFormat = SchemaFormat.MCP


class Tools(ResponseModel, frozen=True):
    items: list[dict[str, Any]]
    """As the dialect has them."""
    next: str | None = None


class ToolCall(RequestModel, frozen=True):
    arguments: Annotated[dict[str, Any], Meta(max_length=64)] = msgspec.field(default_factory=dict)
    session_id: Annotated[str, Meta(max_length=128)] | None = None
    scope: (
        Annotated[
            str, Meta(max_length=64, description="`main` or `shared`; what is neither is shared.")
        ]
        | None
    ) = None
    run_id: Id | None = None
    call_id: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=LONGEST_CALL,
                description="What the caller calls this call: sent again it is not done again.",
            ),
        ]
        | None
    ) = None


class ToolReply(ResponseModel, frozen=True):
    content: str
    is_error: bool
    structured: Any | msgspec.UnsetType = msgspec.UNSET
    """The same as `content`, where that is JSON."""


class ToolApprovalPending(ResponseModel, frozen=True):
    """Nothing was done yet: somebody has to say yes first."""

    approval: ApprovalModel


@endpoint(
    "GET",
    "/v1/agents/{id}/tools",
    query=ToolsQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: Tools},
    refusals=(NotFound,),
    tag=_TAG,
)
async def tools_list(call: Request[Any, ToolsQuery]) -> Response:
    """List the tools that an agent has, in the words of whoever offers them to a model."""
    context = await open_tool_context(call.ports, call.actor, call.params["id"])
    dialect = call.query.dialect
    told = [
        dict(described(tool, dialect, schema)) for tool, schema in await tools_with_schemas(context)
    ]
    return Response.json(Tools(items=told))


@endpoint(
    "POST",
    "/v1/agents/{id}/tools/{name}",
    body=ToolCall,
    permission=Permission.WORKSPACE_READ,
    responses={200: ToolReply, 202: ToolApprovalPending},
    refusals=(ValidationError, NotFound, Forbidden, Conflict, IdempotencyInFlight, Busy),
    tag=_TAG,
)
async def tools_call(call: Request[ToolCall]) -> Response:
    """Call a tool for an agent. What the model can do something about comes back with `isError`.

    Where somebody has to say yes first, the answer is 202 with the approval: `GET` it until it has
    a result, or send the same call with the same `callId` again.
    """
    asked = call.body
    context = await open_tool_context(
        call.ports,
        call.actor,
        call.params["id"],
        scope=asked.scope,
        session=asked.session_id,
        run=asked.run_id,
    )
    reply = await call_tool(context, call.params["name"], asked.arguments, asked.call_id)
    if reply.approval is not None:
        return Response.json(ToolApprovalPending(approval=approval_shown(reply.approval)), 202)
    structured = msgspec.UNSET if reply.structured is None else reply.structured
    told = ToolReply(content=reply.content, is_error=reply.is_error, structured=structured)
    return Response.json(told)


ENDPOINTS: Final = (tools_list, tools_call)
