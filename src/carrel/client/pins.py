"""Pinned files and their review over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from carrel.client.drivers import Driver, HttpRequest, Steps, operation
from carrel.client.errors import InvalidResponse
from carrel.client.files import Files
from carrel.client.requests import api_path, decode_json, send_with_retry


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """Where an agent stands with one pinned file."""

    path: str
    pinned_sha256: str | None
    """What was reviewed last."""
    latest_sha256: str | None
    """What its template or the defaults say now."""
    update_available: bool
    overridden: bool
    version: int
    pinned: str | None = None
    latest: str | None = None
    error: str | None = None
    """Why one of the texts could not be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAcceptOutcome:
    """What became of one agent when something was accepted for all."""

    agent: str
    """Its id."""
    success: bool
    changed: bool
    error: str | None


class TemplateFiles(Files[Driver]):
    """A template's own files, and what is accepted for all agents that follow it."""

    def __init__(self, driver: Driver, template: str) -> None:
        super().__init__(driver, "templates", template)
        self._template = template

    @operation
    def accept(self, path: str, sha256: str) -> Steps[tuple[BulkAcceptOutcome, ...]]:
        """Accept what was reviewed for every agent that follows; one failure stops no other."""
        where = api_path("templates", self._template, "pins", path, "accept")
        answer = yield from send_with_retry(HttpRequest("POST", where, body={"sha256": sha256}))
        return _results_of(decode_json(answer))


def pin_of(row: Any) -> Pin:
    """Raises Garbled."""
    try:
        return Pin(
            path=row["path"],
            pinned_sha256=row["pinnedSha256"],
            latest_sha256=row["latestSha256"],
            update_available=row["updateAvailable"],
            overridden=row["overridden"],
            version=row["version"],
            pinned=row.get("pinnedContent"),
            latest=row.get("latestContent"),
            error=row.get("error"),
        )
    except (KeyError, TypeError, AttributeError):
        raise InvalidResponse("the answer is no pin") from None


def pins_of(told: Any) -> tuple[Pin, ...]:
    rows = told.get("items") if isinstance(told, dict) else None
    if not isinstance(rows, list):
        raise InvalidResponse("the answer is no list of pins")
    return tuple(map(pin_of, rows))


def _results_of(told: Any) -> tuple[BulkAcceptOutcome, ...]:
    try:
        return tuple(
            BulkAcceptOutcome(
                agent=row["agentId"],
                success=row["success"],
                changed=row["changed"],
                error=row["error"],
            )
            for row in told["results"]
        )
    except (KeyError, TypeError):
        raise InvalidResponse("the answer does not say what became of each agent") from None
