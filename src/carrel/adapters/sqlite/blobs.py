"""Bytes in SQLite: in rows where they are small, else in a store of objects beside it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from carrel.adapters.sqlite.database import SQL
from carrel.adapters.sqlite.reader import Reader
from carrel.core.identifiers import Digest, digest
from carrel.core.store.tree import Blob
from carrel.ports import CorruptContent, LargeBlobStore

_ENDLESS: Final = 2**62


class SqliteBlobs:
    """``Blob.ref`` is a row's id; before a commit, the bytes to put in one, or None if outside."""

    def __init__(self, reader: Reader, objects: LargeBlobStore | None, inline: int) -> None:
        self._reader, self._objects, self._inline = reader, objects, inline

    @property
    def inline(self) -> int:
        return self._inline if self._objects else _ENDLESS

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        blobs = []
        for content in contents:
            name = digest(content)
            ref: bytes | None = content
            if self._objects is not None and len(content) > self._inline:
                await self._objects.put(name, content)
                ref = None
            blobs.append(Blob(name, len(content), ref))
        return tuple(blobs)

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        found = {
            blob.digest: blob.storage_ref for blob in blobs if isinstance(blob.storage_ref, bytes)
        }
        rows = {blob.storage_ref: blob for blob in blobs if isinstance(blob.storage_ref, int)}
        outside = {blob.digest for blob in blobs if blob.storage_ref is None}
        for id, body in self._bodies(tuple(rows)):
            blob = rows.pop(id)
            if body is None:
                outside.add(blob.digest)
            else:
                found[blob.digest] = body
        if rows:
            raise CorruptContent(
                f"the bytes of {min(blob.digest for blob in rows.values())} are gone"
            )
        for name in outside - found.keys():
            found[name] = await self._from_outside(name)
        return {name: _checked(name, content) for name, content in found.items()}

    def _bodies(self, ids: tuple[int, ...]) -> Sequence[tuple[int, bytes | None]]:
        if len(ids) == 1:
            found = self._reader.body(ids[0])
            return () if found is None else (found,)
        return self._reader.db.execute(SQL["bodies"], (json.dumps(ids),)).fetchall() if ids else ()

    async def _from_outside(self, name: Digest) -> bytes:
        content = await self._objects.get(name) if self._objects else None
        if content is None:
            raise CorruptContent(f"the bytes of {name} are gone")
        return content


def _checked(name: Digest, content: bytes) -> bytes:
    if digest(content) != name:
        raise CorruptContent(f"the bytes of {name} are not what was stored")
    return content
