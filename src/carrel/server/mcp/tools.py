"""An agent's tools over MCP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from carrel.core.errors import NotFound, Refusal, ValidationError
from carrel.server.mcp import elicitation
from carrel.server.mcp.request_context import CALL, McpRequest
from carrel.tools.calls import call, tools_with_schemas
from carrel.tools.schema_formats import SchemaFormat, described
from carrel.tools.tool import ToolReply

Context: TypeAlias = ServerRequestContext[Any, Any]


async def list_tools(visit: McpRequest, ctx: Context) -> types.ListToolsResult:
    """All that the agent has, each with its schema as it is for this agent."""
    context = await visit.tool_context(ctx.meta)
    told = [
        described(tool, SchemaFormat.MCP, schema)
        for tool, schema in await tools_with_schemas(context)
    ]
    return types.ListToolsResult(tools=[types.Tool.model_validate(one) for one in told])


async def call_tool(
    visit: McpRequest, ctx: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    """What the model can do something about comes back to it; all else is an error."""
    context = await visit.tool_context(ctx.meta)
    arguments = params.arguments or {}
    if params.request_state is not None:
        return result_of(await elicitation.handle_elicitation_result(visit, context, params))
    try:
        reply = await call(context, params.name, arguments, _call(ctx.meta))
    except NotFound as unknown:
        raise MCPError(types.INVALID_PARAMS, str(unknown)) from None
    except Refusal as refusal:
        return result_of(ToolReply(str(refusal), is_error=True))
    if reply.approval is not None:
        asked = await elicitation.ask_client(visit, context, ctx, reply.approval)
        if isinstance(asked, types.InputRequiredResult):
            return asked
        reply = asked or reply
    return result_of(reply)


def _call(meta: Mapping[str, Any] | None) -> str | None:
    id = (meta or {}).get(CALL)
    if id is not None and not isinstance(id, str):
        raise ValidationError(f"{CALL} is a text")
    return id


def result_of(reply: ToolReply) -> types.CallToolResult:
    """The text, and the same as an object where it is JSON."""
    structured = _structured(reply)
    return types.CallToolResult(
        content=[types.TextContent(text=reply.content)],
        is_error=reply.is_error,
        structured_content=structured,
    )


def _structured(reply: ToolReply) -> dict[str, Any] | None:
    """An object, as the protocol wants it; a list is one with items."""
    if reply.approval is not None:
        open_ = reply.approval
        told = {"id": open_.id, "status": str(open_.status), "tool": open_.tool}
        return {"approval": told}
    match reply.structured:
        case dict() as found:
            return found
        case list() as found:
            return {"items": found}
        case _:
            return None
