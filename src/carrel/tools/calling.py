"""Calling a tool for an agent: which it has, what it may be asked here, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from carrel.actions import agents, runs, sessions, stacks
from carrel.core.access import Actor, Permission
from carrel.core.config import Config, allows
from carrel.core.errors import Missing, Refusal
from carrel.core.run import Mode, mode_of
from carrel.ports import Corrupt, World
from carrel.tools import ALL
from carrel.tools.tool import Reply, Sitting, Tool


def offered(config: Config) -> Sequence[Tool]:
    """The tools that an agent has, in order of name."""
    return [tool for tool in ALL if allows(config.allowed_tools, tool.name)]


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


async def call(sitting: Sitting, name: str, arguments: Mapping[str, Any]) -> Reply:
    """Do what a model asks for. Raises Missing where the agent has no such tool.

    All that the model can do something about comes back to it as a reply.
    """
    tool = next((tool for tool in offered(sitting.config) if tool.name == name), None)
    if tool is None:
        raise Missing(f"this agent has no tool {name[:80]!a}")
    if tool.writes:
        sitting.actor.must(Permission.WORKSPACE_WRITE)
    if tool.private and sitting.mode is Mode.SHARED:
        return _problem(f"{tool.name} is not available in a shared session")
    try:
        asked = tool.understood(arguments)
        return _told(await tool.run(sitting, asked))
    except msgspec.ValidationError as wrong:
        return _problem(f"the arguments of {tool.name} do not fit: {wrong}")
    except (Refusal, Corrupt) as refused:
        return _problem(str(refused))


def _told(value: object) -> Reply:
    if isinstance(value, str):
        return Reply(value)
    text = msgspec.json.encode(value)
    return Reply(text.decode(), structured=msgspec.json.decode(text))


def _problem(message: str) -> Reply:
    return Reply(message, is_error=True)
