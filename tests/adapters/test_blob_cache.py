"""Bytes at hand: those of the store, asked for once, and never more than there is room."""

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


class Asked:
    """The blobs of a store, and what they were asked for."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self.inline_max_bytes = blobs.inline_max_bytes
        self.put = blobs.put
        self.asked: list[Digest] = []

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        self.asked += [blob.digest for blob in blobs]
        return await self._blobs.get(blobs)


async def test_what_was_read_is_not_asked_for_again(blobs: Blobs) -> None:
    store = Asked(blobs)
    keeping = CachedBlobs(store)
    one, two = await keeping.put([b"one", b"two"])
    assert await keeping.get([one]) == {one.digest: b"one"}
    assert await keeping.get([one, two]) == {one.digest: b"one", two.digest: b"two"}
    assert await keeping.get([]) == {}
    assert store.asked == [one.digest, two.digest]
    assert keeping.inline_max_bytes == store.inline_max_bytes


async def test_the_oldest_make_room_and_the_large_are_not_kept(blobs: Blobs) -> None:
    store = Asked(blobs)
    keeping = CachedBlobs(store, max_bytes=25, max_blob_bytes=10)
    a, b, c, large = await keeping.put([b"a" * 10, b"b" * 10, b"c" * 10, b"d" * 11])
    for blob in (a, b, a, c):
        await keeping.get([blob])
    store.asked.clear()
    for blob in (a, c, large, b):
        await keeping.get([blob])
    assert store.asked == [large.digest, b.digest]


async def test_what_cannot_be_had_is_asked_for_every_time(blobs: Blobs) -> None:
    store = Asked(blobs)
    keeping = CachedBlobs(store)
    [known] = await keeping.put([b"known"])
    gone = Blob(Digest("sha256:" + "0" * 64), 3)
    for _ in range(2):
        with pytest.raises(CorruptContent):
            await keeping.get([known, gone])
    assert store.asked.count(gone.digest) == 2
