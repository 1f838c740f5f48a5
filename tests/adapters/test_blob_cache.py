"""Blob cache: each blob is read from the store once, within a size limit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path as File

import pytest
from tests.support.services import files

from carrel.adapters.blob_cache import CachedBlobs
from carrel.adapters.sqlite import open_store
from carrel.core.identifiers import Digest
from carrel.core.store.blob import Blob
from carrel.ports import Blobs, CorruptContent

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def blobs(tmp_path: File) -> AsyncIterator[Blobs]:
    async with open_store(files.fresh(tmp_path / "carrel.db")) as store:
        yield store.blobs


class RecordingBlobs:
    """Blobs of a store, with a record of the digests requested."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self.inline_max_bytes = blobs.inline_max_bytes
        self.put, self.put_parts = blobs.put, blobs.put_parts
        self.open_writer = blobs.open_writer
        self.read_parts, self.read_range = blobs.read_parts, blobs.read_range
        self.requested: list[Digest] = []

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        self.requested += [blob.digest for blob in blobs]
        return await self._blobs.get(blobs)


async def test_cached_blob_is_not_requested_again(blobs: Blobs) -> None:
    store = RecordingBlobs(blobs)
    cache = CachedBlobs(store)
    first, second = await cache.put([b"one", b"two"])
    assert await cache.get([first]) == {first.digest: b"one"}
    assert await cache.get([first, second]) == {first.digest: b"one", second.digest: b"two"}
    assert await cache.get([]) == {}
    assert store.requested == [first.digest, second.digest]
    assert cache.inline_max_bytes == store.inline_max_bytes


async def test_oldest_blobs_are_evicted_and_large_blobs_are_not_cached(blobs: Blobs) -> None:
    store = RecordingBlobs(blobs)
    cache = CachedBlobs(store, max_bytes=25, max_blob_bytes=10)
    a, b, c, large = await cache.put([b"a" * 10, b"b" * 10, b"c" * 10, b"d" * 11])
    for blob in (a, b, a, c):
        await cache.get([blob])
    store.requested.clear()
    for blob in (a, c, large, b):
        await cache.get([blob])
    assert store.requested == [large.digest, b.digest]


async def test_missing_blob_is_requested_every_time(blobs: Blobs) -> None:
    store = RecordingBlobs(blobs)
    cache = CachedBlobs(store)
    [stored] = await cache.put([b"known"])
    missing = Blob(Digest("sha256:" + "0" * 64), 3)
    for _ in range(2):
        with pytest.raises(CorruptContent):
            await cache.get([stored, missing])
    assert store.requested.count(missing.digest) == 2
