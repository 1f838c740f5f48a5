"""Runs, and the workspace that each of them reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.byte_streams import Target
from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.errors import InvalidResponse
from carrel_client.event_iterators import event_stream
from carrel_client.event_reader import EventReader, EventSource
from carrel_client.file_bytes import DownloadedFile, download, read_bytes
from carrel_client.file_models import (
    File,
    FileRow,
    file_from_json,
    rows_from_json,
)
from carrel_client.models import parse_time
from carrel_client.prompts import Prompt, get_prompt
from carrel_client.provenance import Provenance, TimeLine, get_provenance, get_time_line
from carrel_client.requests import api_path, get_json, items_of, send_json, write_headers
from carrel_client.run_parts import RunParts, parts_from_json
from carrel_client.sessions import NewEntry, entries_to_json


class RunWorkspace(Resource[Driver]):
    """Frozen workspace of a run."""

    def __init__(self, driver: Driver, run_id: str) -> None:
        super().__init__(driver)
        self._run_id = run_id

    @operation
    def get(self, path: str) -> Steps[File]:
        """Raises NotFound, also if the run's snapshot was released."""
        return file_from_json((yield from get_json(api_path("runs", self._run_id, "files", path))))

    @operation
    def read_bytes(
        self, path: str, *, start: int | None = None, end: int | None = None
    ) -> Steps[bytes]:
        """The bytes of a file, or those from ``start`` up to ``end``, in memory."""
        return (yield from read_bytes(self._url(path), {}, start, end))

    @operation
    def download(self, path: str, target: Target) -> Steps[DownloadedFile]:
        """Write the bytes of a file to a path or a binary file, without holding them."""
        return (yield from download(self._url(path), {}, target))

    def _url(self, path: str) -> str:
        return api_path("runs", self._run_id, "files", path)

    @operation
    def list(self) -> Steps[tuple[FileRow, ...]]:
        return rows_from_json((yield from get_json(api_path("runs", self._run_id, "files"))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """File whose current content differs from the run's snapshot."""

    path: str
    kind: str
    """added, changed or removed."""
    before: int | None
    """The version that the run reads, None if there is none."""
    after: int | None
    diff: str | None = None
    """The unified diff, if it was requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEventPage:
    """Events of a run after a position."""

    events: tuple[Mapping[str, Any], ...]
    next: str
    """Position to continue from."""
    last_sequence: int
    status: str
    is_complete: bool
    """Whether the run has ended and no event follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """Response to a heartbeat."""

    status: str
    """Status of the run; other than running if it was ended or abandoned meanwhile."""
    lease_ends_at: datetime | None
    """When the run becomes abandoned without another report; None if it ended, or never."""


class Run(Resource[Driver]):
    """A run as last fetched or changed by this object.

    Of a run that was just started, what the server decides is None until ``refresh``.
    """

    def __init__(
        self,
        driver: Driver,
        facts: Mapping[str, Any],
        requested: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(driver)
        self.facts = facts
        """The JSON object of the response."""
        self._requested = requested or {}
        self._parts = parts_from_json(facts) if "etags" in facts else None

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.status}>"

    @property
    def id(self) -> str:
        return str(self.facts["runId"])

    @property
    def status(self) -> str:
        """running, completed, failed, cancelled or abandoned."""
        return str(self.facts["status"])

    @property
    def workflow_id(self) -> str | None:
        return self._text("workflowId")

    @property
    def scope(self) -> str | None:
        """main or shared."""
        return self._text("scope")

    @property
    def agent_id(self) -> str | None:
        return self._text("agentId")

    @property
    def parent_run_id(self) -> str | None:
        return self._text("parentRunId")

    @property
    def replay_of(self) -> str | None:
        return self._text("replayOf")

    @property
    def session_id(self) -> str | None:
        """The session of the agent that the run answers in."""
        return self._text("sessionId")

    @property
    def parts(self) -> RunParts | None:
        """What ``include`` returned when the run was started by this object."""
        return self._parts

    @property
    def started_at(self) -> datetime | None:
        started_at = self._text("startedAt")
        return None if started_at is None else parse_time(started_at)

    @property
    def ended_at(self) -> datetime | None:
        ended_at = self._text("endedAt")
        return None if ended_at is None else parse_time(ended_at)

    @property
    def reason(self) -> str | None:
        """Why it ended, if its runtime reported that."""
        return self._text("reason")

    @property
    def abandoned_at(self) -> datetime | None:
        """When it stopped counting as running, since it did not report; it may have ended later."""
        abandoned_at = self._text("abandonedAt")
        return None if abandoned_at is None else parse_time(abandoned_at)

    @property
    def holds_snapshot(self) -> bool:
        """False after ``release``."""
        return bool(self.facts.get("kept", True))

    @property
    def workspace(self) -> RunWorkspace[Driver]:
        return RunWorkspace(self._driver, self.id)

    def _text(self, name: str) -> str | None:
        value = self.facts.get(name, self._requested.get(name))
        return None if value is None else str(value)

    @operation
    def prompt(self) -> Steps[Prompt]:
        """Return the frozen system prompt of the run."""
        return (yield from get_prompt(api_path("runs", self.id, "prompt")))

    @operation
    def provenance(self) -> Steps[Provenance]:
        """What the run wrote, and its prompt and files with authors and reviews."""
        return (yield from get_provenance(api_path("runs", self.id, "provenance")))

    @operation
    def time_line(self, *, cursor: str = "", limit: int = 100) -> Steps[TimeLine]:
        """A page of its events and the entries that it wrote, oldest first."""
        return (yield from get_time_line(self.id, cursor, limit))

    @operation
    def diff(self) -> Steps[tuple[Difference, ...]]:
        """Return the files that changed since the run started, in order of path."""
        return _differences((yield from get_json(api_path("runs", self.id, "diff"))))

    @operation
    def diff_of(self, path: str) -> Steps[str]:
        """Return the unified diff of a path since the run started; may be empty."""
        body = yield from get_json(api_path("runs", self.id, "diff"), {"path": path})
        return "".join(difference.diff or "" for difference in _differences(body))

    @operation
    def start_child(
        self,
        workflow_id: str = "",
        *,
        scope: str | None = None,
        share_snapshot: bool = False,
        idempotency_key: str | None = None,
    ) -> Steps[Run[Driver]]:
        """Start a run in the same workspace, frozen now, or with this run's own snapshot."""
        fields = {"workflowId": workflow_id, "parentRunId": self.id, "scope": scope}
        body = {**fields, "shareSnapshot": share_snapshot}
        return (yield from start_run(self._driver, body, idempotency_key))

    @operation
    def replay(self, *, idempotency_key: str | None = None) -> Steps[Run[Driver]]:
        """Start a run with the same snapshot."""
        return (yield from start_run(self._driver, {"replayOf": self.id}, idempotency_key))

    @operation
    def finish(
        self,
        status: str = "completed",
        *,
        entries: Iterable[NewEntry] = (),
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Run[Driver]]:
        """End the run as completed, failed or cancelled, for a reason.

        ``entries`` are appended to its session first. Raises Conflict if it ended with another
        status.
        """
        last_entries = entries_to_json(entries)
        body = {"status": status} | ({"entries": last_entries} if last_entries else {})
        body |= {} if reason is None else {"reason": reason}
        return (yield from self._change(body, idempotency_key))

    @operation
    def heartbeat(self) -> Steps[Heartbeat]:
        """Report that the run still runs; whatever it writes is a report too.

        Without reports it becomes abandoned; it can still end.
        """
        body = run_facts((yield from send_json("POST", api_path("runs", self.id, "heartbeat"), {})))
        self.facts = {**self.facts, "status": body["status"]}
        ends_at = body.get("leaseEndsAt")
        return Heartbeat(
            status=self.status, lease_ends_at=None if ends_at is None else parse_time(ends_at)
        )

    @operation
    def cancel(self, *, idempotency_key: str | None = None) -> Steps[Run[Driver]]:
        """Cancel the run; does nothing if it is cancelled.

        Raises Conflict with the status if it ended otherwise.
        """
        path = api_path("runs", self.id, "cancel")
        cancelled = yield from send_json("POST", path, {}, idempotency_key=idempotency_key)
        self.facts = {**self.facts, **run_facts(cancelled)}
        return self

    @operation
    def release(self, *, idempotency_key: str | None = None) -> Steps[Run[Driver]]:
        """Release the snapshot permanently, so that old versions may be pruned.

        Raises Conflict while it is running.
        """
        return (yield from self._change({"kept": False}, idempotency_key))

    @operation
    def refresh(self) -> Steps[Run[Driver]]:
        """Fetch the run again."""
        self.facts = run_facts((yield from get_json(api_path("runs", self.id))))
        return self

    @operation
    def poll_events(
        self, *, since: str | int | None = None, timeout: int = 20
    ) -> Steps[RunEventPage]:
        """Return the events after a position: ``next``, a sequence or an event's id.

        Waits up to ``timeout`` seconds, at most 30, for the first event.
        """
        query = {"timeout": str(timeout)} | ({} if since is None else {"since": str(since)})
        path = api_path("runs", self.id, "events", "poll")
        page = event_page_from_json((yield from get_json(path, query)))
        self.facts = {**self.facts, "status": page.status}
        return page

    @event_stream
    def events(self, *, since: str | None = None, include_connected: bool = False) -> EventReader:
        """Stream the run's events from the start or a cursor, until the run ends."""
        return EventReader(self._event_source(), since, include_connected=include_connected)

    def _event_source(self) -> Steps[EventSource]:
        yield from ()
        return EventSource(api_path("runs", self.id, "events"), has_ended=self._has_ended)

    def _has_ended(self) -> Steps[bool]:
        self.facts = run_facts((yield from get_json(api_path("runs", self.id))))
        return self.status != "running"

    def _change(self, body: Any, idempotency_key: str | None) -> Steps[Run[Driver]]:
        path = api_path("runs", self.id)
        changed = yield from send_json("PATCH", path, body, idempotency_key=idempotency_key)
        self.facts = run_facts(changed)
        return self


def event_page_from_json(body: Any) -> RunEventPage:
    """Raises InvalidResponse."""
    try:
        return RunEventPage(
            events=tuple(body["events"]),
            next=str(body["next"]),
            last_sequence=int(body["lastSequence"]),
            status=str(body["status"]),
            is_complete=bool(body["isComplete"]),
        )
    except (KeyError, TypeError, ValueError):
        raise InvalidResponse("the response is not a page of events") from None


def run_facts(body: Any) -> Mapping[str, Any]:
    """Raises InvalidResponse."""
    if not isinstance(body, Mapping) or not {"runId", "status"} <= body.keys():
        raise InvalidResponse("the response is not a run")
    return body


def start_run(
    driver: Driver,
    fields: Mapping[str, Any],
    idempotency_key: str | None = None,
    if_none_match: str | None = None,
) -> Steps[Run[Driver]]:
    """Start a run; fields that are empty are omitted."""
    body = {name: value for name, value in fields.items() if value}
    headers = write_headers(if_none_match=if_none_match)
    created = yield from send_json(
        "POST", api_path("runs"), body, headers=headers, idempotency_key=idempotency_key
    )
    return Run(driver, run_facts(created), body)


def get_run(driver: Driver, run_id: str) -> Steps[Run[Driver]]:
    return Run(driver, run_facts((yield from get_json(api_path("runs", run_id)))))


def list_runs(
    driver: Driver, before: str, limit: int, **filters: str | None
) -> Steps[tuple[Run[Driver], ...]]:
    """A page of runs, newest first."""
    query = {"limit": str(limit)} | ({"cursor": before} if before else {})
    query |= {name: value for name, value in filters.items() if value is not None}
    rows = items_of((yield from get_json(api_path("runs"), query)))
    return tuple(Run(driver, run_facts(row)) for row in rows)


def _differences(body: Any) -> tuple[Difference, ...]:
    try:
        return tuple(
            Difference(
                path=row["path"],
                kind=row["change"],
                before=row["beforeVersion"],
                after=row["afterVersion"],
                diff=row.get("diff"),
            )
            for row in body["changes"]
        )
    except (KeyError, TypeError, AttributeError):
        raise InvalidResponse("the response has no changes") from None
