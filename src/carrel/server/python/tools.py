"""The tools of an agent, as a program calls them for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrel.server.python.caller import Seat, one_of
from carrel.tools.calls import call, fitted, seat
from carrel.tools.schema_formats import Dialect, described
from carrel.tools.tool import Reply


class Tools:
    """What an agent can do."""

    def __init__(self, seat: Seat, agent: str) -> None:
        self._seat, self._agent = seat, agent

    async def describe(self, dialect: str = Dialect.MCP) -> tuple[Mapping[str, Any], ...]:
        """In the words of whoever offers them to a model: ``mcp``, ``openai``, ``anthropic``."""
        chosen = one_of(Dialect, dialect, "dialect")
        sitting = await seat(self._seat.world, self._seat.actor, self._agent)
        return tuple(described(tool, chosen, schema) for tool, schema in await fitted(sitting))

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        scope: str | None = None,
        session: str | None = None,
        run: str | None = None,
        call_id: str | None = None,
    ) -> Reply:
        """Do what a model asks for; what it can do something about comes back as its reply.

        ``scope`` is ``main`` or ``shared``; where several are listening nothing private is told.
        Where somebody has to say yes first, the reply has an ``approval``. What has a ``call_id``
        is done once, however often it is called. Raises Missing where the agent has no such tool.
        """
        sitting = await seat(
            self._seat.world, self._seat.actor, self._agent, scope=scope, session=session, run=run
        )
        return await call(sitting, name, arguments or {}, call_id)
