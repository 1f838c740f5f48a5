"""What agents share, values under keys, over HTTP."""

from __future__ import annotations

from typing import Any

from carrel.client.drivers import Driver, HttpRequest, Resource, Steps, operation
from carrel.client.errors import InvalidResponse
from carrel.client.requests import api_path, decode_json, get_json, send_idempotent


class Items(Resource[Driver]):
    """The items of one agent: its person's, or its own where it is shared.

    Each is given as it stands in the answer.
    """

    def __init__(self, driver: Driver, agent: str) -> None:
        super().__init__(driver)
        self._agent = agent

    def _at(self, *path: str) -> str:
        return api_path("agents", self._agent, "items", *path)

    @operation
    def get(self, key: str, *, version: int | None = None) -> Steps[dict[str, Any]]:
        """An item as it is now, or as it was at a version."""
        query = {} if version is None else {"version": str(version)}
        return _object((yield from get_json(HttpRequest("GET", self._at(key), query))))

    @operation
    def list(self, prefix: str = "") -> Steps[tuple[dict[str, Any], ...]]:
        """All whose key starts so, the last written first."""
        found: tuple[dict[str, Any], ...] = ()
        asked = {"limit": "500", "prefix": prefix}
        while True:
            told = _object((yield from get_json(HttpRequest("GET", self._at(), asked))))
            rows = told.get("items")
            if not isinstance(rows, list):
                raise InvalidResponse("the answer is no list")
            found += tuple(map(_object, rows))
            if not told.get("next"):
                return found
            asked = {**asked, "cursor": str(told["next"])}

    @operation
    def put(
        self,
        key: str,
        value: str,
        *,
        if_match: str | None = None,
        if_none_match: str | None = None,
        reason: str | None = None,
    ) -> Steps[dict[str, Any]]:
        """Create or replace an item. Raises Stale where it is not as ``if_match`` says."""
        said = {"If-Match": if_match, "If-None-Match": if_none_match, "Carrel-Reason": reason}
        head = {name: text for name, text in said.items() if text is not None}
        request = HttpRequest("PUT", self._at(key), headers=head, body={"value": value})
        return _object(decode_json((yield from send_idempotent(request))))

    @operation
    def delete(self, key: str, *, if_match: str | None = None) -> Steps[None]:
        """Remove an item, for all who share it."""
        head = {} if if_match is None else {"If-Match": if_match}
        yield from send_idempotent(HttpRequest("DELETE", self._at(key), headers=head))


def _object(told: Any) -> dict[str, Any]:
    if not isinstance(told, dict):
        raise InvalidResponse("the answer is no object")
    return told
