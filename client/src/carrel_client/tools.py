"""The tools of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from carrel_client.approvals import Approval
from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.errors import InvalidResponse
from carrel_client.http_messages import HttpRequest
from carrel_client.models import model_from_json
from carrel_client.requests import api_path, drop_none, get_json, items_of, send_idempotent

COMMAND_SECONDS: Final = 600
"""Longest time limit of a command."""


@dataclass(frozen=True, slots=True)
class ToolReply:
    """Result of a tool call for the model."""

    content: str
    is_error: bool
    structured: Any = None
    """Result as an object, by the tool's ``outputSchema``; None for most errors."""
    approval: Approval | None = None
    """Approval if the call waits for a person."""


class Tools(Resource[Driver]):
    """The tools of an agent."""

    def __init__(self, driver: Driver, agent: str) -> None:
        super().__init__(driver)
        self._agent = agent

    @operation
    def describe(self, dialect: str = "mcp") -> Steps[tuple[dict[str, Any], ...]]:
        """Return the tool definitions in a format: ``mcp``, ``openai`` or ``anthropic``."""
        page = yield from get_json(api_path("agents", self._agent, "tools"), {"dialect": dialect})
        try:
            return tuple(dict(row) for row in items_of(page))
        except (TypeError, ValueError):
            raise InvalidResponse("the response is not a list of tools") from None

    @operation
    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        scope: str | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
        call_id: str | None = None,
    ) -> Steps[ToolReply]:
        """Run a tool for the agent; errors that a model can handle are in the reply.

        ``scope`` is ``main`` or ``shared``; in shared sessions private tools are refused. A
        ``call_id`` that was used before returns the first reply. Raises NotFound if the agent
        does not have the tool.
        """
        reply = yield from call_tool(
            self._agent,
            name,
            arguments or {},
            {"scope": scope, "sessionId": session_id, "runId": run_id, "callId": call_id},
        )
        return reply


def call_tool(
    agent: str, name: str, arguments: Mapping[str, Any], options: Mapping[str, str | None]
) -> Steps[ToolReply]:
    body: dict[str, Any] = drop_none(options)
    body.setdefault("callId", uuid4().hex)  # So that a retry does not run it again.
    body["arguments"] = dict(arguments)
    request = HttpRequest("POST", api_path("agents", agent, "tools", name), body=body)
    request.work_seconds = COMMAND_SECONDS
    reply = (yield from send_idempotent(request)).json()
    try:
        if "approval" in reply:
            approval = model_from_json(Approval, reply["approval"])
            text = f"waiting for a person to approve: {approval.id}"
            return ToolReply(text, False, None, approval)
        return ToolReply(reply["content"], reply["isError"], reply.get("structured"))
    except (KeyError, TypeError, AttributeError):
        raise InvalidResponse("the response is not the reply of a tool") from None
