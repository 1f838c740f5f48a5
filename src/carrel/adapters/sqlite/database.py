"""Opens the SQLite file: statements, connections, pragmas and damage."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path as File
from types import NoneType

from carrel.core import sql_statements
from carrel.ports import CorruptContent

PACKAGE_FILES = files("carrel.adapters.sqlite")
STATEMENTS = sql_statements.parse_statements((PACKAGE_FILES / "statements.sql").read_text("utf-8"))

# Without an adapter sqlite3 raises and drops an exception per value. A write binds nine values of
# these two types, and that would take longer than all other binding.
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(NoneType, lambda value: value)


@contextmanager
def translate_damage(subject: str = "the database") -> Iterator[None]:
    """Raise CorruptContent if SQLite meets a damaged page."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if (corrupt := corrupt_content(error, subject)) is None:
            raise
        raise corrupt from error


def corrupt_content(error: BaseException, subject: str = "the database") -> CorruptContent | None:
    """Return the error to raise for a damaged page; None for another error."""
    if not isinstance(error, sqlite3.Error) or not is_damage(error):
        return None
    corrupt = CorruptContent(f"{subject}: a page of the database is damaged")
    corrupt.__cause__ = error
    return corrupt


def is_damage(error: sqlite3.Error) -> bool:
    """Whether SQLite met a damaged page."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def connect(file: File) -> sqlite3.Connection:
    db = sqlite3.connect(file, isolation_level=None, check_same_thread=False, cached_statements=256)
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
