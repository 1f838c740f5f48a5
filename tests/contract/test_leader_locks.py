"""What every Turn must do: of any number who would do a work, one has its turn."""

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

Joined = Callable[[str], LeaderLock]


@pytest.fixture(params=["sqlite", "postgres"])
async def join(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[Joined]:
    """Lets one more take part in a work of some name."""
    made: list[LeaderLock] = []
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else ""

    def one_more(name: str) -> LeaderLock:
        turns: dict[str, Callable[[], LeaderLock]] = {
            "sqlite": lambda: FileLeaderLock(tmp_path / "carrel.db", name),
            "postgres": lambda: PostgresLeaderLock(url, name),
        }
        made.append(turns[request.param]())
        return made[-1]

    yield one_more
    for turn in made:
        await turn.release()


async def test_one_of_many_has_its_turn_until_it_leaves(join: Joined) -> None:
    turns = [join("work") for _ in range(5)]

    taken = await asyncio.gather(*(turn.try_acquire() for turn in turns))

    assert sum(taken) == 1
    assert await asyncio.gather(*(turn.try_acquire() for turn in turns)) == taken
    first = turns[taken.index(True)]
    await first.release()
    again = await asyncio.gather(*(turn.try_acquire() for turn in turns if turn is not first))
    assert sum(again) == 1
    assert not await first.try_acquire()


async def test_works_of_other_names_are_done_beside_it(join: Joined) -> None:
    assert await join("one").try_acquire()
    assert await join("other").try_acquire()


async def test_leaving_without_having_had_it_takes_it_from_nobody(join: Joined) -> None:
    first, second = join("work"), join("work")
    assert await first.try_acquire()

    await second.release()

    assert not await second.try_acquire()
    assert await first.try_acquire()


async def test_who_lost_the_connection_has_lost_the_turn(postgres_url: str) -> None:
    """Else two would believe that they have it."""
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
