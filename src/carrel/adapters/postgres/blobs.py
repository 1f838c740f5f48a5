"""Blobs in PostgreSQL rows, large ones in a large blob store."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Final

from carrel.adapters.postgres.database import Database
from carrel.adapters.postgres.read_batching import RequestBatcher
from carrel.core.identifiers import Digest
from carrel.core.store.blob import Blob
from carrel.ports import CorruptContent, LargeBlobStore
from carrel.ports.blobs import (
    PART_BYTES,
    PartWriter,
    VerifiedContents,
    hash_content,
    verify_parts,
    write_parts,
)

_MAX_BATCH_IDS: Final = 64

_Bodies = Mapping[int, bytes | None]


class PostgresBlobs:
    """Contents in rows of PostgreSQL; large ones in a blob store.

    ``Blob.storage_ref`` is a row id. Before the commit it holds the content, or None if that is in
    the large blob store.
    """

    def __init__(self, database: Database, objects: LargeBlobStore, inline: int) -> None:
        self._database, self._objects, self._inline = database, objects, inline
        self._verified = VerifiedContents(objects)
        self._batcher = RequestBatcher(
            self._read_bodies, lambda ids: max(len(ids), 1) / _MAX_BATCH_IDS
        )

    async def close(self) -> None:
        await self._batcher.close()

    @property
    def inline_max_bytes(self) -> int:
        return self._inline

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        return tuple([await self._put(content) for content in contents])

    async def _put(self, content: bytes) -> Blob:
        content_digest = await hash_content(content)
        if len(content) <= self._inline:
            return Blob(content_digest, len(content), content)
        await self._objects.put(content_digest, content)
        return Blob(content_digest, len(content))

    def open_writer(self) -> PartWriter:
        return self._objects.open_writer()

    async def put_parts(self, parts: Iterator[bytes]) -> Blob:
        return await write_parts(self.open_writer(), parts)

    async def read_range(self, blob: Blob, start: int, end: int) -> AsyncGenerator[bytes, None]:
        if await self._is_external(blob):
            parts = self._verified.read_range(blob.digest, start, end)
        elif isinstance(blob.storage_ref, int) and blob.size > PART_BYTES:
            stored_parts = self._read_row_parts(blob.storage_ref, 0, blob.size)
            async for _ in verify_parts(stored_parts, blob.digest):
                pass
            parts = self._read_row_parts(blob.storage_ref, start, end)
        else:
            yield (await self.get([blob]))[blob.digest][start:end]
            return
        async for part in parts:
            yield part

    async def read_parts(self, blob: Blob) -> AsyncIterator[bytes]:
        if await self._is_external(blob):
            parts = self._objects.read_parts(blob.digest)
        elif isinstance(blob.storage_ref, int) and blob.size > PART_BYTES:
            parts = self._read_row_parts(blob.storage_ref, 0, blob.size)
        else:
            yield (await self.get([blob]))[blob.digest]
            return
        async for part in verify_parts(parts, blob.digest):
            yield part

    async def _read_row_parts(self, id: int, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Yield the content of a row from `start` to `end` in parts. Raises FileNotFoundError."""
        for first in range(start, end, PART_BYTES):
            length = min(PART_BYTES, end - first)
            part = await self._database.value("blob_part", id, first + 1, length)
            if part is None:
                raise FileNotFoundError
            yield part

    async def _is_external(self, blob: Blob) -> bool:
        """Whether the content is in the large blob store."""
        if not isinstance(blob.storage_ref, int):
            return blob.storage_ref is None
        rows = await self._database.rows("is_external", blob.storage_ref)
        return bool(rows and rows[0][0])

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        contents = {
            blob.digest: blob.storage_ref for blob in blobs if isinstance(blob.storage_ref, bytes)
        }
        ids = {blob.storage_ref: blob.digest for blob in blobs if isinstance(blob.storage_ref, int)}
        bodies = await self._batcher.submit(tuple(ids)) if ids else {}
        if missing := sorted(ids[id] for id in ids.keys() - bodies.keys()):
            raise CorruptContent(f"content {missing[0]} is missing")
        contents |= {ids[id]: body for id, body in bodies.items() if body is not None}
        for content_digest in {blob.digest for blob in blobs} - contents.keys():
            contents[content_digest] = await self._read_object(content_digest)
        for content_digest, content in contents.items():
            if await hash_content(content) != content_digest:
                raise CorruptContent(f"content {content_digest} does not match its digest")
        return contents

    async def _read_bodies(self, requests: Sequence[tuple[int, ...]]) -> Sequence[_Bodies]:
        ids = {id for request in requests for id in request}
        bodies = {id: body for id, body in await self._database.rows("blob_bodies", list(ids))}
        return [{id: bodies[id] for id in request if id in bodies} for request in requests]

    async def _read_object(self, content_digest: Digest) -> bytes:
        content = await self._objects.get(content_digest)
        if content is None:
            raise CorruptContent(f"content {content_digest} is missing")
        return content
