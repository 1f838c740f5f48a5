"""The tools of an agent over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from carrel.client.drivers import Driver, HttpRequest, Resource, Steps, operation
from carrel.client.errors import InvalidResponse
from carrel.client.requests import api_path, decode_json, get_json, send_idempotent


@dataclass(frozen=True, slots=True)
class Reply:
    """What comes back to the model."""

    content: str
    is_error: bool
    structured: Any = None
    """The same as ``content``, where that is JSON."""
    approval: dict[str, Any] | None = None
    """Where nothing was done yet, since somebody has to say yes first."""


class Tools(Resource[Driver]):
    """What an agent can do."""

    def __init__(self, driver: Driver, agent: str) -> None:
        super().__init__(driver)
        self._agent = agent

    def _at(self, *path: str) -> str:
        return api_path("agents", self._agent, "tools", *path)

    @operation
    def describe(self, dialect: str = "mcp") -> Steps[tuple[dict[str, Any], ...]]:
        """In the words of whoever offers them to a model: ``mcp``, ``openai``, ``anthropic``."""
        told = yield from get_json(HttpRequest("GET", self._at(), {"dialect": dialect}))
        try:
            return tuple(dict(one) for one in told["items"])
        except (KeyError, TypeError, ValueError):
            raise InvalidResponse("the answer is no list of tools") from None

    @operation
    def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        scope: str | None = None,
        session: str | None = None,
        run: str | None = None,
        call_id: str | None = None,
    ) -> Steps[Reply]:
        """Do what a model asks for; what it can do something about comes back as its reply.

        ``scope`` is ``main`` or ``shared``; where several are listening nothing private is told.
        Where somebody has to say yes first, the reply has an ``approval``. A ``call_id`` that was
        there before gives what it gave then; without one, each call is one of its own.
        """
        where = {"scope": scope, "sessionId": session, "runId": run}
        where["callId"] = call_id or uuid4().hex  # so that what is sent again is not done again
        body: dict[str, Any] = {word: said for word, said in where.items() if said is not None}
        body["arguments"] = dict(arguments or {})
        told = decode_json(
            (yield from send_idempotent(HttpRequest("POST", self._at(name), body=body)))
        )
        try:
            if "approval" in told:
                waits = dict(told["approval"])
                return Reply(f"waiting for a person to approve: {waits['id']}", False, None, waits)
            return Reply(told["content"], told["isError"], told.get("structured"))
        except (KeyError, TypeError, ValueError, AttributeError):
            raise InvalidResponse("the answer is no reply of a tool") from None
