"""SQLite commits: the thread in which they run, and failures."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path as File
from typing import Any

import pytest
from tests.adapters.sqlite.test_writer import ids
from tests.support.commits import AGENT, FOREIGN_AGENT, SOUL, put_text, read_texts, version_numbers
from tests.support.empty_stores import OpenedStore, check_findings

from carrel.adapters.sqlite import SqliteStore, open_store, writer
from carrel.core.identifiers import Path
from carrel.core.outages import StorageFull
from carrel.core.store.entry import Head

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def file(tmp_path: File) -> File:
    return tmp_path / "carrel.db"


@pytest.fixture
async def store(file: File) -> AsyncIterator[SqliteStore]:
    async with open_store(file) as opened:
        yield opened


class WatchedConnection:
    """The writer's connection, which records threads and durations of commits."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.time = 0.0
        self.takes = 0.0
        self.on_loop: list[bool] = []

    def execute(self, sql: str, *about: Any) -> sqlite3.Cursor:
        if sql == "COMMIT":
            self.on_loop.append(threading.current_thread() is threading.main_thread())
            self.time += self.takes
        return self._db.execute(sql, *about)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


@pytest.fixture
def watched(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> WatchedConnection:
    db = WatchedConnection(store.writer._db)
    monkeypatch.setattr(store.writer, "_db", db)
    monkeypatch.setattr(writer, "perf_counter", lambda: db.time)
    return db


async def test_commits_run_on_the_loop_after_many_quick_ones_until_a_slow_one(
    store: SqliteStore, watched: WatchedConnection
) -> None:
    for n in range(18):
        await put_text(store, f"quick {n}")
    assert watched.on_loop == [False] * 16 + [True] * 2

    watched.takes = 0.003
    await put_text(store, "the first slow one")
    await put_text(store, "the second")
    watched.takes = 0.001
    await put_text(store, "quick again")
    assert watched.on_loop[18:] == [True, False, False]

    for n in range(17):
        await put_text(store, f"quick again {n}")
    assert watched.on_loop[21:] == [False] * 15 + [True] * 2
    assert await version_numbers(store) == list(range(38, 0, -1))


async def test_no_commit_runs_on_the_loop_during_a_wal_checkpoint(
    store: SqliteStore, watched: WatchedConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(17):
        await put_text(store, f"quick {n}")
    monkeypatch.setattr(store.writer._checkpoints, "is_running", True)
    await put_text(store, "meanwhile")
    monkeypatch.setattr(store.writer._checkpoints, "is_running", False)
    await put_text(store, "afterwards")

    assert watched.on_loop[16:] == [True, False, True]


@contextmanager
def full_disk(file: File) -> Iterator[None]:
    """Limit the size of all files of this process to the current size of the WAL."""
    limit = File(f"{file}-wal").stat().st_size
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, was[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)


@pytest.mark.parametrize("streak", [0, 16])
@pytest.mark.parametrize("writers", [1, 8])
async def test_failed_commit_raises_for_its_caller_and_loses_nothing(
    store: SqliteStore, file: File, monkeypatch: pytest.MonkeyPatch, streak: int, writers: int
) -> None:
    for n in range(20):
        await put_text(store, "x" * 10_000, path=Path(f"{n}"))
    stored = await put_text(store, "kept")
    before = await ids(store)
    monkeypatch.setattr(writer, "_FAST_COMMITS_REQUIRED", 0 if streak else 10**9)

    with full_disk(file):
        rivals = [put_text(store, f"{n}" * 9000, FOREIGN_AGENT) for n in range(writers)]
        failed = await asyncio.gather(*rivals, return_exceptions=True)
        assert {type(problem) for problem in failed} == {sqlite3.OperationalError}
        assert await read_texts(store, FOREIGN_AGENT) == {}
        assert (await store.trees.read([AGENT], [SOUL]))[0].heads == {SOUL: stored}

    assert await ids(store) == before
    assert [(await put_text(store, f"after {n}", FOREIGN_AGENT)).version for n in range(3)] == [
        1,
        2,
        3,
    ]
    assert await ids(store) == ([*before[0], 22, 23, 24], [*before[1], 22, 23, 24])
    assert await check_findings(OpenedStore(store, None)) == []
    async with open_store(file) as later:
        assert await read_texts(later, FOREIGN_AGENT) == {"SOUL.md": "after 2"}


async def test_full_file_fails_only_commits_that_need_space(store: SqliteStore, file: File) -> None:
    await put_text(store, "kept")
    db = store.writer._db
    [pages] = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages}")
    small = [put_text(store, f"small {n}", path=Path(f"{n}")) for n in range(3)]
    failed, *heads = await asyncio.gather(
        put_text(store, "large" * 10_000), *small, return_exceptions=True
    )
    db.execute("PRAGMA max_page_count = 1000000")

    assert isinstance(failed, StorageFull)
    assert [head.revision for head in heads if isinstance(head, Head)] == [2, 3, 4]
    assert (await put_text(store, "large" * 10_000)).version == 2
    assert await ids(store) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    assert await check_findings(OpenedStore(store, None)) == []
