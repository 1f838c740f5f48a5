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
from carrel.actions.approvals.approvals import Question
from carrel.actions.overlay import stacks
from carrel.actions.runs import runs
from carrel.actions.sandbox.tool_access import hands_of
from carrel.actions.sessions import sessions
from carrel.core.access import Actor, Permission
from carrel.core.agents.config import Config, allows
from carrel.core.approvals import Approval, Result
from carrel.core.errors import Malformed, Missing, Refusal
from carrel.core.runs import Mode, mode_of
from carrel.core.sandbox.tool_access import READING, RUNNING, SEARCHING, WRITING, Hands, surface
from carrel.ports import Corrupt, World
from carrel.tools import ALL
from carrel.tools.call_idempotency import once
from carrel.tools.tool import Asked, Gate, Reply, Sitting, Tool

PERSISTENT: Final = "async_status"
"""What looks after commands that go on, which they do in persistent sandboxes only."""
HANDS: Final = frozenset((*READING, *WRITING, *SEARCHING, *RUNNING, PERSISTENT))
"""The tools that an agent has by what it can reach."""
LONGEST_CALL: Final = 200


def offered(config: Config, hands: Hands | None = None) -> Sequence[Tool]:
    """The tools that an agent has, in order of name.

    Without its hands, all but those that depend on what its sandboxes are like.
    """
    reached = surface(config)
    if RUNNING[0] in reached and _persists(hands):
        reached |= {PERSISTENT}
    return [
        tool
        for tool in ALL
        if allows(config.allowed_tools, tool.name)
        and (tool.name not in HANDS or tool.name in reached)
    ]


async def fitted(sitting: Sitting) -> Sequence[tuple[Tool, Mapping[str, Any]]]:
    """The tools that an agent has, each with its schema as it is for this agent.

    What it refers to and is gone changes no list: a call will tell.
    """
    hands = await _hands(sitting)
    return [(tool, _schema(tool, hands)) for tool in offered(sitting.config, hands)]


def _schema(tool: Tool, hands: Hands | None) -> Mapping[str, Any]:
    if tool.fitted is None or hands is None:
        return tool.schema
    return tool.fitted(tool.schema, hands)


def _persists(hands: Hands | None) -> bool:
    reaches = hands.workspaces if hands else ()
    return any(one.sandbox is not None and one.sandbox.is_persistent for one in reaches)


async def _hands(sitting: Sitting) -> Hands | None:
    config = sitting.config
    if not surface(config):
        return None
    try:
        return await hands_of(sitting.world, sitting.agent.tenant, config)
    except Missing:
        return None


async def seat(
    world: World,
    actor: Actor,
    agent: str,
    *,
    scope: str | None = None,
    session: str | None = None,
    run: str | None = None,
) -> Sitting:
    """Under which circumstances somebody calls. Raises Missing.

    Of scope, session and run the one with the most listeners decides.
    """
    stack = await stacks.agent(world, actor, agent)
    record = await agents.get(world, actor, stack[0].name)
    modes = [mode_of(scope)]
    frozen = await runs.get(world, actor, run) if run is not None else None
    if frozen is not None:
        if frozen.scope != stack[0]:
            raise Missing(f"there is no run {run} of this agent")
        modes.append(frozen.mode)
    if session is not None:
        modes.append((await sessions.get(world, actor, record.id, session)).mode)
    mode = Mode.SHARED if Mode.SHARED in modes else Mode.MAIN
    return Sitting(world, actor, record, stack, mode, session, frozen)


async def call(
    sitting: Sitting, name: str, arguments: Mapping[str, Any], call_id: str | None = None
) -> Reply:
    """Do what a model asks for, or ask first. Raises Missing where the agent has no such tool.

    All that the model can do something about comes back to it as a reply; where somebody has to
    say yes first, that has the approval. A call of an id that was there before is not done again,
    but gives what the first gave or gives then; raises Taken where the first was another call, and
    InFlight while it is under way.
    """
    tool = await permitted(sitting, name)
    sitting = structs.replace(sitting, call=call_id)
    question = _question(sitting, tool, arguments)
    if known := await approvals.of_call(sitting.world, sitting.agent.tenant, question):
        return reply_of(known)
    try:
        asked, gate = await examined(sitting, tool, arguments)
    except (Refusal, Corrupt) as refused:
        return problem(tool, refused)
    if gate.asks:
        wanted = _with_gate(question, gate)
        return reply_of(await approvals.ask(sitting.world, sitting.actor, wanted))
    if call_id is None or not tool.writes:
        return await done(sitting, tool, asked)
    return await once(sitting, question, lambda: done(sitting, tool, asked))


async def permitted(sitting: Sitting, name: str) -> Tool:
    """A tool that the agent has and the caller may use. Raises Missing and Forbidden."""
    hands = await _hands(sitting) if name == PERSISTENT else None
    tool = next((tool for tool in offered(sitting.config, hands) if tool.name == name), None)
    if tool is None:
        raise Missing(f"this agent has no tool {name[:80]!a}")
    if tool.writes:
        sitting.actor.must(Permission.WORKSPACE_WRITE)
    return tool


async def examined(
    sitting: Sitting, tool: Tool, arguments: Mapping[str, Any]
) -> tuple[Asked, Gate]:
    """What a call means and where it would work, if nothing speaks against it.

    Raises a Refusal that the model can do something about.
    """
    if tool.private and sitting.mode is Mode.SHARED:
        raise Malformed(f"{tool.name} is not available in a shared session")
    try:
        asked = tool.understood(arguments)
    except msgspec.ValidationError as wrong:
        raise Malformed(f"the arguments of {tool.name} do not fit: {wrong}") from None
    return asked, await tool.gate(sitting, asked) if tool.gate else Gate(asks=False)


async def done(sitting: Sitting, tool: Tool, asked: Asked) -> Reply:
    """Let a tool do its work, and say what it says."""
    try:
        return _told(await tool.run(sitting, asked))
    except (Refusal, Corrupt) as refused:
        return problem(tool, refused)


def reply_of(approval: Approval) -> Reply:
    """What a model is told of a call that was asked about."""
    told = approval.told or Result(f"waiting for a person to approve this call: {approval.id}")
    open_ = None if approval.lasts else approval
    return Reply(told.content, told.is_error, told.structured, open_)


def problem(tool: Tool, refused: Refusal | Corrupt) -> Reply:
    """What a model is told that went wrong; those of the hands say so in the first word."""
    said = str(refused)
    plain = tool.name not in HANDS or said.startswith(_SAYS_SO)
    return Reply(said if plain else f"Error: {said}", is_error=True)


_SAYS_SO: Final = ("Error: ", "Invalid path: ")


def _question(sitting: Sitting, tool: Tool, arguments: Mapping[str, Any]) -> Question:
    call = sitting.call
    if call is not None and not (0 < len(call) <= LONGEST_CALL and call.isprintable()):
        raise Malformed(f"the id of a call has 1 to {LONGEST_CALL} characters that can be printed")
    return Question(
        agent=sitting.agent.id,
        tool=tool.name,
        arguments=arguments,
        mode=sitting.mode,
        run=sitting.run.id if sitting.run else None,
        session=sitting.session,
        call=call,
    )


def _with_gate(question: Question, gate: Gate) -> Question:
    return replace(
        question,
        workspace=gate.workspace,
        sandbox=gate.sandbox,
        sandbox_revision=gate.revision,
    )


def _told(value: object) -> Reply:
    if isinstance(value, Reply):
        return value
    if isinstance(value, str):
        return Reply(value)
    text = msgspec.json.encode(value)
    return Reply(text.decode(), structured=msgspec.json.decode(text))
