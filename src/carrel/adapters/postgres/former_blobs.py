"""Large blobs of a store, and those of a former one that was never emptied."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator

from carrel.core.identifiers import Digest, TimestampMs
from carrel.ports import LargeBlobStore


class BlobStoreWithFormer:
    """Writes to one store; reads and deletes what a former one still has, too."""

    def __init__(self, current: LargeBlobStore, former: LargeBlobStore) -> None:
        self._current, self._former = current, former
        self.component = current.component

    async def ping(self) -> None:
        await self._current.ping()

    async def put(self, digest: Digest, content: bytes) -> None:
        await self._current.put(digest, content)

    async def put_parts(self, parts: Iterator[bytes]) -> tuple[Digest, int]:
        return await self._current.put_parts(parts)

    async def get(self, digest: Digest) -> bytes | None:
        content = await self._current.get(digest)
        return await self._former.get(digest) if content is None else content

    async def read_parts(self, digest: Digest) -> AsyncIterator[bytes]:
        parts = self._current.read_parts(digest)
        try:
            first = await anext(parts, b"")
        except FileNotFoundError:
            parts, first = self._former.read_parts(digest), b""
        yield first
        async for part in parts:
            yield part

    async def discard(self, digests: Collection[Digest]) -> None:
        await self._current.discard(digests)
        await self._former.discard(digests)

    async def restore(self, digests: Collection[Digest]) -> None:
        await self._current.restore(digests)
        await self._former.restore(digests)

    async def delete(self, digests: Collection[Digest]) -> None:
        await self._current.delete(digests)
        await self._former.delete(digests)

    async def list_trash(self) -> AsyncIterator[tuple[Digest, TimestampMs]]:
        current = set[Digest]()
        async for digest, at in self._current.list_trash():
            current.add(digest)
            yield digest, at
        async for digest, at in self._former.list_trash():
            if digest not in current:
                yield digest, at

    async def list_blobs(self) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        current = set[Digest]()
        async for digest, size, at in self._current.list_blobs():
            current.add(digest)
            yield digest, size, at
        async for digest, size, at in self._former.list_blobs():
            if digest not in current:
                yield digest, size, at
