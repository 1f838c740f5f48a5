"""What waits for somebody's yes, over HTTP."""

from __future__ import annotations

from typing import Any

from carrel.client.drivers import Driver, HttpRequest, Resource, Steps, operation
from carrel.client.errors import InvalidResponse
from carrel.client.requests import api_path, decode_json, get_json, send_idempotent

_PAGE = "500"


class Approvals(Resource[Driver]):
    """Calls of agents that somebody was asked about."""

    @operation
    def list(
        self, *, status: str | None = None, agent: str | None = None
    ) -> Steps[tuple[dict[str, Any], ...]]:
        """All of them, the oldest first; with ``requested`` those that wait for an answer."""
        wanted = {"limit": _PAGE, "status": status or "", "agent": agent or ""}
        asked = {name: value for name, value in wanted.items() if value}
        found: tuple[dict[str, Any], ...] = ()
        while True:
            told = _object((yield from get_json(HttpRequest("GET", api_path("approvals"), asked))))
            items = told.get("items")
            if not isinstance(items, list):
                raise InvalidResponse("the answer is no list")
            found += tuple(map(_object, items))
            if not told.get("next"):
                return found
            asked = {**asked, "cursor": str(told["next"])}

    @operation
    def get(self, id: str, *, wait: int = 0) -> Steps[dict[str, Any]]:
        """One of them, with its result once it is over: for that it waits some seconds."""
        asked = {"wait": str(wait)} if wait else {}
        return _object((yield from get_json(HttpRequest("GET", api_path("approvals", id), asked))))

    @operation
    def answer(self, id: str, approved: bool, reason: str = "") -> Steps[dict[str, Any]]:
        """Say yes or no, the reason of which the model sees. The same answer again is fine.

        Raises Taken where the answer was another, Gone where it is too late.
        """
        said = {"approved": approved, "reason": reason}
        answer = yield from send_idempotent(
            HttpRequest("POST", api_path("approvals", id), body=said)
        )
        return _object(decode_json(answer))


def _object(told: Any) -> dict[str, Any]:
    if not isinstance(told, dict):
        raise InvalidResponse("the answer is no object")
    return told
