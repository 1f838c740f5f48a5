"""Blobs of a dry run: new contents stay in memory."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence

from carrel.actions.dry_runs.pending_changes import PendingChanges
from carrel.core.errors import Conflict
from carrel.core.identifiers import Digest
from carrel.core.store.blob import Blob
from carrel.ports.blobs import Blobs, PartWriter, hash_content, write_parts
from carrel.ports.part_writers import MemoryPartWriter


class PendingBlobs:
    """Contents of a dry run over those of the store."""

    def __init__(self, stored: Blobs, changes: PendingChanges) -> None:
        self._stored = stored
        self._changes = changes

    @property
    def inline_max_bytes(self) -> int:
        return self._stored.inline_max_bytes

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        digests = [await hash_content(content) for content in contents]
        self._changes.contents.update(zip(digests, contents, strict=True))
        return tuple(
            Blob(digest, len(content)) for digest, content in zip(digests, contents, strict=True)
        )

    def open_writer(self) -> PartWriter:
        return MemoryPartWriter(self._put)

    async def put_parts(self, parts: Iterator[bytes]) -> Blob:
        return await write_parts(self.open_writer(), parts)

    async def _put(self, content: bytes) -> Blob:
        [blob] = await self.put([content])
        return blob

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        pending = self._changes.contents
        new_contents = {
            blob.digest: pending[blob.digest] for blob in blobs if blob.digest in pending
        }
        stored = [blob for blob in blobs if blob.digest not in new_contents]
        for blob in stored:
            if blob.storage_ref is None and self._changes.is_without_content(blob.digest):
                raise Conflict("a dry run does not keep the contents of earlier requests")
        return {**new_contents, **(await self._stored.get(stored) if stored else {})}

    async def read_parts(self, blob: Blob) -> AsyncIterator[bytes]:
        yield (await self.get([blob]))[blob.digest]

    async def read_range(self, blob: Blob, start: int, end: int) -> AsyncGenerator[bytes, None]:
        yield (await self.get([blob]))[blob.digest][start:end]
