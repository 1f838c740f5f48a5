"""Contract of LeaderLock: of any number of contenders exactly one holds the lock."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path as File

import asyncpg
import pytest

from carrel.adapters.postgres.leader_lock import PostgresLeaderLock
from carrel.adapters.sqlite.leader_lock import FileLeaderLock
from carrel.ports import LeaderLock

pytestmark = pytest.mark.anyio

CreateLock = Callable[[str], LeaderLock]


@pytest.fixture(params=["sqlite", "postgres"])
async def create_lock(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[CreateLock]:
    """A function that creates one more lock of a name."""
    locks: list[LeaderLock] = []
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""

    def create(name: str) -> LeaderLock:
        factories: dict[str, Callable[[], LeaderLock]] = {
            "sqlite": lambda: FileLeaderLock(tmp_path / "carrel.db", name),
            "postgres": lambda: PostgresLeaderLock(url, name),
        }
        locks.append(factories[request.param]())
        return locks[-1]

    yield create
    for lock in locks:
        await lock.release()


async def test_one_of_many_holds_the_lock_until_it_releases_it(create_lock: CreateLock) -> None:
    locks = [create_lock("work") for _ in range(5)]

    acquired = await asyncio.gather(*(lock.try_acquire() for lock in locks))

    assert sum(acquired) == 1
    assert await asyncio.gather(*(lock.try_acquire() for lock in locks)) == acquired
    first = locks[acquired.index(True)]
    await first.release()
    again = await asyncio.gather(*(lock.try_acquire() for lock in locks if lock is not first))
    assert sum(again) == 1
    assert not await first.try_acquire()


async def test_locks_of_different_names_are_independent(create_lock: CreateLock) -> None:
    assert await create_lock("one").try_acquire()
    assert await create_lock("other").try_acquire()


async def test_releasing_a_lock_that_is_not_held_has_no_effect(create_lock: CreateLock) -> None:
    first, second = create_lock("work"), create_lock("work")
    assert await first.try_acquire()

    await second.release()

    assert not await second.try_acquire()
    assert await first.try_acquire()


async def test_losing_the_connection_loses_the_lock(postgres_url: str) -> None:
    """Otherwise two processes would believe that they hold it."""
    first, second = (
        PostgresLeaderLock(postgres_url, "work"),
        PostgresLeaderLock(postgres_url, "work"),
    )
    assert await first.try_acquire()
    assert not await second.try_acquire()

    other = await asyncpg.connect(postgres_url)
    await other.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_locks"
        " WHERE locktype = 'advisory' AND database ="
        " (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    await other.close()

    async with asyncio.timeout(30):
        while not await second.try_acquire():
            pass
    with pytest.raises((OSError, asyncpg.PostgresError, asyncpg.InterfaceError)):
        await first.try_acquire()
    assert not await first.try_acquire()
    await second.release()
    assert await first.try_acquire()
    await first.release()
