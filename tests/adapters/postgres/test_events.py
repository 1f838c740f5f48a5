"""Reading the event log in PostgreSQL, where transactions may end out of order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncpg
import pytest

from carrel.adapters.postgres import PostgresStore, open_store
from carrel.adapters.postgres.commit_columns import CommitColumns
from carrel.adapters.postgres.database import STATEMENTS
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Commit, Write
from carrel.core.store.entry import Entry
from carrel.core.store.event import EventFilter

pytestmark = pytest.mark.anyio

NOW = 1_800_000_000_000
FIRST, SECOND = Scope("acme", ScopeKind.AGENT, "one"), Scope("acme", ScopeKind.AGENT, "two")
EMPTY = Blob(
    Digest("sha256:" + "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"), 0, b""
)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with open_store(postgres_url) as opened:
        yield opened


@pytest.fixture
async def slow(postgres_url: str, store: PostgresStore) -> AsyncIterator[asyncpg.Connection]:
    """A connection with an open transaction."""
    connection = await asyncpg.connect(postgres_url)
    yield connection
    await connection.close()


def put(scope: Scope, name: str) -> Commit:
    return Commit((Write(scope, Path(name), Entry(EMPTY)),), "ada", "", NOW)


async def write(store: PostgresStore, name: str, scope: Scope = FIRST) -> None:
    await store.trees.commit([put(scope, name)])


async def write_slowly(connection: asyncpg.Connection, name: str, scope: Scope = SECOND) -> None:
    await connection.fetchrow(
        STATEMENTS["apply_commits"], *CommitColumns([put(scope, name)]).arguments()
    )


async def names(store: PostgresStore, cursor: str | None = None) -> list[str]:
    return [event.payload["path"] for event in await store.events.read_after(cursor)]


async def test_event_of_a_transaction_that_ends_late_is_not_missed(
    store: PostgresStore, slow: asyncpg.Connection
) -> None:
    await write(store, "before")
    transaction = slow.transaction()
    await transaction.start()
    await write_slowly(slow, "slow")
    await write(store, "quick")

    [visible] = await store.events.read_after(None)
    latest = await store.events.latest_cursor()
    await write(store, "quick too")
    hidden = [await names(store), await names(store, latest)]
    await transaction.commit()

    assert (visible.payload["path"], hidden) == ("before", [["before"], []])
    assert await names(store, visible.cursor) == ["slow", "quick", "quick too"]
    assert await names(store, latest) == ["slow", "quick", "quick too"]
    assert await names(store) == ["before", "slow", "quick", "quick too"]


async def test_rolled_back_transaction_does_not_delay_events(
    store: PostgresStore, slow: asyncpg.Connection
) -> None:
    transaction = slow.transaction()
    await transaction.start()
    await write_slowly(slow, "slow")
    await write(store, "quick")
    assert await names(store) == []

    await transaction.rollback()

    assert await names(store) == ["quick"]


async def test_transactions_without_events_delay_none(
    store: PostgresStore, slow: asyncpg.Connection, postgres_server: str
) -> None:
    other_database = await asyncpg.connect(postgres_server)
    async with slow.transaction(), other_database.transaction():
        await slow.execute("UPDATE counter SET value = value")
        await slow.execute("SELECT count(*) FROM event")
        await other_database.execute("SELECT pg_current_xact_id()")
        await write(store, "quick")
        latest = await store.events.latest_cursor()
        await write(store, "quick too")

        assert await names(store) == ["quick", "quick too"]
        assert await names(store, latest) == ["quick too"]
    await other_database.close()


async def test_events_of_one_scope_are_in_the_order_of_its_versions(
    store: PostgresStore, postgres_url: str
) -> None:
    """A writer that waits for a scope gets its position in the log only when it has the lock."""

    async def writer(store: PostgresStore, n: int) -> None:
        for turn in range(10):
            both = (
                Write(FIRST, Path("a"), Entry(EMPTY)),
                Write(SECOND, Path(f"{n}"), Entry(EMPTY)),
            )
            await store.trees.commit([Commit(both[: 1 + turn % 2], "ada", "", NOW)])

    async with open_store(postgres_url) as second, open_store(postgres_url) as third:
        await asyncio.gather(*[writer([store, second, third][n % 3], n) for n in range(9)])

    events = await store.events.read_after(None, EventFilter("acme", frozenset({FIRST})))
    assert [event.payload["version"] for event in events] == list(range(1, 91))


async def test_notification_between_read_and_wait_is_not_missed(store: PostgresStore) -> None:
    while await store.events.wait_for_new(0.05):
        pass

    await store.events.read_after(None)
    await asyncio.create_task(write(store, "in between"))

    assert await store.events.wait_for_new(30)
    assert not await store.events.wait_for_new(0.05)


async def test_listener_reconnects_after_its_connection_is_cut(
    store: PostgresStore, postgres_url: str
) -> None:
    while await store.events.wait_for_new(0.05):
        pass
    connection = await asyncpg.connect(postgres_url)
    cut = await connection.fetchval(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
        " WHERE datname = current_database() AND query LIKE 'LISTEN%'"
    )
    await connection.close()
    assert cut == 1

    async with open_store(postgres_url) as other, asyncio.timeout(30):
        assert await store.events.wait_for_new(30)
        while await store.events.wait_for_new(0.05):
            pass
        sleeper = asyncio.create_task(store.events.wait_for_new(30))
        while not sleeper.done():
            await write(other, "from afar")
            await asyncio.wait([sleeper], timeout=0.2)
        assert sleeper.result()


async def test_log_continues_in_a_copy_on_another_server(postgres_url: str) -> None:
    """Transaction ids start anew there, so those of the events lie in the future."""
    async with open_store(postgres_url) as store:
        for name in ("one", "two", "three"):
            await write(store, name)
        before = await store.events.read_after(None)
        await store.deliveries.enqueue(None, before[1].cursor, [])
    connection = await asyncpg.connect(postgres_url)
    await connection.execute(
        "UPDATE event SET xid = (xid::text::bigint + 1000000000)::text::xid8;"
        " UPDATE delivery_cursor SET cursor = (split_part(cursor, '.', 1)::bigint + 1000000000)"
        " || '.' || split_part(cursor, '.', 2)"
    )
    await connection.close()

    async with open_store(postgres_url) as store:
        await write(store, "four")
        assert await names(store) == ["one", "two", "three", "four"]
        assert await names(store, await store.deliveries.cursor()) == ["three", "four"]
        assert await names(store, before[1].cursor) == ["three", "four"]
        assert await names(store, f"1000000000000.{before[0].id.removeprefix('ev_')}") == [
            *("two", "three", "four")
        ]
        assert await names(store, "1000000000000.1000") == ["four"]
        newest = (await store.events.read_after(None))[-1]
        await write(store, "five")
        assert await names(store, newest.cursor) == ["five"]


@pytest.mark.parametrize("cursor", ["0", "0.0", "00.00"])
async def test_events_can_be_read_from_the_beginning(store: PostgresStore, cursor: str) -> None:
    await write(store, "one")

    assert await names(store, cursor) == ["one"]
