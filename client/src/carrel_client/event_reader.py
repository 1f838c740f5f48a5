"""Event streams that reconnect without losing events that the server retains."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from carrel_client.drivers import (
    CloseStream,
    OpenedStream,
    OpenStream,
    ReadChunk,
    Sleep,
    Steps,
    TransportFailure,
)
from carrel_client.errors import InvalidResponse, ServerError, ValidationError
from carrel_client.http_messages import HttpRequest, error_from_response
from carrel_client.models import parse_time

CONNECTED: Final = "connected"
"""Type of the event that reports a connection; later events are not missed."""
UPDATED: Final = "workspace.updated"
FIRST_PAUSE_SECONDS: Final = 0.25
MAX_PAUSE_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event, without the content of files."""

    type: str
    cursor: str = ""
    """Pass it as ``since`` to continue after this event."""
    event_id: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict)
    timestamp: datetime | None = None
    workspace: Mapping[str, str] | None = None
    """The scope of the files as ``kind`` and ``name``, if the event is about files."""
    run_id: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The JSON object of the event."""


@dataclass(frozen=True, slots=True)
class EventSource:
    """Endpoint of a stream, and a filter of its events."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    scopes: frozenset[tuple[str, str]] | None = None
    """Kind and name of the workspaces whose events are returned; None for all."""
    has_ended: Callable[[], Steps[bool]] | None = None
    """Whether the end of a response ends the stream; None: reconnect always."""

    def includes(self, event: Event) -> bool:
        scope = event.workspace or {}
        return self.scopes is None or (scope.get("kind"), scope.get("name")) in self.scopes


class EventReader:
    """Reads an event stream step by step; each method is an operation for a driver."""

    def __init__(
        self, source: Steps[EventSource], since: str | None, *, include_connected: bool
    ) -> None:
        self._resolve: Steps[EventSource] | None = source
        self._source = EventSource("")
        self._since = since
        self._last: str | None = None
        self._include_connected = include_connected
        self._parser = SseParser()
        self._stream: Any = None
        self._is_new_connection = False
        self._failures = 0

    def connect(self) -> Steps[None]:
        """Open the stream, unless it is open. Raises CarrelError or TransportFailure."""
        if self._resolve is not None:
            resolve, self._resolve = self._resolve, None
            self._source = yield from resolve
        if self._stream is not None:
            return
        last = self._last or self._since
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
        request = HttpRequest("GET", self._source.path, self._source.query, headers)
        opened: OpenedStream = yield OpenStream(request)
        if not opened.response.is_success:
            raise error_from_response(opened.response)
        self._stream, self._parser = opened.stream, SseParser()
        self._is_new_connection = True
        if not opened.response.headers.get("content-type", "").startswith("text/event-stream"):
            yield from self.close()
            raise InvalidResponse("the response is not an event stream")

    def next_events(self) -> Steps[tuple[Event, ...]]:
        """Return the next events; empty at the end of the stream.

        Reconnects after failures, at growing intervals. Raises Refusal if the caller may not
        read the stream.
        """
        while True:
            try:
                events = yield from self._next()
            except ValidationError:
                if self._last is None:
                    raise
                self._last = self._since = events = None  # The server has deleted these events.
            except (ServerError, InvalidResponse, TransportFailure):
                self._failures += 1
                events = None
                yield from self.close()
            if events is not None:
                return events
            yield Sleep(self._pause())

    def _next(self) -> Steps[tuple[Event, ...] | None]:
        """Return the next events; empty at the stream's end, None if disconnected."""
        yield from self.connect()
        if self._is_new_connection and self._include_connected:
            self._is_new_connection = False
            return (Event(type=CONNECTED, cursor=self._last or ""),)
        while (chunk := (yield ReadChunk(self._stream))) is not None:
            if events := self._take(chunk):
                return events
        yield from self.close()
        has_ended = self._source.has_ended
        return () if has_ended and (yield from has_ended()) else None

    def close(self) -> Steps[None]:
        stream, self._stream = self._stream, None
        if stream is not None:
            yield CloseStream(stream)

    def _take(self, chunk: bytes) -> tuple[Event, ...]:
        events = self._parser.feed(chunk)
        for event in events:
            self._last, self._failures = event.cursor or self._last, 0
        return tuple(event for event in events if event.type and self._source.includes(event))

    def _pause(self) -> float:
        longest = min(FIRST_PAUSE_SECONDS * 2.0**self._failures, MAX_PAUSE_SECONDS)
        return longest * (0.5 + random.random() / 2)


class SseParser:
    """Splits the bytes of a stream into events, across chunks."""

    def __init__(self) -> None:
        self._rest = b""
        self._fields: dict[str, str] = {}

    def feed(self, chunk: bytes) -> list[Event]:
        """Return the complete events; an event without a type only moves the cursor.

        Raises InvalidResponse.
        """
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        events: list[Event] = []
        for raw in lines:
            line = raw.removesuffix(b"\r").decode("utf-8", "replace")
            if line:
                name, _, value = line.partition(":")
                self._fields[name] = value.removeprefix(" ")
                continue
            if "data" in self._fields or "id" in self._fields:
                events.append(_event(self._fields))
            self._fields = {}
        return events


def _event(fields: Mapping[str, str]) -> Event:
    try:
        facts = json.loads(fields["data"]) if fields.get("data") else {}
    except (ValueError, RecursionError):
        raise InvalidResponse("an event is not JSON") from None
    facts = facts if isinstance(facts, dict) else {}
    try:
        timestamp = parse_time(facts["timestamp"]) if "timestamp" in facts else None
    except (ValueError, AttributeError):
        raise InvalidResponse("the time of an event is invalid") from None
    return Event(
        type=fields.get("event", ""),
        cursor=fields.get("id", ""),
        event_id=str(facts.get("eventId", "")),
        payload=facts.get("payload", {}),
        timestamp=timestamp,
        workspace=facts.get("workspace"),
        run_id=facts.get("runId"),
        facts=facts,
    )
