"""Where commits of SQLite run, and what becomes of those that fail."""

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
from tests.support.commits import AGENT, SOUL, STRANGER, numbers, say, texts
from tests.support.empty_stores import Shelter, told

from carrel.adapters.sqlite import SqliteStore, open_store, writer
from carrel.core.identifiers import Path
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


class Watched:
    """The writer's connection: in which threads it committed, and how long each commit took."""

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
def watched(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> Watched:
    db = Watched(store.writer._db)
    monkeypatch.setattr(store.writer, "_db", db)
    monkeypatch.setattr(writer, "perf_counter", lambda: db.time)
    return db


async def test_commits_run_on_the_loop_once_many_were_quick_until_one_is_slow(
    store: SqliteStore, watched: Watched
) -> None:
    for n in range(18):
        await say(store, f"quick {n}")
    assert watched.on_loop == [False] * 16 + [True] * 2

    watched.takes = 0.003
    await say(store, "the first slow one")
    await say(store, "the second")
    watched.takes = 0.001
    await say(store, "quick again")
    assert watched.on_loop[18:] == [True, False, False]

    for n in range(17):
        await say(store, f"quick again {n}")
    assert watched.on_loop[21:] == [False] * 15 + [True] * 2
    assert await numbers(store) == list(range(38, 0, -1))


async def test_no_commit_runs_on_the_loop_while_the_log_is_being_moved(
    store: SqliteStore, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(17):
        await say(store, f"quick {n}")
    monkeypatch.setattr(store.writer._checkpoints, "is_running", True)
    await say(store, "meanwhile")
    monkeypatch.setattr(store.writer._checkpoints, "is_running", False)
    await say(store, "afterwards")

    assert watched.on_loop[16:] == [True, False, True]


@contextmanager
def full_disk(file: File) -> Iterator[None]:
    """No file of this process may grow beyond what the log is now."""
    most = File(f"{file}-wal").stat().st_size
    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, was[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)


@pytest.mark.parametrize("streak", [0, 16])
@pytest.mark.parametrize("writers", [1, 8])
async def test_a_commit_that_fails_is_its_senders_answer_and_nothing_is_lost(
    store: SqliteStore, file: File, monkeypatch: pytest.MonkeyPatch, streak: int, writers: int
) -> None:
    for n in range(20):
        await say(store, "x" * 10_000, path=Path(f"{n}"))
    kept = await say(store, "kept")
    before = await ids(store)
    monkeypatch.setattr(writer, "_FAST_COMMITS_REQUIRED", 0 if streak else 10**9)

    with full_disk(file):
        rivals = [say(store, f"{n}" * 9000, STRANGER) for n in range(writers)]
        failed = await asyncio.gather(*rivals, return_exceptions=True)
        assert {type(each) for each in failed} == {sqlite3.OperationalError}
        assert await texts(store, STRANGER) == {}
        assert (await store.trees.read([AGENT], [SOUL]))[0].heads == {SOUL: kept}

    assert await ids(store) == before
    assert [(await say(store, f"after {n}", STRANGER)).version for n in range(3)] == [1, 2, 3]
    assert await ids(store) == ([*before[0], 22, 23, 24], [*before[1], 22, 23, 24])
    assert await told(Shelter(store, None)) == []
    async with open_store(file) as later:
        assert await texts(later, STRANGER) == {"SOUL.md": "after 2"}


async def test_a_file_that_may_not_grow_fails_those_who_need_room_and_no_others(
    store: SqliteStore, file: File
) -> None:
    await say(store, "kept")
    db = store.writer._db
    [pages] = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages}")
    small = [say(store, f"small {n}", path=Path(f"{n}")) for n in range(3)]
    failed, *heads = await asyncio.gather(
        say(store, "large" * 10_000), *small, return_exceptions=True
    )
    db.execute("PRAGMA max_page_count = 1000000")

    assert isinstance(failed, sqlite3.OperationalError)
    assert [head.revision for head in heads if isinstance(head, Head)] == [2, 3, 4]
    assert (await say(store, "large" * 10_000)).version == 2
    assert await ids(store) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    assert await told(Shelter(store, None)) == []
