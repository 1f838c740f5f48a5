"""Bytes kept in memory once they have been read and checked: the same content is asked for often.

A template's files are those of all its followers. They never change, so nothing is ever stale.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence

from carrel.core.identifiers import Digest
from carrel.core.store.tree import Blob
from carrel.ports import Blobs


class CachedBlobs:
    """Blobs of a store, the small ones among those read last at hand."""

    def __init__(self, blobs: Blobs, room: int = 32 * 2**20, most: int = 128 * 2**10) -> None:
        self._blobs, self._room, self._most = blobs, room, most
        self._kept: OrderedDict[Digest, bytes] = OrderedDict()
        self._size = 0

    @property
    def inline(self) -> int:
        return self._blobs.inline

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        return await self._blobs.put(contents)

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        kept = self._kept
        found: dict[Digest, bytes] = {}
        unknown = []
        for blob in blobs:
            content = kept.get(blob.digest)
            if content is None:
                unknown.append(blob)
            else:
                kept.move_to_end(blob.digest)
                found[blob.digest] = content
        if unknown:
            read = await self._blobs.get(unknown)
            for digest, content in read.items():
                self._keep(digest, content)
            found |= read
        return found

    def _keep(self, digest: Digest, content: bytes) -> None:
        if len(content) > self._most or digest in self._kept:
            return
        self._kept[digest] = content
        self._size += len(content)
        while self._size > self._room:
            self._size -= len(self._kept.popitem(last=False)[1])
