"""Entries of a session as a runtime reads and writes them, without fetching the session first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from carrel_client.drivers import AsyncDriver, Steps, SyncDriver, steps_of
from carrel_client.errors import NotFound
from carrel_client.sessions import Entry, NewEntry, Session, Sessions

PAGE_SIZE: Final = 500
MAX_ENTRIES: Final = 1000
"""Entries that one request may append."""
AnyDriver = SyncDriver | AsyncDriver


def named_session(driver: AnyDriver, agent: str, session_id: str) -> Session[Any]:
    """A session by its id, without a request; it may not exist."""
    facts = {"id": session_id, "agentId": agent, "scope": "", "entryCount": 0}
    return Session(driver, facts)


def read_all(driver: AnyDriver, agent: str, session_id: str) -> Steps[list[Entry]]:
    """All entries in order; none if there is no such session."""
    session, entries = named_session(driver, agent, session_id), list[Entry]()
    while True:
        after = entries[-1].number if entries else 0
        try:
            page = yield from steps_of(session.read, after=after, limit=PAGE_SIZE)
        except NotFound:
            return []
        entries += page
        if len(page) < PAGE_SIZE:
            return entries


def append_entries(
    driver: AnyDriver, agent: str, session_id: str, entries: Sequence[NewEntry]
) -> Steps[None]:
    """Append entries, to a session that is started if there is none."""
    session = named_session(driver, agent, session_id)
    for start in range(0, len(entries), MAX_ENTRIES):
        batch = entries[start : start + MAX_ENTRIES]
        try:
            yield from steps_of(session.append_all, batch)
        except NotFound:
            sessions: Sessions[Any] = Sessions(driver, agent)
            session = yield from steps_of(
                sessions.start, session_id, source_plugin=batch[0].source_plugin
            )
            yield from steps_of(session.append_all, batch)
