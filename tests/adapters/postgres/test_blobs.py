"""Large contents in PostgreSQL rows: whole in one row, or in parts."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path as File

import asyncpg
import pytest
from tests.support.commits import AGENT, SOUL, commit, read_texts

from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.postgres import PostgresStore, open_store
from carrel.adapters.postgres.large_blobs import PostgresLargeBlobs
from carrel.core.identifiers import digest
from carrel.core.outages import Unreachable
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Write
from carrel.core.store.entry import Entry
from carrel.ports import CorruptContent
from carrel.ports.blobs import PART_BYTES, write_parts

pytestmark = pytest.mark.anyio

CONTENT = b"large " * 600_000
COUNTS = "SELECT (SELECT count(*) FROM large_content), (SELECT count(*) FROM content_part)"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with open_store(postgres_url) as opened:
        yield opened


@pytest.fixture
async def connection(postgres_url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(postgres_url)
    try:
        yield connection
    finally:
        await connection.close()


async def commit_content(store: PostgresStore, content: bytes = CONTENT) -> Blob:
    [blob] = await store.blobs.put([content])
    await store.trees.commit([commit(Write(AGENT, SOUL, Entry(blob)))])
    [tree] = await store.trees.read([AGENT], [SOUL])
    entry = tree.entry(SOUL)
    assert entry
    return entry.blob


async def read(store: PostgresStore, blob: Blob) -> list[bytes]:
    return [part async for part in store.blobs.read_parts(blob)]


async def count_rows(connection: asyncpg.Connection) -> tuple[int, int]:
    """The numbers of large contents and of their parts."""
    [row] = await connection.fetch(COUNTS)
    return row[0], row[1]


async def collect(store: PostgresStore, age: int) -> None:
    now = time.time_ns() // 1_000_000
    await store.maintenance.collect(now + age, grace_ms=1000, event_retention_ms=0)


@pytest.mark.parametrize("inline", [65536, 2**30], ids=["in parts", "in one row"])
async def test_a_large_content_is_read_in_parts(postgres_url: str, inline: int) -> None:
    async with open_store(postgres_url, inline=inline) as store:
        stored = await commit_content(store)
        parts = await read(store, stored)
    assert b"".join(parts) == CONTENT
    assert max(map(len, parts)) <= PART_BYTES


async def test_damaged_and_missing_content_is_never_served(
    postgres_url: str, connection: asyncpg.Connection
) -> None:
    async with open_store(postgres_url, inline=2**30) as store:
        stored = await commit_content(store)
        for statement in (
            "UPDATE content SET body = set_byte(body, 2000000, 0) WHERE id = $1",
            "DELETE FROM content WHERE id = $1",
        ):
            await connection.execute(statement, stored.storage_ref)
            with pytest.raises(CorruptContent, match=stored.digest):
                await read(store, stored)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE content_part SET data = set_byte(data, 2000, 0) WHERE position = 3",
        "DELETE FROM content_part WHERE position = 3",
        "DELETE FROM large_content",
    ],
    ids=["changed", "lost part", "lost"],
)
async def test_damaged_parts_are_never_served(
    store: PostgresStore, connection: asyncpg.Connection, damage: str
) -> None:
    stored = await commit_content(store)
    await connection.execute(damage)

    with pytest.raises(CorruptContent, match=stored.digest):
        await read(store, stored)
    with pytest.raises(CorruptContent, match=stored.digest):
        await store.blobs.get([stored])


async def test_content_that_exists_is_not_stored_again(
    store: PostgresStore, connection: asyncpg.Connection
) -> None:
    await commit_content(store)
    counts = await count_rows(connection)

    await store.blobs.put_parts(iter([CONTENT]))

    assert await count_rows(connection) == counts
    assert await connection.fetchval("SELECT max(id) FROM large_content") == 1


async def test_an_upload_that_was_cut_off_is_collected_after_its_grace_period(
    store: PostgresStore, connection: asyncpg.Connection
) -> None:
    await connection.execute(
        "INSERT INTO large_content (size, at) VALUES (9, extract(epoch FROM now()) * 1000)"
    )
    await connection.execute("INSERT INTO content_part SELECT id, 0, '' FROM large_content")

    await collect(store, age=0)
    assert await count_rows(connection) == (1, 1)
    await collect(store, age=60_000)
    assert await count_rows(connection) == (0, 0)


@pytest.mark.parametrize("lost", ["content_part WHERE position = 1", "large_content"])
async def test_an_upload_whose_parts_are_lost_before_its_end_is_refused(
    store: PostgresStore, connection: asyncpg.Connection, lost: str
) -> None:
    """As after a failover to a server that did not have them yet."""
    await connection.execute(
        "CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS"
        f" $$ BEGIN DELETE FROM {lost}; RETURN NEW; END $$;"
        " CREATE TRIGGER loss BEFORE INSERT ON content_part"
        " FOR EACH ROW WHEN (NEW.position = 4) EXECUTE FUNCTION lose()"
    )

    with pytest.raises(Unreachable, match="database"):
        await store.blobs.put([CONTENT])

    assert await count_rows(connection) == (0, 0)
    with pytest.raises(CorruptContent):
        await store.blobs.get([Blob(digest(CONTENT), len(CONTENT))])


async def test_rows_stay_readable_and_are_collected_once_a_bucket_is_configured(
    postgres_url: str, tmp_path: File, connection: asyncpg.Connection
) -> None:
    async with open_store(postgres_url) as store:
        stored = await commit_content(store)
    async with open_store(postgres_url, objects=DirectoryBlobStore(tmp_path)) as store:
        assert b"".join(await read(store, stored)) == CONTENT
        assert await read_texts(store, AGENT) == {"SOUL.md": CONTENT.decode()}

        await store.objects.discard([stored.digest])
        assert b"".join(await read(store, stored)) == CONTENT
        await store.objects.delete([stored.digest])

    assert await count_rows(connection) == (0, 0)


async def test_an_empty_content_can_be_stored_in_parts(store: PostgresStore) -> None:
    objects = store.objects
    assert isinstance(objects, PostgresLargeBlobs)
    assert await write_parts(objects.open_writer(), iter(())) == Blob(digest(b""), 0)
    assert await objects.get(digest(b"")) == b""
