"""Creates or migrates the SQLite file when the store is opened."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path as File
from typing import Final

from carrel.adapters.sqlite.database import PACKAGE_FILES, connect, transaction
from carrel.adapters.sqlite.reserve import DiskReserve
from carrel.adapters.sqlite.write_lock import WriteLock
from carrel.core.outages import StorageFull

MIGRATIONS: Final[Mapping[str, str]] = {
    file.name: file.read_text("utf-8")
    for file in sorted((PACKAGE_FILES / "migrations").iterdir(), key=lambda file: file.name)
    if file.name.endswith(".sql")
}

REINDEXING_MIGRATIONS: frozenset[str] = frozenset()
"""Migrations that clear the full-text indexes."""
RebuildIndexes = Callable[[sqlite3.Connection], object]


class SqliteSchemaMismatch(Exception):
    """The file was written by another version of Carrel that this one cannot serve."""


def prepare(file: File, rebuild_indexes: RebuildIndexes = lambda _: None) -> None:
    """Create or migrate the file. Processes that start at the same time wait.

    `rebuild_indexes` runs after a migration that clears the full-text indexes, in its transaction.
    On a full disk the reserve is released, since SQLite needs space to open the file.
    """
    reserve = DiskReserve(file)
    try:
        _prepare(file, rebuild_indexes)
    except (sqlite3.Error, OSError) as problem:
        outage = reserve.translate(problem)
        if isinstance(outage, StorageFull) and reserve.release():
            _prepare(file, rebuild_indexes)
        else:
            raise outage from problem


def _prepare(file: File, rebuild_indexes: RebuildIndexes) -> None:
    _make_private(file)
    with closing(WriteLock(file)) as lock, lock.hold(), closing(connect(file)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        with transaction(db, "EXCLUSIVE"):
            if REINDEXING_MIGRATIONS & set(_migrate(db)):
                rebuild_indexes(db)


def _make_private(file: File) -> None:
    """Create the file for its owner only; SQLite gives its other files the same mode."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        with suppress(PermissionError):  # the file of another user
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def _migrate(db: sqlite3.Connection) -> list[str]:
    """Apply the missing migrations and return their names."""
    db.execute(
        "CREATE TABLE IF NOT EXISTS migration (name TEXT PRIMARY KEY,"
        " checksum TEXT NOT NULL, applied_at INTEGER NOT NULL) WITHOUT ROWID"
    )
    applied = dict(db.execute("SELECT name, checksum FROM migration").fetchall())
    if unknown := sorted(applied.keys() - MIGRATIONS.keys()):
        raise SqliteSchemaMismatch(
            f"the store has unknown migration {unknown[-1]}; use a newer version of Carrel"
        )
    missing = [name for name in MIGRATIONS if name not in applied]
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
    return missing


def _run_script(db: sqlite3.Connection, script: str) -> None:
    """Run each statement of a script; executescript would commit the transaction."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            db.execute(statement)
            statement = ""
