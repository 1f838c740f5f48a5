"""Large contents in PostgreSQL rows, without a large blob store."""

from __future__ import annotations

from collections.abc import AsyncIterator

import asyncpg
import pytest
from tests.support.commits import AGENT, SOUL, commit

from carrel.adapters.postgres import PostgresStore, open_store
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Write
from carrel.core.store.entry import Entry
from carrel.ports import CorruptContent
from carrel.ports.blobs import PART_BYTES

pytestmark = pytest.mark.anyio

CONTENT = b"large " * 600_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with open_store(postgres_url) as opened:
        yield opened


async def put_content(store: PostgresStore) -> Blob:
    blob = await store.blobs.put_parts(iter([CONTENT]))
    await store.trees.commit([commit(Write(AGENT, SOUL, Entry(blob)))])
    [tree] = await store.trees.read([AGENT], [SOUL])
    entry = tree.entry(SOUL)
    assert entry
    return entry.blob


async def test_a_large_content_is_read_in_parts(store: PostgresStore) -> None:
    stored = await put_content(store)
    parts = [part async for part in store.blobs.read_parts(stored)]
    assert b"".join(parts) == CONTENT
    assert max(map(len, parts)) <= PART_BYTES


async def test_damaged_and_missing_content_is_never_served(
    store: PostgresStore, postgres_url: str
) -> None:
    stored = await put_content(store)
    connection = await asyncpg.connect(postgres_url)
    for statement in (
        "UPDATE content SET body = set_byte(body, 2000000, 0) WHERE id = $1",
        "DELETE FROM content WHERE id = $1",
    ):
        await connection.execute(statement, stored.storage_ref)
        with pytest.raises(CorruptContent, match=stored.digest):
            [part async for part in store.blobs.read_parts(stored)]
    await connection.close()
