"""Runs over HTTP: each with the workspace that was frozen for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from carrel.client.drivers import Driver, HttpRequest, Resource, Steps, operation
from carrel.client.errors import InvalidResponse
from carrel.client.file_models import File, FileRow, file_from_json, rows_of
from carrel.client.prompts import Prompt, asked_at
from carrel.client.requests import api_path, decode_json, get_json, send_idempotent


class RunWorkspace(Resource[Driver]):
    """The workspace as it was when the run began, to the byte, however it changes since."""

    def __init__(self, driver: Driver, run: str) -> None:
        super().__init__(driver)
        self._run = run

    @operation
    def get(self, path: str) -> Steps[File]:
        return file_from_json(
            (yield from get_json(HttpRequest("GET", api_path("runs", self._run, "files", path))))
        )

    @operation
    def list(self) -> Steps[tuple[FileRow, ...]]:
        return rows_of(
            (yield from get_json(HttpRequest("GET", api_path("runs", self._run, "files"))))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A file that is not what it was when the run began."""

    path: str
    kind: str
    """added, changed or removed."""
    before: int | None
    after: int | None
    diff: str | None = None
    """The text that changed, where that was asked for."""


class Run(Resource[Driver]):
    """One run, as it was when it was last asked for or changed here."""

    def __init__(self, driver: Driver, facts: Mapping[str, Any]) -> None:
        super().__init__(driver)
        self.facts = facts
        """What the server last said of it, as it stands in the answer."""

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.status}>"

    @property
    def id(self) -> str:
        return str(self.facts["runId"])

    @property
    def status(self) -> str:
        return str(self.facts["status"])

    @property
    def workspace(self) -> RunWorkspace[Driver]:
        return RunWorkspace(self._driver, self.id)

    @operation
    def prompt(self) -> Steps[Prompt]:
        """Its exact system prompt, whatever has changed since it began."""
        return (yield from asked_at(api_path("runs", self.id, "prompt")))

    @operation
    def diff(self) -> Steps[tuple[Difference, ...]]:
        """What has changed in the workspace since, in order of path."""
        return _differences(
            (yield from get_json(HttpRequest("GET", api_path("runs", self.id, "diff"))))
        )

    @operation
    def diff_of(self, path: str) -> Steps[str]:
        """What has changed at one path since, as a unified diff; empty where nothing has."""
        request = HttpRequest("GET", api_path("runs", self.id, "diff"), {"path": path})
        found = _differences((yield from get_json(request)))
        return "".join(one.diff or "" for one in found)

    @operation
    def replay(self) -> Steps[Run[Driver]]:
        """A run that reads what this one read, to the byte."""
        return (yield from start_run(self._driver, {"replayOf": self.id}))

    @operation
    def release(self) -> Steps[Run[Driver]]:
        """Let go of its files, so that old versions may be pruned. There is no way back.

        Raises Taken while it runs.
        """
        request = HttpRequest("PATCH", api_path("runs", self.id), body={"kept": False})
        self.facts = facts_of(decode_json((yield from send_idempotent(request))))
        return self

    @operation
    def finish(self, status: str = "completed") -> Steps[Run[Driver]]:
        """End it as completed, failed or cancelled. Raises Taken where it ended otherwise."""
        request = HttpRequest("PATCH", api_path("runs", self.id), body={"status": status})
        self.facts = facts_of(decode_json((yield from send_idempotent(request))))
        return self

    @operation
    def refresh(self) -> Steps[Run[Driver]]:
        self.facts = facts_of((yield from get_json(HttpRequest("GET", api_path("runs", self.id)))))
        return self


def facts_of(told: Any) -> Mapping[str, Any]:
    if not isinstance(told, Mapping) or not {"runId", "status"} <= told.keys():
        raise InvalidResponse("the answer is no run")
    return told


def start_run(driver: Driver, asked: Mapping[str, Any]) -> Steps[Run[Driver]]:
    """A new run, by those fields that say something."""
    body = {name: value for name, value in asked.items() if value}
    answer = yield from send_idempotent(HttpRequest("POST", api_path("runs"), body=body))
    return Run(driver, facts_of(decode_json(answer)))


def get_run(driver: Driver, id: str) -> Steps[Run[Driver]]:
    return Run(driver, facts_of((yield from get_json(HttpRequest("GET", api_path("runs", id))))))


def list_runs(
    driver: Driver, agent: str | None, before: str, limit: int
) -> Steps[tuple[Run[Driver], ...]]:
    """A page of runs, newest first."""
    query = {"limit": str(limit)} | ({"cursor": before} if before else {})
    query |= {"agentId": agent} if agent is not None else {}
    told = yield from get_json(HttpRequest("GET", api_path("runs"), query))
    rows = told.get("items") if isinstance(told, dict) else None
    if not isinstance(rows, list):
        raise InvalidResponse("the answer is no list of runs")
    return tuple(Run(driver, facts_of(row)) for row in rows)


def _differences(told: Any) -> tuple[Difference, ...]:
    try:
        return tuple(
            Difference(
                path=row["path"],
                kind=row["change"],
                before=row["beforeVersion"],
                after=row["afterVersion"],
                diff=row.get("diff"),
            )
            for row in told["changes"]
        )
    except (KeyError, TypeError, AttributeError):
        raise InvalidResponse("the answer does not say what has changed") from None
