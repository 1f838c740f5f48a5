"""Opening the file: connections, their settings, and bringing an older file up to date."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from pathlib import Path as File
from types import NoneType

from carrel.adapters.sqlite.write_lock import WriteLock
from carrel.core import sql_statements

HERE = files("carrel.adapters.sqlite")
SQL = sql_statements.parse((HERE / "statements.sql").read_text("utf-8"))
MIGRATIONS = tuple(
    sorted(f.name for f in (HERE / "migrations").iterdir() if f.name.endswith("sql"))
)

# Whatever has no adapter is asked whether it adapts itself, by way of an exception that is made and
# dropped: for these two, of which a write has nine, that takes longer than all the rest of binding.
sqlite3.register_adapter(bytes, bytes)
sqlite3.register_adapter(NoneType, lambda nothing: nothing)


class Incompatible(Exception):
    """The file was written by another version of Carrel than this one can serve."""


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
    """Create the file or bring it up to date; whoever comes first does it, the others wait."""
    with closing(WriteLock(file)) as lock, lock.held(), closing(connect(file)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        with transaction(db, "EXCLUSIVE"):
            _migrate(db)


def _migrate(db: sqlite3.Connection) -> None:
    db.execute(
        "CREATE TABLE IF NOT EXISTS migration"
        " (name TEXT PRIMARY KEY, checksum TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID"
    )
    done = dict(db.execute("SELECT name, checksum FROM migration").fetchall())
    if unknown := sorted(done.keys() - set(MIGRATIONS)):
        raise Incompatible(f"the store has {unknown[-1]}, which this version does not know")
    for name in MIGRATIONS:
        text = (HERE / "migrations" / name).read_text("utf-8")
        checksum = hashlib.sha256(text.encode()).hexdigest()
        if done.get(name, checksum) != checksum:
            raise Incompatible(f"{name} was applied to the store with another text")
        if name not in done:
            _run(db, text)
            now = int(time.time() * 1000)
            db.execute("INSERT INTO migration VALUES (?, ?, ?)", (name, checksum, now))


def _run(db: sqlite3.Connection, script: str) -> None:
    """Run each statement of a script; executescript would end the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""
