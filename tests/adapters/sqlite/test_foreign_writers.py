"""What one process remembers of a store holds only until another has written to it."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path as File
from time import monotonic

import pytest
from tests.support.commits import AGENT, DEFAULTS, RULES, TEMPLATE, numbers, say

from carrel.adapters.sqlite import open_store
from carrel.adapters.sqlite.write_lock import WriteLock

pytestmark = pytest.mark.anyio
STACK = (AGENT, TEMPLATE, DEFAULTS)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_listing_that_is_known_gives_way_to_what_another_writes(tmp_path: File) -> None:
    file = tmp_path / "carrel.db"
    async with open_store(file) as mine, open_store(file) as theirs:
        await say(mine, "first", TEMPLATE, RULES)
        for number in range(2, 5):
            for scope in STACK:
                known = await mine.trees.read(STACK)
                assert await mine.trees.read(STACK) == known
                before = await mine.trees.revisions(STACK)
                await say(theirs, f"{scope.kind} {number}", scope, RULES)
                assert await mine.trees.revisions(STACK) != before
                [tree] = [one for one in await mine.trees.read(STACK) if one.scope == scope]
                [seen] = await theirs.trees.read((scope,))
                assert tree == seen


async def test_opening_waits_for_its_turn_without_holding_up_the_loop(tmp_path: File) -> None:
    """Whoever has the turn may need the loop to be done with it."""
    file = tmp_path / "carrel.db"
    async with open_store(file):
        pass
    turn = WriteLock(file)
    turn.acquire()
    rescue = threading.Timer(20, turn.release)
    rescue.start()

    async def opened() -> None:
        async with open_store(file) as store:
            await store.maintenance.ping()

    opening = asyncio.create_task(opened())
    await asyncio.sleep(0)
    needed = not rescue.is_alive()
    rescue.cancel()
    turn.release()
    await opening
    turn.close()
    assert not needed


async def test_closing_waits_for_nobody_who_reads(tmp_path: File) -> None:
    file = tmp_path / "carrel.db"
    async with open_store(file) as store:
        await say(store, "before")
        with closing(sqlite3.connect(file, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM version").fetchone()
            await say(store, "after")
            async with open_store(file):
                began = monotonic()
            assert monotonic() - began < 15  # SQLite would wait for it twice as long
            await say(store, "and nobody was held up")
        assert await numbers(store) == [3, 2, 1]
