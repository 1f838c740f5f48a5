"""Calling a tool for an agent: which it has, what it may be asked here, and what comes back.

A call passes in this order: the agent has the tool, the caller may use it, the arguments are
understood, the tool's own gate finds nothing against it; only then does it run, or is asked about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec
from msgspec import structs

from carrel.actions.agents import agents
from carrel.actions.approvals import approvals
from carrel.actions.approvals.approvals import ApprovalRequest
from carrel.actions.overlay import stacks
from carrel.actions.runs import runs
from carrel.actions.sandbox.tool_access import load_tool_access
from carrel.actions.sessions import sessions
from carrel.core.access import Actor, Permission
from carrel.core.agents.config import AgentConfig, allows
from carrel.core.approvals import Approval, ToolResult
from carrel.core.errors import NotFound, Refusal, ValidationError
from carrel.core.runs import Audience, mode_of
from carrel.core.sandbox.tool_access import (
    READING,
    RUNNING,
    SEARCHING,
    WRITING,
    ToolAccess,
    available_tool_names,
)
from carrel.ports import CorruptContent, Ports
from carrel.tools import ALL
from carrel.tools.call_idempotency import run_call_once
from carrel.tools.tool import ApprovalCheck, Tool, ToolArguments, ToolContext, ToolReply

PERSISTENT: Final = "async_status"
"""What looks after commands that go on, which they do in persistent sandboxes only."""
WORKSPACE_TOOLS: Final = frozenset((*READING, *WRITING, *SEARCHING, *RUNNING, PERSISTENT))
"""The tools that an agent has by what it can reach."""
LONGEST_CALL: Final = 200


def available_tools(config: AgentConfig, hands: ToolAccess | None = None) -> Sequence[Tool]:
    """The tools that an agent has, in order of name.

    Without its hands, all but those that depend on what its sandboxes are like.
    """
    reached = available_tool_names(config)
    if RUNNING[0] in reached and _persists(hands):
        reached |= {PERSISTENT}
    return [
        tool
        for tool in ALL
        if allows(config.allowed_tools, tool.name)
        and (tool.name not in WORKSPACE_TOOLS or tool.name in reached)
    ]


async def tools_with_schemas(context: ToolContext) -> Sequence[tuple[Tool, Mapping[str, Any]]]:
    """The tools that an agent has, each with its schema as it is for this agent.

    What it refers to and is gone changes no list: a call will tell.
    """
    hands = await _hands(context)
    return [(tool, _schema(tool, hands)) for tool in available_tools(context.config, hands)]


def _schema(tool: Tool, hands: ToolAccess | None) -> Mapping[str, Any]:
    if tool.schema_for is None or hands is None:
        return tool.schema
    return tool.schema_for(tool.schema, hands)


def _persists(hands: ToolAccess | None) -> bool:
    reaches = hands.workspaces if hands else ()
    return any(one.sandbox is not None and one.sandbox.is_persistent for one in reaches)


async def _hands(context: ToolContext) -> ToolAccess | None:
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
    """Under which circumstances somebody calls. Raises Missing.

    Of scope, session and run the one with the most listeners decides.
    """
    stack = await stacks.agent_stack(ports, actor, agent)
    record = await agents.get(ports, actor, stack[0].name)
    modes = [mode_of(scope)]
    frozen = await runs.get(ports, actor, run) if run is not None else None
    if frozen is not None:
        if frozen.scope != stack[0]:
            raise NotFound(f"there is no run {run} of this agent")
        modes.append(frozen.mode)
    if session is not None:
        modes.append((await sessions.get(ports, actor, record.id, session)).mode)
    mode = Audience.SHARED if Audience.SHARED in modes else Audience.MAIN
    return ToolContext(ports, actor, record, stack, mode, session, frozen)


async def call(
    context: ToolContext, name: str, arguments: Mapping[str, Any], call_id: str | None = None
) -> ToolReply:
    """Do what a model asks for, or ask first. Raises Missing where the agent has no such tool.

    All that the model can do something about comes back to it as a reply; where somebody has to
    say yes first, that has the approval. A call of an id that was there before is not done again,
    but gives what the first gave or gives then; raises Taken where the first was another call, and
    InFlight while it is under way.
    """
    tool = await find_tool(context, name)
    context = structs.replace(context, call=call_id)
    question = _question(context, tool, arguments)
    if known := await approvals.find_for_call(context.ports, context.agent.tenant, question):
        return reply_from_approval(known)
    try:
        asked, gate = await check_call(context, tool, arguments)
    except (Refusal, CorruptContent) as refused:
        return error_reply(tool, refused)
    if gate.asks:
        wanted = _with_gate(question, gate)
        return reply_from_approval(
            await approvals.request_approval(context.ports, context.actor, wanted)
        )
    if call_id is None or not tool.writes:
        return await execute(context, tool, asked)
    return await run_call_once(context, question, lambda: execute(context, tool, asked))


async def find_tool(context: ToolContext, name: str) -> Tool:
    """A tool that the agent has and the caller may use. Raises Missing and Forbidden."""
    hands = await _hands(context) if name == PERSISTENT else None
    tool = next(
        (tool for tool in available_tools(context.config, hands) if tool.name == name), None
    )
    if tool is None:
        raise NotFound(f"this agent has no tool {name[:80]!a}")
    if tool.writes:
        context.actor.require(Permission.WORKSPACE_WRITE)
    return tool


async def check_call(
    context: ToolContext, tool: Tool, arguments: Mapping[str, Any]
) -> tuple[ToolArguments, ApprovalCheck]:
    """What a call means and where it would work, if nothing speaks against it.

    Raises a Refusal that the model can do something about.
    """
    if tool.private_only and context.mode is Audience.SHARED:
        raise ValidationError(f"{tool.name} is not available in a shared session")
    try:
        asked = tool.parse_arguments(arguments)
    except msgspec.ValidationError as wrong:
        raise ValidationError(f"the arguments of {tool.name} do not fit: {wrong}") from None
    return asked, await tool.approval_check(
        context, asked
    ) if tool.approval_check else ApprovalCheck(asks=False)


async def execute(context: ToolContext, tool: Tool, asked: ToolArguments) -> ToolReply:
    """Let a tool do its work, and say what it says."""
    try:
        return _to_reply(await tool.run(context, asked))
    except (Refusal, CorruptContent) as refused:
        return error_reply(tool, refused)


def reply_from_approval(approval: Approval) -> ToolReply:
    """What a model is told of a call that was asked about."""
    told = approval.told or ToolResult(f"waiting for a person to approve this call: {approval.id}")
    open_ = None if approval.lasts else approval
    return ToolReply(told.content, told.is_error, told.structured, open_)


def error_reply(tool: Tool, refused: Refusal | CorruptContent) -> ToolReply:
    """What a model is told that went wrong; those of the hands say so in the first word."""
    said = str(refused)
    plain = tool.name not in WORKSPACE_TOOLS or said.startswith(_SAYS_SO)
    return ToolReply(said if plain else f"Error: {said}", is_error=True)


_SAYS_SO: Final = ("Error: ", "Invalid path: ")


def _question(context: ToolContext, tool: Tool, arguments: Mapping[str, Any]) -> ApprovalRequest:
    call = context.call
    if call is not None and not (0 < len(call) <= LONGEST_CALL and call.isprintable()):
        raise ValidationError(
            f"the id of a call has 1 to {LONGEST_CALL} characters that can be printed"
        )
    return ApprovalRequest(
        agent=context.agent.id,
        tool=tool.name,
        arguments=arguments,
        mode=context.mode,
        run=context.run.id if context.run else None,
        session=context.session,
        call=call,
    )


def _with_gate(question: ApprovalRequest, gate: ApprovalCheck) -> ApprovalRequest:
    return replace(
        question,
        workspace=gate.workspace,
        sandbox=gate.sandbox,
        sandbox_revision=gate.revision,
    )


def _to_reply(value: object) -> ToolReply:
    if isinstance(value, ToolReply):
        return value
    if isinstance(value, str):
        return ToolReply(value)
    text = msgspec.json.encode(value)
    return ToolReply(text.decode(), structured=msgspec.json.decode(text))
