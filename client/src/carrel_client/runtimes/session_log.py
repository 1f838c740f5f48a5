"""Records of a runtime as entries of a session, in steps for every driver.

A log only grows. A reader keeps what it has read and fetches what follows.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from carrel_client.drivers import AsyncDriver, Steps, SyncDriver, steps_of
from carrel_client.errors import InvalidResponse, NotFound
from carrel_client.models import models_from_json
from carrel_client.requests import get_json
from carrel_client.sessions import (
    Entry,
    NewEntry,
    Session,
    Sessions,
    session_facts,
    session_path,
)

_PAGE_SIZE: Final = "500"
_MAX_APPENDED: Final = 1000
"""Entries that one request may append."""
_MAX_LOGS: Final = 200
"""Sessions whose entries are kept in memory."""


class SessionLog:
    """The entries of one session, which may not exist yet."""

    def __init__(self, driver: SyncDriver | AsyncDriver, agent: str, session_id: str) -> None:
        self._driver, self._agent, self.session_id = driver, agent, session_id
        self._entries: Mapping[int, Entry] = {}
        self._session: Session[Any] | None = None

    def read(self) -> Steps[Sequence[Entry] | None]:
        """The entries in order, of which only new ones are fetched; None without a session.

        Concurrent readers do not disturb each other.
        """
        before = self._session
        try:
            entries, session = yield from self._fetch(self._entries)
            is_new = before is not None and before.started_at != session.started_at
            if is_new or session.entry_count != len(entries):
                # The session was deleted and started again, or entries were removed.
                entries, session = yield from self._fetch({})
        except NotFound:
            self._entries, self._session = {}, None
            return None
        self._entries, self._session = entries, session
        return tuple(entries.values())

    def append(self, entries: Sequence[NewEntry]) -> Steps[None]:
        """Append entries; the session is started if it does not exist."""
        for start in range(0, len(entries), _MAX_APPENDED):
            yield from self._append(entries[start : start + _MAX_APPENDED])

    def delete(self) -> Steps[None]:
        """Erase the session, if it exists."""
        sessions: Sessions[Any] = Sessions(self._driver, self._agent)
        try:
            session = yield from steps_of(sessions.get, self.session_id)
            yield from steps_of(session.delete)
        except NotFound:
            pass
        self._entries, self._session = {}, None

    def _append(self, entries: Sequence[NewEntry]) -> Steps[None]:
        if self._session is not None:
            try:
                yield from steps_of(self._session.append_all, entries)
            except NotFound:
                pass  # Deleted since.
            else:
                return
        sessions: Sessions[Any] = Sessions(self._driver, self._agent)
        session = yield from steps_of(sessions.start, self.session_id)
        yield from steps_of(session.append_all, entries)

    def _fetch(self, previous: Mapping[int, Entry]) -> Steps[tuple[dict[int, Entry], Session[Any]]]:
        """The previous entries with those that follow, by number, and the session."""
        entries = dict(previous)
        path = session_path(self._agent, self.session_id)
        cursor = str(next(reversed(entries), 0))
        while True:
            page = yield from get_json(path, {"cursor": cursor, "limit": _PAGE_SIZE})
            session: Session[Any] = Session(self._driver, session_facts(page))
            entries |= {entry.number: entry for entry in _entries_of(page)}
            if not page.get("next"):
                return entries, session
            cursor = str(page["next"])


class SessionLogs:
    """The logs of an agent's sessions; those used last are kept in memory."""

    def __init__(self, driver: SyncDriver | AsyncDriver, agent: str) -> None:
        self._driver, self._agent = driver, agent
        self._logs: OrderedDict[str, SessionLog] = OrderedDict()

    def log(self, session_id: str) -> SessionLog:
        log = self._logs.setdefault(session_id, SessionLog(self._driver, self._agent, session_id))
        self._logs.move_to_end(session_id)
        while len(self._logs) > _MAX_LOGS:
            self._logs.popitem(last=False)
        return log


def _entries_of(page: Any) -> Sequence[Entry]:
    rows = page.get("entries")
    if not isinstance(rows, list):
        raise InvalidResponse("the response has no entries")
    return models_from_json(Entry, rows)


def items_of_kind(entries: Iterable[Entry], kind: str) -> list[Any]:
    """The items that a runtime's adapter has written: objects whose ``kind`` is this."""
    return [
        entry.item
        for entry in entries
        if isinstance(entry.item, dict) and entry.item.get("kind") == kind
    ]
