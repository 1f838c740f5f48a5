"""Sessions of an agent, and the entries of their transcripts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.errors import InvalidResponse
from carrel_client.http_messages import HttpRequest
from carrel_client.models import Model, model_from_json, models_from_json, parse_time
from carrel_client.requests import (
    api_path,
    drop_none,
    get_json,
    items_of,
    send_idempotent,
    send_json,
    send_with_retry,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry(Model):
    """One entry of a transcript."""

    number: int
    """Number within the session, from 1."""
    timestamp: datetime
    role: str
    """user, assistant, tool or system."""
    content: str
    message_id: str | None
    source_plugin: str
    sender_id: str | None


class Session(Resource[Driver]):
    """A session as last fetched or changed by this object."""

    def __init__(self, driver: Driver, facts: Mapping[str, Any]) -> None:
        super().__init__(driver)
        self.facts = facts
        """The JSON object of the response."""

    def __repr__(self) -> str:
        return f"<Session {self.id}>"

    @property
    def id(self) -> str:
        return str(self.facts["id"])

    @property
    def scope(self) -> str:
        """main or shared."""
        return str(self.facts["scope"])

    @property
    def source_plugin(self) -> str:
        return str(self.facts["sourcePlugin"])

    @property
    def started_at(self) -> datetime:
        return parse_time(self.facts["startedAt"])

    @property
    def ended_at(self) -> datetime | None:
        return None if self.facts["endedAt"] is None else parse_time(self.facts["endedAt"])

    @property
    def last_at(self) -> datetime:
        """Time of the last entry."""
        return parse_time(self.facts["lastAt"])

    @property
    def entry_count(self) -> int:
        return int(self.facts["entryCount"])

    def _path(self, *segments: str) -> str:
        return api_path("agents", str(self.facts["agentId"]), "sessions", *segments)

    @operation
    def append(
        self,
        role: str,
        content: str,
        *,
        message_id: str | None = None,
        source_plugin: str | None = None,
        sender_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Entry]:
        """Append an entry; returns it as stored, secrets redacted.

        Raises Conflict if the session is closed.
        """
        options = {"messageId": message_id, "sourcePlugin": source_plugin, "senderId": sender_id}
        body = {"role": role, "content": content, **drop_none(options)}
        path = self._path(self.id, "entries")
        row = yield from send_json("POST", path, body, idempotency_key=idempotency_key)
        entry = model_from_json(Entry, row)
        count = max(self.entry_count, entry.number)
        self.facts = {**self.facts, "entryCount": count, "lastAt": row["timestamp"]}
        return entry

    @operation
    def close(self, *, idempotency_key: str | None = None) -> Steps[Session[Driver]]:
        """Close the session; later appends are refused."""
        path = self._path(self.id, "close")
        body = yield from send_json("POST", path, idempotency_key=idempotency_key)
        self.facts = session_facts(body)
        return self

    @operation
    def delete(self) -> Steps[None]:
        """Erase the session with its entries; for admins."""
        yield from send_idempotent(HttpRequest("DELETE", self._path(self.id)))

    @operation
    def refresh(self) -> Steps[Session[Driver]]:
        """Fetch the session again."""
        self.facts = session_facts((yield from get_json(self._path(self.id), {"limit": "1"})))
        return self

    @operation
    def read(self, *, after: int = 0, limit: int = 100) -> Steps[tuple[Entry, ...]]:
        """A page of the entries after a number, in order."""
        return (yield from self._read(after, limit))

    @operation
    def recent(self, limit: int = 10) -> Steps[tuple[Entry, ...]]:
        """The last entries, in order."""
        self.facts = session_facts((yield from get_json(self._path(self.id), {"limit": "1"})))
        entries: tuple[Entry, ...] = ()
        after = max(0, self.entry_count - limit)
        while len(entries) < limit:
            page = yield from self._read(after, limit - len(entries))
            if not page:
                break
            entries += page
            after = page[-1].number
        return entries

    @operation
    def lines(self) -> Steps[tuple[str, ...]]:
        """The complete transcript as lines of JSON: a header, then every entry."""
        request = HttpRequest("GET", self._path(f"{self.id}.jsonl"))
        text = (yield from send_with_retry(request)).text()
        if not text.endswith("\n"):
            raise InvalidResponse("the transcript ends within a line")
        return tuple(text.split("\n")[:-1])

    def _read(self, after: int, limit: int) -> Steps[tuple[Entry, ...]]:
        query = {"cursor": str(after), "limit": str(limit)}
        body = yield from get_json(self._path(self.id), query)
        self.facts = session_facts(body)
        entries = body.get("entries")
        if not isinstance(entries, list):
            raise InvalidResponse("the response has no entries")
        return models_from_json(Entry, entries)


class Sessions(Resource[Driver]):
    """The sessions of one agent."""

    def __init__(self, driver: Driver, agent: str) -> None:
        super().__init__(driver)
        self._agent = agent

    def _path(self, *segments: str) -> str:
        return api_path("agents", self._agent, "sessions", *segments)

    @operation
    def start(
        self,
        session_id: str | None = None,
        *,
        scope: str | None = None,
        source_plugin: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Session[Driver]]:
        """Start a session or return the existing one with this id.

        A scope other than ``main`` is shared.
        """
        body = drop_none({"id": session_id, "scope": scope, "sourcePlugin": source_plugin})
        row = yield from send_json("POST", self._path(), body, idempotency_key=idempotency_key)
        return Session(self._driver, session_facts(row))

    @operation
    def get(self, session_id: str) -> Steps[Session[Driver]]:
        """Raises NotFound."""
        body = yield from get_json(self._path(session_id), {"limit": "1"})
        return Session(self._driver, session_facts(body))

    @operation
    def list(
        self, *, scope: str | None = None, limit: int = 100
    ) -> Steps[tuple[Session[Driver], ...]]:
        """Return a page of sessions, ordered by last entry, newest first."""
        return (yield from self._list({"limit": str(limit)}, scope))

    @operation
    def search(
        self, query: str, *, scope: str | None = None, limit: int = 50
    ) -> Steps[tuple[Session[Driver], ...]]:
        """Search entries by words or prefixes; return their sessions, best first.

        Each has its ``facts["matches"]``.
        """
        return (yield from self._list({"q": query, "limit": str(limit)}, scope))

    def _list(self, query: dict[str, str], scope: str | None) -> Steps[tuple[Session[Driver], ...]]:
        query |= {"scope": scope} if scope else {}
        rows = items_of((yield from get_json(self._path(), query)))
        return tuple(Session(self._driver, session_facts(row)) for row in rows)


def session_facts(body: Any) -> Mapping[str, Any]:
    """Raises InvalidResponse."""
    names = {"id", "agentId", "scope", "entryCount"}
    if not isinstance(body, Mapping) or not names <= body.keys():
        raise InvalidResponse("the response is not a session")
    return body
