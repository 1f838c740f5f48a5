"""Blobs in SQLite rows, or in a large blob store beside it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Final

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.reader import Reader
from carrel.core.identifiers import Digest
from carrel.core.store.blob import Blob
from carrel.ports import CorruptContent, LargeBlobStore
from carrel.ports.blobs import (
    THREAD_THRESHOLD_BYTES,
    PartWriter,
    VerifiedContents,
    hash_content,
    verify_parts,
    write_parts,
)
from carrel.ports.part_writers import MemoryPartWriter

_UNLIMITED_BYTES: Final = 2**62


class SqliteBlobs:
    """Contents in rows of SQLite; large ones in a blob store.

    ``Blob.storage_ref`` is a row id. Before the commit it holds the content, or None if that is in
    the large blob store.
    """

    def __init__(self, reader: Reader, objects: LargeBlobStore | None, inline: int) -> None:
        self._reader, self._objects, self._inline = reader, objects, inline
        self._verified = None if objects is None else VerifiedContents(objects)

    @property
    def inline_max_bytes(self) -> int:
        return self._inline if self._objects else _UNLIMITED_BYTES

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        blobs = []
        for content in contents:
            content_digest = await hash_content(content)
            storage_ref: bytes | None = content
            if self._objects is not None and len(content) > self._inline:
                await self._objects.put(content_digest, content)
                storage_ref = None
            blobs.append(Blob(content_digest, len(content), storage_ref))
        return tuple(blobs)

    async def _put_whole(self, content: bytes) -> Blob:
        [blob] = await self.put([content])
        return blob

    def open_writer(self) -> PartWriter:
        if self._objects is None:
            return MemoryPartWriter(self._put_whole)
        return self._objects.open_writer()

    async def put_parts(self, parts: Iterator[bytes]) -> Blob:
        return await write_parts(self.open_writer(), parts)

    async def read_range(self, blob: Blob, start: int, end: int) -> AsyncGenerator[bytes, None]:
        if self._verified is None or not self._is_external(blob):
            yield (await self.get([blob]))[blob.digest][start:end]
            return
        async for part in self._verified.read_range(blob.digest, start, end):
            yield part

    async def read_parts(self, blob: Blob) -> AsyncIterator[bytes]:
        if self._objects is None or not self._is_external(blob):
            yield (await self.get([blob]))[blob.digest]
            return
        async for part in verify_parts(self._objects.read_parts(blob.digest), blob.digest):
            yield part

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        contents = {
            blob.digest: blob.storage_ref for blob in blobs if isinstance(blob.storage_ref, bytes)
        }
        rows = {blob.storage_ref: blob for blob in blobs if isinstance(blob.storage_ref, int)}
        external = {blob.digest for blob in blobs if blob.storage_ref is None}
        for id, body in await self._read_bodies(rows):
            blob = rows.pop(id)
            if body is None:
                external.add(blob.digest)
            else:
                contents[blob.digest] = body
        if rows:
            raise CorruptContent(f"content {min(blob.digest for blob in rows.values())} is missing")
        for content_digest in external - contents.keys():
            contents[content_digest] = await self._read_object(content_digest)
        for content_digest, content in contents.items():
            if await hash_content(content) != content_digest:
                raise CorruptContent(f"content {content_digest} does not match its digest")
        return contents

    async def _read_bodies(self, rows: Mapping[int, Blob]) -> Sequence[tuple[int, bytes | None]]:
        """Read rows; many bytes are read in a thread, since SQLite reads are synchronous."""
        ids = tuple(rows)
        if sum(blob.size for blob in rows.values()) > THREAD_THRESHOLD_BYTES:
            return await self._reader.scan(lambda db: _query_bodies(db, ids))
        if len(ids) == 1:
            row = self._reader.read_body(ids[0])
            return () if row is None else (row,)
        return _query_bodies(self._reader.db, ids)

    def _is_external(self, blob: Blob) -> bool:
        """Whether the content is in the large blob store."""
        if not isinstance(blob.storage_ref, int):
            return blob.storage_ref is None
        row = self._reader.db.execute(STATEMENTS["is_external"], (blob.storage_ref,)).fetchone()
        return bool(row and row[0])

    async def _read_object(self, content_digest: Digest) -> bytes:
        content = await self._objects.get(content_digest) if self._objects else None
        if content is None:
            raise CorruptContent(f"content {content_digest} is missing")
        return content


def _query_bodies(
    db: sqlite3.Connection, ids: tuple[int, ...]
) -> Sequence[tuple[int, bytes | None]]:
    return db.execute(STATEMENTS["blob_bodies"], (json.dumps(ids),)).fetchall() if ids else ()
