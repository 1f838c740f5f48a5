"""Records of a runtime as entries of a session, in steps for every driver.

A log only grows. A reader keeps what it has read and fetches what follows; a writer whose record
depends on earlier ones appends it after the last entry that it knows, and reads only if refused.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from carrel_client.drivers import AsyncDriver, Steps, SyncDriver, steps_of
from carrel_client.errors import Busy, Conflict, NotFound
from carrel_client.requests import get_json
from carrel_client.sessions import (
    Entry,
    NewEntry,
    Session,
    SessionEntries,
    Sessions,
    session_path,
)

_PAGE_SIZE: Final = 500
_MAX_APPENDED: Final = 1000
"""Entries that one request may append."""
_MAX_LOGS: Final = 200
"""Sessions whose entries are kept in memory."""
_MAX_ATTEMPTS: Final = 100
"""Of writers that append at the same time one succeeds each time."""
Choice = Callable[[Sequence[Entry]], Sequence[NewEntry]]
"""What to append after these entries. May raise an exception about what they are."""


@dataclass(frozen=True, slots=True)
class LogState:
    """All entries of a session by number, as last read or appended; no session if there is none."""

    session: Session[Any] | None = None
    by_number: dict[int, Entry] = field(default_factory=dict)

    @property
    def in_order(self) -> Sequence[Entry]:
        return tuple(self.by_number.values())

    @property
    def last_number(self) -> int:
        return next(reversed(self.by_number), 0)


class SessionLog:
    """The entries of one session, which may not exist yet. Concurrent users do not disturb it."""

    def __init__(self, driver: SyncDriver | AsyncDriver, agent: str, session_id: str) -> None:
        self._driver, self._agent, self.session_id = driver, agent, session_id
        self._state = LogState()

    def read(self) -> Steps[Sequence[Entry] | None]:
        """The entries in order, of which only new ones are fetched; None without a session."""
        state = yield from self._read()
        return state.in_order if state.session else None

    def append(self, entries: Sequence[NewEntry]) -> Steps[None]:
        """Append entries; the session is started if it does not exist."""
        for start in range(0, len(entries), _MAX_APPENDED):
            yield from self._append(entries[start : start + _MAX_APPENDED])

    def append_chosen(self, choose: Choice) -> Steps[bool]:
        """Append what ``choose`` returns for all entries so far; whether there was any.

        It is asked with the known entries first. They are read, and it is asked again, if others
        have appended since, and before its exception or an empty answer is final.
        """
        if self._state.session is not None and (yield from self._append_to_known(choose)):
            return True
        for _ in range(_MAX_ATTEMPTS):
            state = yield from self._read()
            entries = choose(state.in_order)
            if not entries:
                return False
            if (yield from self._append_after(state, entries)):
                return True
        raise Busy(f"others keep appending to session {self.session_id}")

    def delete(self) -> Steps[None]:
        """Erase the session, if it exists."""
        sessions: Sessions[Any] = Sessions(self._driver, self._agent)
        with suppress(NotFound):
            session = yield from steps_of(sessions.get, self.session_id)
            yield from steps_of(session.delete)
        self._state = LogState()

    def _append(self, entries: Sequence[NewEntry]) -> Steps[None]:
        session = self._state.session
        if session is not None:
            with suppress(NotFound):  # Deleted since.
                yield from steps_of(session.append_all, entries)
                return
        session = yield from self._start()
        yield from steps_of(session.append_all, entries)

    def _append_to_known(self, choose: Choice) -> Steps[bool]:
        """Append to the known entries, if they are all and there is something to append."""
        state = self._state
        try:
            entries = choose(state.in_order)
        except Exception:
            return False  # It may be about entries that are not known.
        with suppress(NotFound):  # Deleted since.
            return bool(entries) and (yield from self._append_after(state, entries))
        return False

    def _append_after(self, state: LogState, entries: Sequence[NewEntry]) -> Steps[bool]:
        """Append entries if the known ones are all; the session is started if there is none."""
        session = state.session or (yield from self._start())
        for start in range(0, len(entries), _MAX_APPENDED):
            batch = entries[start : start + _MAX_APPENDED]
            try:
                stored = yield from steps_of(session.append_all, batch, after=state.last_number)
            except Conflict as error:
                if error.last_number is None or start:
                    raise
                return False
            numbered = {entry.number: entry for entry in stored}
            self._state = state = LogState(session, state.by_number | numbered)
        return True

    def _start(self) -> Steps[Session[Any]]:
        sessions: Sessions[Any] = Sessions(self._driver, self._agent)
        session: Session[Any] = yield from steps_of(sessions.start, self.session_id)
        return session

    def _read(self) -> Steps[LogState]:
        """Fetch what follows the known entries."""
        state, page = self._state, None
        with suppress(NotFound):
            page = yield from self._page(state)
        return (yield from self._complete(state, page))

    def _complete(self, state: LogState, page: SessionEntries[Any] | None) -> Steps[LogState]:
        """Know the entries of a page and of later pages too; None if there is no session."""
        current = LogState()
        if page is not None:
            with suppress(NotFound):  # Deleted since.
                current = yield from self._follow(state, page)
        self._state = current
        return current

    def _follow(self, state: LogState, page: SessionEntries[Any]) -> Steps[LogState]:
        """The known entries with all that follow, and the session."""
        current = yield from self._read_pages(state, page)
        before, session = state.session, current.session or page.session
        is_new = before is not None and before.started_at != session.started_at
        if is_new or session.entry_count != len(current.by_number):
            # The session was deleted and started again, or entries were removed.
            state = LogState()
            current = yield from self._read_pages(state, (yield from self._page(state)))
        return current

    def _read_pages(self, state: LogState, page: SessionEntries[Any]) -> Steps[LogState]:
        by_number = dict(state.by_number)
        while True:
            by_number |= {entry.number: entry for entry in page.entries}
            current = LogState(page.session, by_number)
            if not page.has_more:
                return current
            page = yield from self._page(current)

    def _page(self, state: LogState) -> Steps[SessionEntries[Any]]:
        """The first page of what follows the known entries. Raises NotFound."""
        query = {"cursor": str(state.last_number), "limit": str(_PAGE_SIZE)}
        path = session_path(self._agent, self.session_id)
        return SessionEntries(self._driver, (yield from get_json(path, query)))


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

    def read_all(self, session_ids: Sequence[str]) -> Steps[tuple[Sequence[Entry] | None, ...]]:
        """Read up to 8 logs as each would, in one request if little is new."""
        sessions: Sessions[Any] = Sessions(self._driver, self._agent)
        logs = [self.log(id) for id in session_ids]
        states = [log._state for log in logs]
        positions = {id: state.last_number for id, state in zip(session_ids, states, strict=True)}
        pages = yield from steps_of(sessions.read_several, positions, limit=_PAGE_SIZE)
        results: list[Sequence[Entry] | None] = []
        for log, state, page in zip(logs, states, pages, strict=True):
            current = yield from log._complete(state, page)
            results.append(current.in_order if current.session else None)
        return tuple(results)


def items_of_kind(entries: Iterable[Entry], kind: str) -> list[Any]:
    """The items that a runtime's adapter has written: objects whose ``kind`` is this."""
    return list(iter_items_of_kind(entries, kind))


def iter_items_of_kind(entries: Iterable[Entry], kind: str) -> Iterator[Any]:
    """As ``items_of_kind``, one at a time."""
    for entry in entries:
        if isinstance(entry.item, dict) and entry.item.get("kind") == kind:
            yield entry.item
