"""What the writer knows of the store without asking, for as long as nobody else commits."""

from __future__ import annotations

import sqlite3
from typing import Final

from carrel.adapters.sqlite.database import SQL
from carrel.core.identifiers import Scope
from carrel.core.store.record import RecordType

_MOST: Final = 10_000


class ScopeState:
    """A scope as the transaction under way has it so far; ``id`` 0 means that it has no row yet."""

    __slots__ = ("files", "id", "revision", "size")

    def __init__(self, id: int, revision: int, files: int, size: int) -> None:
        self.id, self.revision, self.files, self.size = id, revision, files, size


class WriterCache:
    """Counters, scopes and shelves. A batch moves them on; if it fails, all of it is forgotten."""

    __slots__ = ("content", "event", "places", "scope", "shelves")

    def __init__(self, db: sqlite3.Connection) -> None:
        counters = dict(db.execute(SQL["counters"]).fetchall())
        self.content: int = counters.get("content", 0)
        self.event: int = counters.get("event", 0)
        self.scope: int = counters.get("scope", 0)
        self.places: dict[Scope, ScopeState] = {}
        self.shelves: dict[tuple[str, RecordType], int] = {}

    @property
    def is_full(self) -> bool:
        return len(self.places) + len(self.shelves) > _MOST
