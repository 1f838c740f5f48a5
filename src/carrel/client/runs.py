"""Runs over HTTP: each with the workspace that was frozen for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from carrel.client.drivers import Driver, Noun, Send, Steps, operation
from carrel.client.errors import Garbled
from carrel.client.file_models import File, FileRow, rows_of, whole_file
from carrel.client.prompts import Prompt, asked_at
from carrel.client.requests import at, decoded, fetched, written


class Frozen(Noun[Driver]):
    """The workspace as it was when the run began, to the byte, however it changes since."""

    def __init__(self, driver: Driver, run: str) -> None:
        super().__init__(driver)
        self._run = run

    @operation
    def get(self, path: str) -> Steps[File]:
        return whole_file((yield from fetched(Send("GET", at("runs", self._run, "files", path)))))

    @operation
    def list(self) -> Steps[tuple[FileRow, ...]]:
        return rows_of((yield from fetched(Send("GET", at("runs", self._run, "files")))))


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


class Run(Noun[Driver]):
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
    def workspace(self) -> Frozen[Driver]:
        return Frozen(self._driver, self.id)

    @operation
    def prompt(self) -> Steps[Prompt]:
        """Its exact system prompt, whatever has changed since it began."""
        return (yield from asked_at(at("runs", self.id, "prompt")))

    @operation
    def diff(self) -> Steps[tuple[Difference, ...]]:
        """What has changed in the workspace since, in order of path."""
        return _differences((yield from fetched(Send("GET", at("runs", self.id, "diff")))))

    @operation
    def diff_of(self, path: str) -> Steps[str]:
        """What has changed at one path since, as a unified diff; empty where nothing has."""
        request = Send("GET", at("runs", self.id, "diff"), {"path": path})
        found = _differences((yield from fetched(request)))
        return "".join(one.diff or "" for one in found)

    @operation
    def replay(self) -> Steps[Run[Driver]]:
        """A run that reads what this one read, to the byte."""
        return (yield from started(self._driver, {"replayOf": self.id}))

    @operation
    def release(self) -> Steps[Run[Driver]]:
        """Let go of its files, so that old versions may be pruned. There is no way back.

        Raises Taken while it runs.
        """
        request = Send("PATCH", at("runs", self.id), body={"kept": False})
        self.facts = facts_of(decoded((yield from written(request))))
        return self

    @operation
    def finish(self, status: str = "completed") -> Steps[Run[Driver]]:
        """End it as completed, failed or cancelled. Raises Taken where it ended otherwise."""
        request = Send("PATCH", at("runs", self.id), body={"status": status})
        self.facts = facts_of(decoded((yield from written(request))))
        return self

    @operation
    def refresh(self) -> Steps[Run[Driver]]:
        self.facts = facts_of((yield from fetched(Send("GET", at("runs", self.id)))))
        return self


def facts_of(told: Any) -> Mapping[str, Any]:
    if not isinstance(told, Mapping) or not {"runId", "status"} <= told.keys():
        raise Garbled("the answer is no run")
    return told


def started(driver: Driver, asked: Mapping[str, Any]) -> Steps[Run[Driver]]:
    """A new run, by those fields that say something."""
    body = {name: value for name, value in asked.items() if value}
    answer = yield from written(Send("POST", at("runs"), body=body))
    return Run(driver, facts_of(decoded(answer)))


def found(driver: Driver, id: str) -> Steps[Run[Driver]]:
    return Run(driver, facts_of((yield from fetched(Send("GET", at("runs", id))))))


def listed(
    driver: Driver, agent: str | None, before: str, limit: int
) -> Steps[tuple[Run[Driver], ...]]:
    """A page of runs, newest first."""
    query = {"limit": str(limit)} | ({"cursor": before} if before else {})
    query |= {"agentId": agent} if agent is not None else {}
    told = yield from fetched(Send("GET", at("runs"), query))
    rows = told.get("items") if isinstance(told, dict) else None
    if not isinstance(rows, list):
        raise Garbled("the answer is no list of runs")
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
        raise Garbled("the answer does not say what has changed") from None
