"""In-memory LRU cache of blob contents.

Blobs never change, so entries are never stale. Agents of one template share its files.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence

from carrel.core.identifiers import Digest
from carrel.core.lru_cache import LruCache
from carrel.core.store.blob import Blob
from carrel.ports import Blobs
from carrel.ports.blobs import PartWriter


class CachedBlobs:
    """Blobs port that caches the small contents read last."""

    def __init__(
        self, blobs: Blobs, max_bytes: int = 32 * 2**20, max_blob_bytes: int = 128 * 2**10
    ) -> None:
        self._blobs = blobs
        self._contents: LruCache[Digest, bytes] = LruCache(max_bytes, max_blob_bytes)

    @property
    def inline_max_bytes(self) -> int:
        return self._blobs.inline_max_bytes

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        return await self._blobs.put(contents)

    def open_writer(self) -> PartWriter:
        return self._blobs.open_writer()

    async def put_parts(self, parts: Iterator[bytes]) -> Blob:
        return await self._blobs.put_parts(parts)

    def read_parts(self, blob: Blob) -> AsyncIterator[bytes]:
        return self._blobs.read_parts(blob)

    def read_range(self, blob: Blob, start: int, end: int) -> AsyncGenerator[bytes, None]:
        return self._blobs.read_range(blob, start, end)

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        contents: dict[Digest, bytes] = {}
        missing = []
        for blob in blobs:
            content = self._contents.get(blob.digest)
            if content is None:
                missing.append(blob)
            else:
                contents[blob.digest] = content
        if missing:
            loaded = await self._blobs.get(missing)
            for digest, content in loaded.items():
                self._contents.put(digest, content, len(content))
            contents |= loaded
        return contents
