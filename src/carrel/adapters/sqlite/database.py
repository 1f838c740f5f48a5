"""Opens the SQLite file: statements, connections, pragmas."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path as File
from types import NoneType

from carrel.adapters.sqlite.damage import SqliteConnection
from carrel.core import sql_statements

PACKAGE_FILES = files("carrel.adapters.sqlite")
_STATEMENT_FILES = ("statements.sql", "version_pruning.sql")
STATEMENTS = sql_statements.parse_statements(
    "\n".join((PACKAGE_FILES / name).read_text("utf-8") for name in _STATEMENT_FILES)
)

# Without an adapter sqlite3 raises and drops an exception per value. A write binds nine values of
# these two types, and that would take longer than all other binding.
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(NoneType, lambda value: value)


def connect(file: File) -> sqlite3.Connection:
    db = sqlite3.connect(
        file,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        factory=SqliteConnection,
    )
    for setting in (
        "busy_timeout = 30000",
        "synchronous = FULL",
        "wal_autocheckpoint = 0",
        "cache_size = -16000",
        "temp_store = MEMORY",
        "secure_delete = ON",  # deleted rows leave no bytes in the file
    ):
        db.execute(f"PRAGMA {setting}")
    return db


@contextmanager
def transaction(db: sqlite3.Connection, kind: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
    db.execute(f"BEGIN {kind}")
    try:
        yield db
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
