"""State cached by the writer while no other process commits."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import Final

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.rows import scopes_to_json
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

    def load_scope_states(self, db: sqlite3.Connection, scopes: Iterable[Scope]) -> None:
        """Read the scopes that are not cached, in one query."""
        missing = [scope for scope in scopes if scope not in self.scope_states]
        self.scope_states.update((scope, ScopeState(0, 0, 0, 0)) for scope in missing)
        for index, *row in db.execute(STATEMENTS["scopes"], (scopes_to_json(missing),)).fetchall():
            self.scope_states[missing[index]] = ScopeState(*row)
