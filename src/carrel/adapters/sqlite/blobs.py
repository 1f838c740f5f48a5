"""Blobs in SQLite rows, or in a large blob store beside it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.reader import Reader
from carrel.core.identifiers import Digest, digest
from carrel.core.store.blob import Blob
from carrel.ports import CorruptContent, LargeBlobStore

_UNLIMITED_BYTES: Final = 2**62


class SqliteBlobs:
    """``Blob.storage_ref`` is a row id.

    Before the commit it holds the content, or None if that is in the large blob store.
    """

    def __init__(self, reader: Reader, objects: LargeBlobStore | None, inline: int) -> None:
        self._reader, self._objects, self._inline = reader, objects, inline

    @property
    def inline_max_bytes(self) -> int:
        return self._inline if self._objects else _UNLIMITED_BYTES

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        blobs = []
        for content in contents:
            content_digest = digest(content)
            storage_ref: bytes | None = content
            if self._objects is not None and len(content) > self._inline:
                await self._objects.put(content_digest, content)
                storage_ref = None
            blobs.append(Blob(content_digest, len(content), storage_ref))
        return tuple(blobs)

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        contents = {
            blob.digest: blob.storage_ref for blob in blobs if isinstance(blob.storage_ref, bytes)
        }
        rows = {blob.storage_ref: blob for blob in blobs if isinstance(blob.storage_ref, int)}
        external = {blob.digest for blob in blobs if blob.storage_ref is None}
        for id, body in self._read_bodies(tuple(rows)):
            blob = rows.pop(id)
            if body is None:
                external.add(blob.digest)
            else:
                contents[blob.digest] = body
        if rows:
            raise CorruptContent(f"content {min(blob.digest for blob in rows.values())} is missing")
        for content_digest in external - contents.keys():
            contents[content_digest] = await self._read_object(content_digest)
        return {
            content_digest: _verify_digest(content_digest, content)
            for content_digest, content in contents.items()
        }

    def _read_bodies(self, ids: tuple[int, ...]) -> Sequence[tuple[int, bytes | None]]:
        if len(ids) == 1:
            row = self._reader.read_body(ids[0])
            return () if row is None else (row,)
        return (
            self._reader.db.execute(STATEMENTS["blob_bodies"], (json.dumps(ids),)).fetchall()
            if ids
            else ()
        )

    async def _read_object(self, content_digest: Digest) -> bytes:
        content = await self._objects.get(content_digest) if self._objects else None
        if content is None:
            raise CorruptContent(f"content {content_digest} is missing")
        return content


def _verify_digest(expected: Digest, content: bytes) -> bytes:
    if digest(content) != expected:
        raise CorruptContent(f"content {expected} does not match its digest")
    return content
