"""Tool calls: availability, permission, argument check, approval and execution.

Checks run in this order: the agent has the tool, the caller may use it, the arguments are valid,
the tool's own check passes. Only then the call runs or requests approval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import msgspec
from msgspec import structs

from carrel.actions.agents import agents
from carrel.actions.approvals import approvals
from carrel.actions.approvals.approvals import ApprovalRequest
from carrel.actions.git import history
from carrel.actions.overlay import stacks
from carrel.actions.run_reports import log_tool_call
from carrel.actions.runs import runs
from carrel.actions.sandbox.tool_access import load_tool_access
from carrel.actions.sessions import sessions
from carrel.core.access import Actor, Permission
from carrel.core.agents.config import is_allowed
from carrel.core.errors import NotFound, Refusal, TooManyCommands, ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.outages import failure_code_and_message
from carrel.core.runs import Audience, parse_audience
from carrel.core.sandbox.tool_access import (
    COMMAND_TOOLS,
    READ_TOOLS,
    SEARCH_TOOLS,
    WRITE_TOOLS,
    ToolAccess,
    available_tool_names,
)
from carrel.ports import CorruptContent, Ports
from carrel.tools.approval_reply import reply_from_approval
from carrel.tools.call_idempotency import run_call_once
from carrel.tools.registry import ALL_TOOLS
from carrel.tools.tool import ApprovalCheck, Tool, ToolArguments, ToolContext, ToolReply

ASYNC_STATUS: Final = "async_status"
"""Tool for background commands, which need a persistent sandbox."""
APPROVAL_RESULT: Final = "approval_result"
APPROVABLE_TOOLS: Final = frozenset((*WRITE_TOOLS, *COMMAND_TOOLS))
"""Tools whose calls may require approval."""
WORKSPACE_TOOLS: Final = frozenset(
    (*READ_TOOLS, *WRITE_TOOLS, *SEARCH_TOOLS, *COMMAND_TOOLS, ASYNC_STATUS, APPROVAL_RESULT)
)
"""Tools that depend on the agent's attached workspaces and sandboxes."""
MAX_CALL_ID_LENGTH: Final = 200


def available_tools(context: ToolContext, access: ToolAccess | None = None) -> Sequence[Tool]:
    """Tools of an agent, sorted by name.

    Without `access`, omits tools that depend on the configuration of its sandboxes.
    """
    config = context.config
    has_git = history.has_git(context.ports, config)
    names = available_tool_names(config)
    if names & APPROVABLE_TOOLS:
        names |= {APPROVAL_RESULT}
    if COMMAND_TOOLS[0] in names and _has_persistent_sandbox(access):
        names |= {ASYNC_STATUS}
    return [
        tool
        for tool in ALL_TOOLS
        if is_allowed(config.allowed_tools, tool.name)
        and (tool.name not in WORKSPACE_TOOLS or tool.name in names)
        and (has_git or not tool.requires_git)
    ]


async def tools_with_schemas(context: ToolContext) -> Sequence[tuple[Tool, Mapping[str, Any]]]:
    """Tools of an agent, each with its schema for this agent.

    A missing workspace or sandbox does not change the list; the call reports it.
    """
    access = await _load_access(context)
    return [(tool, _schema(tool, access)) for tool in available_tools(context, access)]


def _schema(tool: Tool, access: ToolAccess | None) -> Mapping[str, Any]:
    if tool.schema_for is None or access is None:
        return tool.schema
    return tool.schema_for(tool.schema, access)


def _has_persistent_sandbox(access: ToolAccess | None) -> bool:
    workspaces = access.workspaces if access else ()
    return any(
        workspace.sandbox is not None and workspace.sandbox.is_persistent
        for workspace in workspaces
    )


async def _load_access(context: ToolContext) -> ToolAccess | None:
    config = context.config
    if not available_tool_names(config):
        return None
    try:
        return await load_tool_access(context.ports, context.agent.tenant, config)
    except NotFound:
        return None


async def open_tool_context(
    ports: Ports,
    actor: Actor,
    agent: str,
    *,
    scope: str | None = None,
    session: str | None = None,
    run: str | None = None,
) -> ToolContext:
    """Load the context of a tool call. Raises NotFound.

    The audience is shared if scope, session or run is shared.
    """
    stack = await stacks.agent_stack(ports, actor, agent)
    record = await agents.get(ports, actor, stack[0].name)
    audiences = [parse_audience(scope)]
    run_record = await runs.get(ports, actor, run) if run is not None else None
    if run_record is not None:
        if run_record.scope != stack[0]:
            raise NotFound(f"no such run of this agent: {run}")
        audiences.append(run_record.mode)
    if session is not None:
        session_record = await sessions.get(ports, actor, record.id, session)
        audiences.append(session_record.mode)
        session = session_record.id
    audience = Audience.SHARED if Audience.SHARED in audiences else Audience.MAIN
    return ToolContext(ports, actor, record, stack, audience, session, run_record)


async def run_call(
    context: ToolContext, name: str, arguments: Mapping[str, Any], call_id: str | None = None
) -> ToolReply:
    """Run a tool call, or request approval.

    Raises NotFound if the agent has no such tool. Errors the model can correct are returned as a
    reply, and so is a pending approval. A repeated call id does not run again but returns the first
    result. Raises Conflict if the id was used for a different call, IdempotencyInFlight while it is
    running, and TooManyCommands if nothing was run.
    """
    tool = await find_tool(context, name)
    context = structs.replace(context, call_id=call_id)
    approval_request = _approval_request(context, tool, arguments)
    if existing := await approvals.find_for_call(
        context.ports, context.agent.tenant, approval_request
    ):
        return reply_from_approval(existing)
    try:
        args, check = await check_call(context, tool, arguments)
    except (Refusal, CorruptContent) as error:
        now = context.ports.clock.now()
        return await _log_call(context, tool, error_reply(tool, error), now)
    if check.requires_approval:
        gated_request = _with_check(approval_request, check)
        return reply_from_approval(
            await approvals.request_approval(context.ports, context.actor, gated_request)
        )
    if call_id is None or not tool.writes:
        return await _execute_logged(context, tool, args)
    return await run_call_once(
        context, approval_request, lambda: _execute_logged(context, tool, args)
    )


async def find_tool(context: ToolContext, name: str) -> Tool:
    """Tool the agent has and the caller may use. Raises NotFound and Forbidden."""
    access = await _load_access(context) if name == ASYNC_STATUS else None
    tool = next((tool for tool in available_tools(context, access) if tool.name == name), None)
    if tool is None:
        raise NotFound(f"this agent has no tool {name[:80]!a}")
    if tool.writes:
        context.actor.require(Permission.WORKSPACE_WRITE)
    return tool


async def check_call(
    context: ToolContext, tool: Tool, arguments: Mapping[str, Any]
) -> tuple[ToolArguments, ApprovalCheck]:
    """Parse and check a call. Raises a Refusal that the model can correct."""
    if tool.private_only and context.audience is Audience.SHARED:
        raise ValidationError(f"{tool.name} is not available in a shared session")
    try:
        args = tool.parse_arguments(arguments)
    except msgspec.ValidationError as error:
        raise ValidationError(f"the arguments of {tool.name} are invalid: {error}") from None
    return args, await tool.approval_check(context, args) if tool.approval_check else ApprovalCheck(
        requires_approval=False
    )


async def _execute_logged(context: ToolContext, tool: Tool, args: ToolArguments) -> ToolReply:
    """Run a tool as `execute` does and log the call."""
    started = context.ports.clock.now()
    return await _log_call(context, tool, await execute(context, tool, args), started)


async def _log_call(
    context: ToolContext, tool: Tool, reply: ToolReply, started: TimestampMs
) -> ToolReply:
    """Log a call of a run in the run's log, and return its reply."""
    if context.run is not None:
        duration_ms = context.ports.clock.now() - started
        with suppress(Exception):  # an outage; the call itself is done
            await log_tool_call(
                *(context.ports, context.actor, context.run, tool.name),
                is_error=reply.is_error,
                duration_ms=duration_ms,
            )
    return reply


async def execute(context: ToolContext, tool: Tool, args: ToolArguments) -> ToolReply:
    """Run a tool and convert its result or refusal to a reply. Raises TooManyCommands."""
    try:
        return _to_reply(await tool.run(context, args))
    except TooManyCommands:
        raise
    except (Refusal, CorruptContent) as error:
        return error_reply(tool, error)


def error_reply(tool: Tool, error: Refusal | CorruptContent) -> ToolReply:
    """Error reply; workspace tools prefix their message with `Error: `.

    That of damage has its code, which no change of the arguments would avoid.
    """
    message = str(error)
    keep_message = tool.name not in WORKSPACE_TOOLS or message.startswith(_ERROR_PREFIXES)
    structured = None
    if isinstance(error, CorruptContent):
        code, description = failure_code_and_message(error)
        structured = {"error": code, "message": description}
    content = message if keep_message else f"Error: {message}"
    return ToolReply(content, is_error=True, structured=structured)


_ERROR_PREFIXES: Final = ("Error: ", "Invalid path: ")


def _approval_request(
    context: ToolContext, tool: Tool, arguments: Mapping[str, Any]
) -> ApprovalRequest:
    call_id = context.call_id
    if call_id is not None and not (
        0 < len(call_id) <= MAX_CALL_ID_LENGTH and call_id.isprintable()
    ):
        raise ValidationError(f"a call id must have 1 to {MAX_CALL_ID_LENGTH} printable characters")
    return ApprovalRequest(
        agent=context.agent.id,
        tool=tool.name,
        arguments=arguments,
        mode=context.audience,
        run=context.run.id if context.run else None,
        session=context.session,
        call=call_id,
    )


def _with_check(approval_request: ApprovalRequest, check: ApprovalCheck) -> ApprovalRequest:
    return replace(
        approval_request,
        workspace=check.workspace,
        sandbox=check.sandbox,
        sandbox_config=check.sandbox_config,
        expected_version=check.expected_version,
    )


def _to_reply(value: object) -> ToolReply:
    if isinstance(value, ToolReply):
        return value
    if isinstance(value, str):
        return ToolReply(value)
    text = msgspec.json.encode(value)
    return ToolReply(text.decode(), structured=msgspec.json.decode(text))
