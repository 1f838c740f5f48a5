"""In-memory LRU cache of blob contents.

Blobs never change, so entries are never stale. Agents of one template share its files.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence

from carrel.core.identifiers import Digest
from carrel.core.store.blob import Blob
from carrel.ports import Blobs


class CachedBlobs:
    """Blobs port that caches the small contents read last."""

    def __init__(
        self, blobs: Blobs, max_bytes: int = 32 * 2**20, max_blob_bytes: int = 128 * 2**10
    ) -> None:
        self._blobs, self._max_bytes, self._max_blob_bytes = blobs, max_bytes, max_blob_bytes
        self._contents: OrderedDict[Digest, bytes] = OrderedDict()
        self._size = 0

    @property
    def inline_max_bytes(self) -> int:
        return self._blobs.inline_max_bytes

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        return await self._blobs.put(contents)

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        cached = self._contents
        contents: dict[Digest, bytes] = {}
        missing = []
        for blob in blobs:
            content = cached.get(blob.digest)
            if content is None:
                missing.append(blob)
            else:
                cached.move_to_end(blob.digest)
                contents[blob.digest] = content
        if missing:
            loaded = await self._blobs.get(missing)
            for digest, content in loaded.items():
                self._store(digest, content)
            contents |= loaded
        return contents

    def _store(self, digest: Digest, content: bytes) -> None:
        if len(content) > self._max_blob_bytes or digest in self._contents:
            return
        self._contents[digest] = content
        self._size += len(content)
        while self._size > self._max_bytes:
            self._size -= len(self._contents.popitem(last=False)[1])
