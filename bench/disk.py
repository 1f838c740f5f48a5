"""Baselines: the disk and SQLite without a server."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path as File
from time import perf_counter

from carrel.adapters.sqlite import SqliteStore, open_store
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.store.commit import Applied, Commit, Expect, Write
from carrel.core.store.entry import Entry

CONTENT = os.urandom(2048).hex().encode()
BLOCK = 8192


def rate(seconds: float, step: Callable[[int], object]) -> float:
    began, count = perf_counter(), 0
    while (took := perf_counter() - began) < seconds:
        step(count)
        count += 1
    return count / took


def fdatasync_rate(folder: File, seconds: float) -> float:
    """Rate of overwriting a block in place and syncing it."""
    handle = os.open(folder / "fdatasync.bin", os.O_RDWR | os.O_CREAT)
    try:
        os.write(handle, b"x" * BLOCK * 64)
        os.fsync(handle)

        def step(count: int) -> None:
            os.pwrite(handle, b"y" * BLOCK, count % 64 * BLOCK)
            os.fdatasync(handle)

        return rate(seconds, step)
    finally:
        os.close(handle)


def sqlite_rate(folder: File, seconds: float, group: int = 1, content: bytes = CONTENT) -> float:
    """Rate of conditional writes in bare SQLite, `group` per transaction."""
    db = sqlite3.connect(folder / "bare.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE IF NOT EXISTS v (id INTEGER PRIMARY KEY, path, n, body)")
    db.execute("CREATE TABLE IF NOT EXISTS head (path PRIMARY KEY, n, v) WITHOUT ROWID")

    def write(path: str) -> None:
        head_row = db.execute("SELECT n FROM head WHERE path = ?", (path,)).fetchone()
        number = head_row[0] + 1 if head_row else 1
        row = db.execute("INSERT INTO v (path, n, body) VALUES (?, ?, ?)", (path, number, content))
        db.execute("INSERT OR REPLACE INTO head VALUES (?, ?, ?)", (path, number, row.lastrowid))

    def step(count: int) -> None:
        db.execute("BEGIN IMMEDIATE")
        for number in range(count * group, (count + 1) * group):
            write(f"file-{number % 100}.md")
        db.execute("COMMIT")

    try:
        return group * rate(seconds, step)
    finally:
        db.close()


SCOPE = Scope("bench", ScopeKind.WORKSPACE, "default")


async def commit_rate(store: SqliteStore, writers: int, seconds: float) -> float:
    """Rate of Carrel's conditional commits, without HTTP."""
    ends = perf_counter() + seconds
    counts = await asyncio.gather(*(_write(store, n, ends) for n in range(writers)))
    return sum(counts) / seconds


async def _write(store: SqliteStore, number: int, ends: float) -> int:
    path, count = Path(f"writer-{number}.md"), 0
    while perf_counter() < ends:
        [tree] = await store.trees.read((SCOPE,), (path,))
        [blob] = await store.blobs.put([CONTENT])
        write, expect = Write(SCOPE, path, Entry(blob)), Expect(SCOPE, path, tree.version(path))
        [outcome] = await store.trees.commit([Commit((write,), "bench", "put", 0, (expect,))])
        assert isinstance(outcome, Applied)
        count += 1
    return count


async def run_start_rate(store: SqliteStore, seconds: float, mark: str) -> float:
    """Rate of run starts, one after the other, without HTTP."""
    began, count = perf_counter(), 0
    while (took := perf_counter() - began) < seconds:
        id = f"run_{mark}{count:020}"
        run = Run(id, "bench", SCOPE, "bench", Audience.MAIN, RunStatus.RUNNING, "bench", 0)
        await store.runs.start([(run, (SCOPE,))])
        count += 1
    return count / took


__all__ = ["commit_rate", "fdatasync_rate", "open_store", "run_start_rate", "sqlite_rate"]
