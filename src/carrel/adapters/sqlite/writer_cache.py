"""State cached by the writer while no other process commits."""

from __future__ import annotations

import sqlite3
from typing import Final

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.core.identifiers import Scope
from carrel.core.store.record import RecordType

_MAX_ENTRIES: Final = 10_000


class ScopeState:
    """A scope within the current transaction; ``id`` 0 if it has no row yet."""

    __slots__ = ("files", "id", "revision", "size")

    def __init__(self, id: int, revision: int, files: int, size: int) -> None:
        self.id, self.revision, self.files, self.size = id, revision, files, size


class WriterCache:
    """Counters, scopes and collection revisions. Dropped if a batch fails."""

    __slots__ = (
        "collection_revisions",
        "last_content_id",
        "last_event_id",
        "last_scope_id",
        "scope_states",
    )

    def __init__(self, db: sqlite3.Connection) -> None:
        counters = dict(db.execute(STATEMENTS["counters"]).fetchall())
        self.last_content_id: int = counters.get("content", 0)
        self.last_event_id: int = counters.get("event", 0)
        self.last_scope_id: int = counters.get("scope", 0)
        self.scope_states: dict[Scope, ScopeState] = {}
        self.collection_revisions: dict[tuple[str, RecordType], int] = {}

    @property
    def is_full(self) -> bool:
        return len(self.scope_states) + len(self.collection_revisions) > _MAX_ENTRIES
