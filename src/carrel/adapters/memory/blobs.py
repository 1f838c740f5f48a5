"""Bytes in dictionaries: a store's own, and the large ones outside it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence

from carrel.adapters.memory.state import MemoryState
from carrel.core.identifiers import Digest, TimestampMs, digest
from carrel.core.store.tree import Blob
from carrel.ports import CorruptContent


class MemoryBlobs:
    inline = 0

    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        return tuple(self._put(content) for content in contents)

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        return {blob.digest: self._checked(blob.digest) for blob in blobs}

    def _put(self, content: bytes) -> Blob:
        name = digest(content)
        self._state.contents[name] = content
        return Blob(name, len(content))

    def _checked(self, name: Digest) -> bytes:
        content = self._state.contents.get(name)
        if content is None:
            raise CorruptContent(f"the bytes of {name} are gone")
        if digest(content) != name:
            raise CorruptContent(f"the bytes stored as {name} are others")
        return content


def _now() -> TimestampMs:
    return time.time_ns() // 1_000_000


class MemoryObjects:
    def __init__(self, now: Callable[[], TimestampMs] = _now) -> None:
        self._now = now
        self._kept: dict[Digest, tuple[bytes, TimestampMs]] = {}
        self._trash: dict[Digest, tuple[bytes, TimestampMs]] = {}

    async def put(self, digest: Digest, content: bytes) -> None:
        self._kept[digest] = (content, self._now())

    async def get(self, digest: Digest) -> bytes | None:
        content, _ = self._kept.get(digest) or self._trash.get(digest) or (None, 0)
        return content

    async def discard(self, digests: Collection[Digest]) -> None:
        self._move(digests, self._kept, self._trash)

    async def restore(self, digests: Collection[Digest]) -> None:
        self._move(digests, self._trash, self._kept)

    async def delete(self, digests: Collection[Digest]) -> None:
        for name in digests:
            self._trash.pop(name, None)

    async def trash(self) -> AsyncIterator[tuple[Digest, TimestampMs]]:
        for name, (_, at) in list(self._trash.items()):
            yield name, at

    async def each(self) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        for name, (content, at) in list(self._kept.items()):
            yield name, len(content), at

    def _move(
        self,
        digests: Collection[Digest],
        source: dict[Digest, tuple[bytes, TimestampMs]],
        target: dict[Digest, tuple[bytes, TimestampMs]],
    ) -> None:
        for name in digests:
            if name in source:
                content, _ = source.pop(name)
                target[name] = (content, self._now())
