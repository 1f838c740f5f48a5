"""The tools of an agent, as a program calls them for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrel.server.python.caller import CallerContext, one_of
from carrel.tools.calls import call, open_tool_context, tools_with_schemas
from carrel.tools.schema_formats import SchemaFormat, described
from carrel.tools.tool import ToolReply


class Tools:
    """What an agent can do."""

    def __init__(self, seat: CallerContext, agent: str) -> None:
        self._seat, self._agent = seat, agent

    async def describe(self, dialect: str = SchemaFormat.MCP) -> tuple[Mapping[str, Any], ...]:
        """In the words of whoever offers them to a model: ``mcp``, ``openai``, ``anthropic``."""
        chosen = one_of(SchemaFormat, dialect, "dialect")
        context = await open_tool_context(self._seat.ports, self._seat.actor, self._agent)
        return tuple(
            described(tool, chosen, schema) for tool, schema in await tools_with_schemas(context)
        )

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        scope: str | None = None,
        session: str | None = None,
        run: str | None = None,
        call_id: str | None = None,
    ) -> ToolReply:
        """Do what a model asks for; what it can do something about comes back as its reply.

        ``scope`` is ``main`` or ``shared``; where several are listening nothing private is told.
        Where somebody has to say yes first, the reply has an ``approval``. What has a ``call_id``
        is done once, however often it is called. Raises Missing where the agent has no such tool.
        """
        context = await open_tool_context(
            self._seat.ports, self._seat.actor, self._agent, scope=scope, session=session, run=run
        )
        return await call(context, name, arguments or {}, call_id)
