"""Sessions of an agent, and the entries of their transcripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic

from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.errors import InvalidResponse
from carrel_client.http_messages import HttpRequest, Query
from carrel_client.models import (
    Model,
    camel_case,
    model_from_json,
    models_from_json,
    parse_time,
)
from carrel_client.provenance import Provenance, get_provenance
from carrel_client.requests import (
    api_path,
    drop_none,
    encode_segment,
    get_json,
    items_of,
    send_idempotent,
    send_json,
    send_with_retry,
)

_PAGE_SIZE: Final = 500


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
    run_id: str | None = None
    """The run that wrote it."""
    item: Any = None
    """Its structured form, as it was appended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """An entry to append. Without content, it has the text of its item."""

    role: str
    content: str | None = None
    item: Any = None
    """Any JSON value, such as content parts or a tool call."""
    message_id: str | None = None
    source_plugin: str | None = None
    sender_id: str | None = None
    run_id: str | None = None
    """By default, the run of the session."""

    def to_json(self) -> dict[str, Any]:
        return {
            camel_case(name): value
            for name in self.__slots__
            if (value := getattr(self, name)) is not None
        }


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

    @property
    def run_id(self) -> str | None:
        """The run that the session belongs to now."""
        run_id = self.facts.get("runId")
        return None if run_id is None else str(run_id)

    def _path(self, *segments: str) -> str:
        return session_path(str(self.facts["agentId"]), self.id, *segments)

    @operation
    def append(  # noqa: PLR0913 - the fields of an entry, by name
        self,
        role: str,
        content: str | None = None,
        *,
        item: Any = None,
        run_id: str | None = None,
        message_id: str | None = None,
        source_plugin: str | None = None,
        sender_id: str | None = None,
        after: int | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Entry]:
        """Append an entry; returns it as stored, secrets redacted.

        With ``after`` only if this is the number of the last entry, 0 for none. Raises Conflict,
        with ``last_number``, if it is not, and if the session is closed.
        """
        names = {"message_id": message_id, "source_plugin": source_plugin, "sender_id": sender_id}
        entry = NewEntry(role=role, content=content, item=item, run_id=run_id, **names)
        path = self._path("entries")
        body = entry.to_json() | ({} if after is None else {"after": after})
        row = yield from send_json("POST", path, body, idempotency_key=idempotency_key)
        [stored] = self._count_stored([row])
        return stored

    @operation
    def append_all(
        self,
        entries: Iterable[NewEntry],
        *,
        after: int | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[tuple[Entry, ...]]:
        """Append up to 1,000 entries in one transaction, all or none.

        With ``after`` only if this is the number of the last entry, as for ``append``.
        """
        body = drop_none({"items": entries_to_json(entries), "after": after})
        path = self._path("entries")
        page = yield from send_json("POST", path, body, idempotency_key=idempotency_key)
        return self._count_stored(items_of(page))

    def _count_stored(self, rows: list[Any]) -> tuple[Entry, ...]:
        entries = models_from_json(Entry, rows)
        count = self.entry_count + len(entries)
        self.facts = {**self.facts, "entryCount": count, "lastAt": rows[-1]["timestamp"]}
        return entries

    @operation
    def pop(self, *, idempotency_key: str | None = None) -> Steps[Entry | None]:
        """Remove the last entry and return it; None if there is none.

        Its number is not used again. Raises Conflict if the session is closed.
        """
        path = self._path("pop")
        body = yield from send_json("POST", path, idempotency_key=idempotency_key)
        if not isinstance(body, Mapping) or not {"number", "entry"} <= body.keys():
            raise InvalidResponse("the response is not a removed entry")
        if body["number"] is None:
            return None
        self.facts = {**self.facts, "entryCount": max(0, self.entry_count - 1)}
        return None if body["entry"] is None else model_from_json(Entry, body["entry"])

    @operation
    def clear(self, *, idempotency_key: str | None = None) -> Steps[Session[Driver]]:
        """Remove all entries. Raises Conflict if the session is closed."""
        path = self._path("clear")
        body = yield from send_json("POST", path, idempotency_key=idempotency_key)
        self.facts = session_facts(body)
        return self

    @operation
    def provenance(self, number: int) -> Steps[Provenance]:
        """The run that wrote an entry, its prompt and files with authors and reviews."""
        return (yield from get_provenance(self._path("entries", str(number), "provenance")))

    @operation
    def close(self, *, idempotency_key: str | None = None) -> Steps[Session[Driver]]:
        """Close the session; later appends are refused."""
        path = self._path("close")
        body = yield from send_json("POST", path, idempotency_key=idempotency_key)
        self.facts = session_facts(body)
        return self

    @operation
    def delete(self) -> Steps[None]:
        """Erase the session with its entries; for admins."""
        yield from send_idempotent(HttpRequest("DELETE", self._path()))

    @operation
    def refresh(self) -> Steps[Session[Driver]]:
        """Fetch the session again."""
        self.facts = session_facts((yield from get_json(self._path(), {"limit": "1"})))
        return self

    @operation
    def read(self, *, after: int = 0, limit: int = 100) -> Steps[tuple[Entry, ...]]:
        """A page of the entries after a number, in order."""
        return (yield from self._read(after, limit))

    @operation
    def recent(self, limit: int = 10) -> Steps[tuple[Entry, ...]]:
        """The last entries, in order."""
        entries: tuple[Entry, ...] = ()
        query = {"order": "desc"}
        while len(entries) < limit:
            query["limit"] = str(min(limit - len(entries), _PAGE_SIZE))
            page = yield from get_json(self._path("entries"), query)
            entries += models_from_json(Entry, items_of(page))
            if not page.get("next"):
                break
            query["cursor"] = str(page["next"])
        return entries[::-1]

    @operation
    def lines(self) -> Steps[tuple[str, ...]]:
        """The complete transcript as lines of JSON: a header, then every entry."""
        request = HttpRequest("GET", f"{self._path()}.jsonl")
        text = (yield from send_with_retry(request)).text()
        if not text.endswith("\n"):
            raise InvalidResponse("the transcript ends within a line")
        return tuple(text.split("\n")[:-1])

    def _read(self, after: int, limit: int) -> Steps[tuple[Entry, ...]]:
        query = {"cursor": str(after), "limit": str(limit)}
        body = yield from get_json(self._path(), query)
        self.facts = session_facts(body)
        return entries_of(body)


class SessionEntries(Generic[Driver]):
    """A session and entries of it that follow a number."""

    def __init__(self, driver: Driver, row: Any) -> None:
        self.session = Session(driver, session_facts(row))
        self.entries: tuple[Entry, ...] = entries_of(row)
        self.has_more = bool(row.get("next"))
        """Whether the session has more entries after the last of these."""


class Sessions(Resource[Driver]):
    """The sessions of one agent."""

    def __init__(self, driver: Driver, agent: str) -> None:
        super().__init__(driver)
        self._agent = agent

    def _path(self) -> str:
        return api_path("agents", self._agent, "sessions")

    @operation
    def start(
        self,
        session_id: str | None = None,
        *,
        scope: str | None = None,
        source_plugin: str | None = None,
        run_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Session[Driver]]:
        """Start a session or return the existing one with this id, any text.

        A scope other than ``main`` is shared. The session belongs to the run from now on.
        """
        fields = {"id": session_id, "scope": scope, "sourcePlugin": source_plugin, "runId": run_id}
        body = drop_none(fields)
        row = yield from send_json("POST", self._path(), body, idempotency_key=idempotency_key)
        return Session(self._driver, session_facts(row))

    @operation
    def get(self, session_id: str) -> Steps[Session[Driver]]:
        """Raises NotFound."""
        body = yield from get_json(session_path(self._agent, session_id), {"limit": "1"})
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

    @operation
    def read_several(
        self, positions: Mapping[str, int], *, limit: int = 100
    ) -> Steps[tuple[SessionEntries[Driver] | None, ...]]:
        """Up to 8 sessions with the entries after a number of each, in one request.

        ``positions`` has the number by the session's id, 0 for all entries. None where there is no
        session of that id.
        """
        names = [f"{number}:{id}" for id, number in positions.items()]
        path = api_path("agents", self._agent, "session-entries")
        query: Query = {"session": names, "limit": str(limit)}
        rows = items_of((yield from get_json(path, query)))
        if len(rows) != len(positions):
            raise InvalidResponse("the response has not one item for each session")
        return tuple(row and SessionEntries(self._driver, row) for row in rows)

    def _list(self, query: dict[str, str], scope: str | None) -> Steps[tuple[Session[Driver], ...]]:
        query |= {"scope": scope} if scope else {}
        rows = items_of((yield from get_json(self._path(), query)))
        return tuple(Session(self._driver, session_facts(row)) for row in rows)


def session_path(agent: str, session_id: str, *segments: str) -> str:
    """Path of a session; an id that ends like a transcript is told from one."""
    sessions = api_path("agents", agent, "sessions")
    id = encode_segment(session_id)
    if id.endswith(".jsonl"):
        id = id.replace(".", "%2E")
    return "/".join((sessions, id, *map(encode_segment, segments)))


def entries_to_json(entries: Iterable[NewEntry]) -> list[dict[str, Any]]:
    return [entry.to_json() for entry in entries]


def entries_of(body: Mapping[str, Any]) -> tuple[Entry, ...]:
    """The entries in the response of a session. Raises InvalidResponse."""
    rows = body.get("entries")
    if not isinstance(rows, list):
        raise InvalidResponse("the response has no entries")
    return models_from_json(Entry, rows)


def session_facts(body: Any) -> Mapping[str, Any]:
    """Raises InvalidResponse."""
    names = {"id", "agentId", "scope", "entryCount"}
    if not isinstance(body, Mapping) or not names <= body.keys():
        raise InvalidResponse("the response is not a session")
    return body
