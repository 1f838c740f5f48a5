"""What an agent remembers, and its dreams, over HTTP."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from carrel.client.drivers import Driver, HttpRequest, Resource, Steps, operation
from carrel.client.errors import InvalidResponse
from carrel.client.requests import api_path, decode_json, get_json, send_idempotent


class Memories(Resource[Driver]):
    """What an agent was told to remember. Each is given as it stands in the answer."""

    def __init__(self, driver: Driver, agent: str) -> None:
        super().__init__(driver)
        self._agent = agent

    def _at(self, *path: str) -> str:
        return api_path("agents", self._agent, "memories", *path)

    @operation
    def remember(
        self,
        content: str,
        *,
        tags: Collection[str] = (),
        kind: str | None = None,
        scope: str = "main",
    ) -> Steps[dict[str, Any]]:
        """Keep one thing; what is remembered already is given back as it is."""
        body: dict[str, Any] = {"content": content, "tags": list(tags), "scope": scope}
        body |= {"kind": kind} if kind else {}
        return _object(
            decode_json((yield from send_idempotent(HttpRequest("POST", self._at(), body=body))))
        )

    @operation
    def search(self, query: str, *, limit: int = 5) -> Steps[tuple[dict[str, Any], ...]]:
        """What fits these words, best first. It counts for no dream."""
        asked = {"q": query, "limit": str(limit)}
        return _items((yield from get_json(HttpRequest("GET", self._at(), asked))))

    @operation
    def list(self) -> Steps[tuple[dict[str, Any], ...]]:
        """All of them, as they were told."""
        found: tuple[dict[str, Any], ...] = ()
        asked = {"limit": "500"}
        while True:
            told = _object((yield from get_json(HttpRequest("GET", self._at(), asked))))
            found += _items(told)
            if not told.get("next"):
                return found
            asked = {"limit": "500", "cursor": str(told["next"])}

    @operation
    def get(self, id: str) -> Steps[dict[str, Any]]:
        return _object((yield from get_json(HttpRequest("GET", self._at(id)))))

    @operation
    def forget(self, id: str) -> Steps[None]:
        """Forget one, and the line of it that a dream wrote into MEMORY.md."""
        yield from send_idempotent(HttpRequest("DELETE", self._at(id)))


class Dreams(Resource[Driver]):
    """An agent's dreams."""

    def __init__(self, driver: Driver, agent: str) -> None:
        super().__init__(driver)
        self._agent = agent

    def _at(self, *path: str) -> str:
        return api_path("agents", self._agent, "dreams", *path)

    @operation
    def sweep(self, *, dry_run: bool = False) -> Steps[dict[str, Any]]:
        """Dream now, or only say what would be: what is promoted, and why all else is not."""
        request = HttpRequest("POST", self._at(), body={"dryRun": dry_run})
        return _object(decode_json((yield from send_idempotent(request))))

    @operation
    def list(self) -> Steps[tuple[dict[str, Any], ...]]:
        """The last ones, newest first."""
        return _items((yield from get_json(HttpRequest("GET", self._at()))))

    @operation
    def get(self, id: str) -> Steps[dict[str, Any]]:
        return _object((yield from get_json(HttpRequest("GET", self._at(id)))))

    @operation
    def approve(self, id: str) -> Steps[dict[str, Any]]:
        """Let what was proposed land. Raises Stale where MEMORY.md has changed since."""
        return _object(
            decode_json((yield from send_idempotent(HttpRequest("POST", self._at(id, "approve")))))
        )

    @operation
    def reject(self, id: str, reason: str = "") -> Steps[dict[str, Any]]:
        request = HttpRequest("POST", self._at(id, "reject"), body={"reason": reason})
        return _object(decode_json((yield from send_idempotent(request))))


def _object(told: Any) -> dict[str, Any]:
    if not isinstance(told, dict):
        raise InvalidResponse("the answer is no object")
    return told


def _items(told: Any) -> tuple[dict[str, Any], ...]:
    items = _object(told).get("items")
    if not isinstance(items, list):
        raise InvalidResponse("the answer is no list")
    return tuple(map(_object, items))
