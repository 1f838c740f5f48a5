"""Who asks over MCP, for which agent, and under which circumstances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from carrel.actions.overlay import stacks
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_fields
from carrel.core.errors import ValidationError
from carrel.core.runs import Audience, mode_of
from carrel.ports import Ports
from carrel.tools.calls import open_tool_context
from carrel.tools.tool import ToolContext

SCOPE: Final = "carrel/scope"
SESSION: Final = "carrel/session"
RUN: Final = "carrel/run"
CALL: Final = "carrel/call"
_LONGEST: Final = 128


@dataclass(frozen=True, slots=True)
class CallScope:
    """In which session and run something is asked, and who listens; all of it may be open."""

    scope: str | None = None
    session: str | None = None
    run: str | None = None

    def merge(self, meta: Mapping[str, Any]) -> CallScope:
        """With what a request says itself, where the connection has left it open.

        What the connection says cannot be left: others may be listening there. Raises Malformed.
        """
        asked = CallScope(*(_said(meta, name) for name in (SCOPE, SESSION, RUN)))
        shared = Audience.SHARED in {mode_of(self.scope), mode_of(asked.scope)}
        scope = Audience.SHARED if shared else asked.scope or self.scope
        return CallScope(
            scope,
            _agreed(SESSION, self.session, asked.session),
            _agreed(RUN, self.run, asked.run),
        )


def _agreed(name: str, here: str | None, asked: str | None) -> str | None:
    if here is not None and asked is not None and asked != here:
        raise ValidationError(f"{name} is another one than that of this connection")
    return asked if here is None else here


def _said(meta: Mapping[str, Any], name: str) -> str | None:
    value = meta.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST:
        raise ValidationError(f"{name} is a text of 1 to {_LONGEST} characters")
    return value


@dataclass(frozen=True, slots=True)
class McpRequest:
    """One request's caller, at the desk of one agent."""

    ports: Ports
    actor: Actor
    agent: str
    """By id or slug."""
    circumstances: CallScope = CallScope()

    async def tool_context(self, meta: Mapping[str, Any] | None) -> ToolContext:
        """Raises Missing and Malformed."""
        now = self.circumstances.merge(meta or {})
        return await open_tool_context(
            self.ports,
            self.actor,
            self.agent,
            scope=now.scope,
            session=now.session,
            run=now.run,
        )

    async def slug(self) -> str:
        """What the agent is called in addresses. Raises Missing."""
        return str(agent_fields((await self.tool_context(None)).agent)["slug"])

    async def affects_agent(self, scope: object) -> bool:
        """Whether what happened in a scope may show in the agent's files."""
        return scope in await stacks.agent_stack(self.ports, self.actor, self.agent)
