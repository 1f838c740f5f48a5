"""Agents, templates and people over HTTP, as the server tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrel.client.drivers import Driver, HttpRequest, Resource, Steps, operation
from carrel.client.errors import InvalidResponse
from carrel.client.requests import api_path, decode_json, get_json, send_idempotent


class Records(Resource[Driver]):
    """All of one kind. Facts are named as in the API."""

    def __init__(self, driver: Driver, kind: str) -> None:
        super().__init__(driver)
        self._kind = kind

    @operation
    def get(self, name: str) -> Steps[Mapping[str, Any]]:
        """By id or slug. Raises Missing."""
        return _facts((yield from get_json(HttpRequest("GET", api_path(self._kind, name)))))

    @operation
    def slugs(self) -> Steps[tuple[str, ...]]:
        """Of all of them, in order."""
        rows = yield from _every(self._kind)
        return tuple(sorted(_facts(row)["slug"] for row in rows))

    @operation
    def list(self) -> Steps[tuple[Mapping[str, Any], ...]]:
        """All of them, in order of slug."""
        rows = yield from _every(self._kind)
        return tuple(sorted(map(_facts, rows), key=lambda row: str(row["slug"])))

    @operation
    def create(self, facts: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        """Raises Taken where another has the slug."""
        return _facts(
            decode_json(
                (yield from send_idempotent(HttpRequest("POST", api_path(self._kind), body=facts)))
            )
        )

    @operation
    def change(self, name: str, facts: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        """Change what is given, and nothing else."""
        request = HttpRequest("PATCH", api_path(self._kind, name), body=facts)
        return _facts(decode_json((yield from send_idempotent(request))))


class People(Resource[Driver]):
    """The people of the tenant."""

    @operation
    def get(self, id: str) -> Steps[Mapping[str, Any]]:
        """Raises Missing."""
        return _person((yield from get_json(HttpRequest("GET", api_path("people", id)))))

    @operation
    def list(self) -> Steps[tuple[Mapping[str, Any], ...]]:
        """All of them, in order of name."""
        rows = yield from _every("people")
        return tuple(sorted(map(_person, rows), key=lambda row: str(row["name"])))


def _every(kind: str) -> Steps[list[Any]]:
    """All of a kind, page by page."""
    found: list[Any] = []
    query: dict[str, str] = {"limit": "500"}
    while True:
        page = yield from get_json(HttpRequest("GET", api_path(kind), query))
        try:
            found += page["items"]
            more = page["next"]
        except (KeyError, TypeError):
            raise InvalidResponse("the answer is no page of these") from None
        if not more:
            return found
        query["cursor"] = more


def _person(told: Any) -> Mapping[str, Any]:
    if not isinstance(told, Mapping) or not {"id", "name"} <= told.keys():
        raise InvalidResponse("the answer is no person")
    return told


def _facts(told: Any) -> Mapping[str, Any]:
    if not isinstance(told, Mapping) or not {"id", "slug"} <= told.keys():
        raise InvalidResponse("the answer is no agent and no template")
    return told
