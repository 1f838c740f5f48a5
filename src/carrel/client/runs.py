"""Runs over HTTP: each with the workspace that was frozen for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrel.client.asking import at, decoded, fetched, written
from carrel.client.driving import Driver, Noun, Send, Steps, operation
from carrel.client.errors import Garbled
from carrel.client.prompts import Prompt, asked_at
from carrel.client.rows import File, FileRow, rows_of, whole_file


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
