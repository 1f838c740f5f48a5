"""MCP handlers that list and call an agent's tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from msgspec import structs

from carrel.core.errors import NotFound, Refusal, ValidationError
from carrel.server.mcp import elicitation
from carrel.server.mcp.call_progress import CallProgress, LogLevel, report_progress
from carrel.server.mcp.request_context import CALL, McpRequest
from carrel.tools.approval_reply import approval_summary
from carrel.tools.calls import run_call, tools_with_schemas
from carrel.tools.schema_formats import SchemaFormat, describe_tool
from carrel.tools.tool import ToolContext, ToolReply

Context: TypeAlias = ServerRequestContext[Any, Any]


async def list_tools(request: McpRequest, ctx: Context) -> types.ListToolsResult:
    """List the agent's tools with their schemas for this agent."""
    context = await request.tool_context(ctx.meta)
    definitions = [
        describe_tool(tool, SchemaFormat.MCP, schema)
        for tool, schema in await tools_with_schemas(context)
    ]
    return types.ListToolsResult(
        tools=[types.Tool.model_validate(definition) for definition in definitions]
    )


async def call_tool(
    request: McpRequest,
    ctx: Context,
    params: types.CallToolRequestParams,
    log_level: LogLevel,
) -> types.CallToolResult | types.InputRequiredResult:
    """Call a tool. Errors the model can correct are results; others are MCP errors."""
    context = await request.tool_context(ctx.meta)
    progress = CallProgress(ctx, params.name, log_level)
    if params.request_state is not None:
        return reply_to_result(
            await elicitation.handle_elicitation_result(request, context, params)
        )
    try:
        reply = await _run_call(context, ctx, params, progress)
    except NotFound as error:
        raise MCPError(types.INVALID_PARAMS, str(error)) from None
    except Refusal as refusal:
        return reply_to_result(ToolReply(str(refusal), is_error=True))
    if reply.approval is not None:
        await progress.log("notice", "waiting for an approval")
        answer = await elicitation.ask_client(request, context, ctx, reply.approval)
        if isinstance(answer, types.InputRequiredResult):
            return answer
        reply = answer or reply
    return reply_to_result(reply)


async def _run_call(
    context: ToolContext,
    ctx: Context,
    params: types.CallToolRequestParams,
    progress: CallProgress,
) -> ToolReply:
    """Run the call and tell its stages to the client."""
    async with report_progress(progress) as report:
        context = structs.replace(context, on_progress=report)
        return await run_call(context, params.name, params.arguments or {}, _call_id(ctx.meta))


def _call_id(meta: Mapping[str, Any] | None) -> str | None:
    id = (meta or {}).get(CALL)
    if id is not None and not isinstance(id, str):
        raise ValidationError(f"{CALL} must be a string")
    return id


def reply_to_result(reply: ToolReply) -> types.CallToolResult:
    """MCP result: text, and structured content by the output schema of the tool."""
    structured = _structured_content(reply)
    return types.CallToolResult(
        content=[types.TextContent(text=reply.content)],
        is_error=reply.is_error,
        structured_content=structured,
    )


def _structured_content(reply: ToolReply) -> dict[str, Any] | None:
    """Structured content: of a call that waits, its approval.

    A result that is no error has some, since every tool has an output schema.
    """
    if reply.approval is not None:
        return {"approval": approval_summary(reply.approval)}
    if isinstance(reply.structured, dict):
        return reply.structured
    return None if reply.is_error else {}
