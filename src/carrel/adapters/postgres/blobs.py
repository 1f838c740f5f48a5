"""Bytes in PostgreSQL: in rows where they are small, else in a store of objects outside."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from carrel.adapters.postgres.database import Database
from carrel.adapters.postgres.read_batching import ReadBatcher
from carrel.core.identifiers import Digest, digest
from carrel.core.store.tree import Blob
from carrel.ports import CorruptContent, LargeBlobStore

_MOST: Final = 64
_ENDLESS: Final = 2**62
_LONG: Final = 2**18
"""Bytes from which on a digest is made in a thread."""

_Bodies = Mapping[int, bytes | None]


class PostgresBlobs:
    """``Blob.ref`` is a row's id; before a commit, the bytes to put in one, or None if outside."""

    def __init__(self, database: Database, objects: LargeBlobStore | None, inline: int) -> None:
        self._database, self._objects, self._inline = database, objects, inline
        self._gets = ReadBatcher(self._bodies, lambda ids: max(len(ids), 1) / _MOST)

    async def close(self) -> None:
        await self._gets.close()

    @property
    def inline(self) -> int:
        return self._inline if self._objects else _ENDLESS

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        return tuple([await self._put(content) for content in contents])

    async def _put(self, content: bytes) -> Blob:
        name = await _digest(content)
        if self._objects is None or len(content) <= self._inline:
            return Blob(name, len(content), content)
        await self._objects.put(name, content)
        return Blob(name, len(content))

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        found = {
            blob.digest: blob.storage_ref for blob in blobs if isinstance(blob.storage_ref, bytes)
        }
        ids = {blob.storage_ref: blob.digest for blob in blobs if isinstance(blob.storage_ref, int)}
        bodies = await self._gets.ask(tuple(ids)) if ids else {}
        if missing := sorted(ids[id] for id in ids.keys() - bodies.keys()):
            raise CorruptContent(f"the bytes of {missing[0]} are gone")
        found |= {ids[id]: body for id, body in bodies.items() if body is not None}
        for name in {blob.digest for blob in blobs} - found.keys():
            found[name] = await self._from_outside(name)
        for name, content in found.items():
            if await _digest(content) != name:
                raise CorruptContent(f"the bytes of {name} are not what was stored")
        return found

    async def _bodies(self, asks: Sequence[tuple[int, ...]]) -> Sequence[_Bodies]:
        ids = {id for ask in asks for id in ask}
        found = {id: body for id, body in await self._database.rows("bodies", list(ids))}
        return [{id: found[id] for id in ask if id in found} for ask in asks]

    async def _from_outside(self, name: Digest) -> bytes:
        content = await self._objects.get(name) if self._objects else None
        if content is None:
            raise CorruptContent(f"the bytes of {name} are gone")
        return content


async def _digest(content: bytes) -> Digest:
    return digest(content) if len(content) < _LONG else await asyncio.to_thread(digest, content)
