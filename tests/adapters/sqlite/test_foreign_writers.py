"""Caches of one process are invalid after another process has written to the store."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path as File
from time import monotonic

import pytest
from tests.support.commits import (
    AGENT,
    DEFAULTS,
    RULES,
    SOUL,
    TEMPLATE,
    put_text,
    version_numbers,
)

from carrel.adapters.sqlite import open_store
from carrel.adapters.sqlite.write_lock import WriteLock
from carrel.core.identifiers import Path

pytestmark = pytest.mark.anyio
STACK = (AGENT, TEMPLATE, DEFAULTS)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_cached_listing_is_replaced_after_a_foreign_write(tmp_path: File) -> None:
    file = tmp_path / "carrel.db"
    async with open_store(file) as mine, open_store(file) as theirs:
        await put_text(mine, "first", TEMPLATE, RULES)
        for number in range(2, 5):
            for scope in STACK:
                cached = await mine.trees.read(STACK)
                assert await mine.trees.read(STACK) == cached
                before = await mine.trees.revisions(STACK)
                await put_text(theirs, f"{scope.kind} {number}", scope, RULES)
                assert await mine.trees.revisions(STACK) != before
                [tree] = [
                    candidate
                    for candidate in await mine.trees.read(STACK)
                    if candidate.scope == scope
                ]
                [current] = await theirs.trees.read((scope,))
                assert tree == current


async def test_opening_waits_for_the_lock_without_blocking_the_loop(tmp_path: File) -> None:
    """The owner of the lock may need the loop to release it."""
    file = tmp_path / "carrel.db"
    async with open_store(file):
        pass
    turn = WriteLock(file)
    turn.acquire()
    rescue = threading.Timer(20, turn.release)
    rescue.start()

    async def open_and_close() -> None:
        async with open_store(file) as store:
            await store.maintenance.ping()

    opening = asyncio.create_task(open_and_close())
    await asyncio.sleep(0)
    needed = not rescue.is_alive()
    rescue.cancel()
    turn.release()
    await opening
    turn.close()
    assert not needed


async def test_closing_waits_for_no_reader(tmp_path: File) -> None:
    file = tmp_path / "carrel.db"
    async with open_store(file) as store:
        await put_text(store, "before")
        with closing(sqlite3.connect(file, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM version").fetchone()
            await put_text(store, "after")
            async with open_store(file):
                began = monotonic()
            assert monotonic() - began < 15  # SQLite would wait for the reader twice as long
            await put_text(store, "not blocked")
        assert await version_numbers(store) == [3, 2, 1]


async def test_heads_read_by_path_are_read_again_after_a_foreign_write(tmp_path: File) -> None:
    file, paths = tmp_path / "carrel.db", [RULES, SOUL, Path("absent.md")]
    async with open_store(file) as mine, open_store(file) as theirs:
        for writer in (mine, theirs, mine):
            await mine.trees.read(STACK, paths)
            await put_text(writer, "newer", AGENT, RULES)
            await put_text(writer, "newer", TEMPLATE, SOUL)
            assert await mine.trees.read(STACK, paths) == await theirs.trees.read(STACK, paths)


async def test_heads_of_own_commits_are_read_by_path_without_a_query(tmp_path: File) -> None:
    async with open_store(tmp_path / "carrel.db") as store:
        await store.trees.read(STACK, [RULES, SOUL])
        await put_text(store, "newer", AGENT, RULES)
        before = store.reader.misses
        [tree, *_] = await store.trees.read(STACK, [SOUL, RULES])
        assert tree.version(RULES) == 1
        assert store.reader.misses == before
