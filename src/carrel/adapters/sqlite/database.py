"""Opens the SQLite file: connections, pragmas and migrations."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path as File
from types import NoneType
from typing import Final

from carrel.adapters.sqlite.write_lock import WriteLock
from carrel.core import sql_statements

PACKAGE_FILES = files("carrel.adapters.sqlite")
STATEMENTS = sql_statements.parse_statements((PACKAGE_FILES / "statements.sql").read_text("utf-8"))
MIGRATIONS: Final[Mapping[str, str]] = {
    file.name: file.read_text("utf-8")
    for file in sorted((PACKAGE_FILES / "migrations").iterdir(), key=lambda file: file.name)
    if file.name.endswith(".sql")
}

# Without an adapter sqlite3 raises and drops an exception per value. A write binds nine values of
# these two types, and that would take longer than all other binding.
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(NoneType, lambda value: value)


class SqliteSchemaMismatch(Exception):
    """The file was written by another version of Carrel that this one cannot serve."""


def connect(file: File) -> sqlite3.Connection:
    db = sqlite3.connect(file, isolation_level=None, check_same_thread=False, cached_statements=256)
    for setting in (
        "busy_timeout = 30000",
        "synchronous = FULL",
        "wal_autocheckpoint = 0",
        "cache_size = -16000",
        "temp_store = MEMORY",
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


def prepare(file: File) -> None:
    """Create or migrate the file. Processes that start at the same time wait."""
    with closing(WriteLock(file)) as lock, lock.hold(), closing(connect(file)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        with transaction(db, "EXCLUSIVE"):
            _migrate(db)


def _migrate(db: sqlite3.Connection) -> None:
    db.execute(
        "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY,"
        " checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) WITHOUT ROWID"
    )
    applied = dict(db.execute("SELECT name, checksum FROM migration").fetchall())
    if unknown := sorted(applied.keys() - MIGRATIONS.keys()):
        raise SqliteSchemaMismatch(
            f"the store has unknown migration {unknown[-1]}; use a newer version of Carrel"
        )
    for name, text in MIGRATIONS.items():
        checksum = hashlib.sha256(text.encode()).hexdigest()
        if applied.get(name, checksum) != checksum:
            raise SqliteSchemaMismatch(
                f"migration {name} was applied to the store with different content"
            )
        if name not in applied:
            _run_script(db, text)
            now = int(time.time() * 1000)
            db.execute("INSERT INTO migration VALUES (?, ?, ?)", (name, checksum, now))


def _run_script(db: sqlite3.Connection, script: str) -> None:
    """Run each statement of a script; executescript would commit the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""
