"""Caller, agent and call scope of an MCP request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from carrel.actions.overlay import stacks
from carrel.core.access import Actor
from carrel.core.errors import ValidationError
from carrel.core.runs import Audience, parse_audience
from carrel.ports import Ports
from carrel.tools.calls import open_tool_context
from carrel.tools.tool import ToolContext

SCOPE: Final = "carrel/scope"
SESSION: Final = "carrel/session"
RUN: Final = "carrel/run"
CALL: Final = "carrel/call"
_MAX_VALUE_LENGTH: Final = 128


@dataclass(frozen=True, slots=True)
class CallScope:
    """Audience scope, session and run of a call; each may be unset."""

    scope: str | None = None
    session: str | None = None
    run: str | None = None

    def merge(self, meta: Mapping[str, Any]) -> CallScope:
        """Scope of the connection completed by that of the request.

        A request cannot widen or change what the connection fixes. Raises ValidationError.
        """
        requested = CallScope(*(_meta_value(meta, name) for name in (SCOPE, SESSION, RUN)))
        shared = Audience.SHARED in {parse_audience(self.scope), parse_audience(requested.scope)}
        scope = Audience.SHARED if shared else requested.scope or self.scope
        return CallScope(
            scope,
            _resolve(SESSION, self.session, requested.session),
            _resolve(RUN, self.run, requested.run),
        )


def _resolve(name: str, connection_value: str | None, request_value: str | None) -> str | None:
    if (
        connection_value is not None
        and request_value is not None
        and request_value != connection_value
    ):
        raise ValidationError(f"{name} differs from that of this connection")
    return request_value if connection_value is None else connection_value


def _meta_value(meta: Mapping[str, Any], name: str) -> str | None:
    value = meta.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= _MAX_VALUE_LENGTH:
        raise ValidationError(f"{name} must be a string of 1 to {_MAX_VALUE_LENGTH} characters")
    return value


@dataclass(frozen=True, slots=True)
class McpRequest:
    """Caller and agent of one request."""

    ports: Ports
    actor: Actor
    agent: str
    """Id or slug."""
    call_scope: CallScope = CallScope()
    public_url: str = ""
    """Base URL of the console, for links; empty if there is none."""

    async def tool_context(self, meta: Mapping[str, Any] | None) -> ToolContext:
        """Context for tool calls. Raises NotFound and ValidationError."""
        merged = self.call_scope.merge(meta or {})
        return await open_tool_context(
            self.ports,
            self.actor,
            self.agent,
            scope=merged.scope,
            session=merged.session,
            run=merged.run,
        )

    async def slug(self) -> str:
        """Slug of the agent. Raises NotFound."""
        return (await self.tool_context(None)).slug

    async def affects_agent(self, scope: object) -> bool:
        """Whether a change in `scope` can change the agent's files."""
        return scope in await stacks.agent_stack(self.ports, self.actor, self.agent)
