"""Agents and templates over HTTP, as the server tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrel.client.asking import at, decoded, fetched, written
from carrel.client.driving import Driver, Noun, Send, Steps, operation
from carrel.client.errors import Garbled


class Records(Noun[Driver]):
    """All of one kind. Facts are named as in the API."""

    def __init__(self, driver: Driver, kind: str) -> None:
        super().__init__(driver)
        self._kind = kind

    @operation
    def get(self, name: str) -> Steps[Mapping[str, Any]]:
        """By id or slug. Raises Missing."""
        return _facts((yield from fetched(Send("GET", at(self._kind, name)))))

    @operation
    def slugs(self) -> Steps[tuple[str, ...]]:
        """Of all of them, in order."""
        found: list[str] = []
        query: dict[str, str] = {"limit": "500"}
        while True:
            page = yield from fetched(Send("GET", at(self._kind), query))
            try:
                found += [row["slug"] for row in page["items"]]
                more = page["next"]
            except (KeyError, TypeError):
                raise Garbled("the answer is no page of these") from None
            if not more:
                return tuple(sorted(found))
            query["cursor"] = more

    @operation
    def create(self, facts: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        """Raises Taken where another has the slug."""
        return _facts(decoded((yield from written(Send("POST", at(self._kind), body=facts)))))

    @operation
    def change(self, name: str, facts: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        """Change what is given, and nothing else."""
        request = Send("PATCH", at(self._kind, name), body=facts)
        return _facts(decoded((yield from written(request))))


def _facts(told: Any) -> Mapping[str, Any]:
    if not isinstance(told, Mapping) or not {"id", "slug"} <= told.keys():
        raise Garbled("the answer is no agent and no template")
    return told
