"""Large blobs in PostgreSQL rows of limited size, for databases without another store."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from io import BytesIO
from typing import IO, Final

import asyncpg

from carrel.adapters.postgres.database import Database
from carrel.adapters.postgres.rows import digest_bytes
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.outages import StorageFull, Unreachable
from carrel.ports.blobs import PartWriter
from carrel.ports.part_writers import TEMPORARY_FILES, FilePartWriter, close_temporary

_ROW_BYTES: Final = 2**19
"""Size of a part in a row. A statement with one takes the event loop less than a millisecond."""
_PAGE_SIZE: Final = 1000


class PostgresLargeBlobs:
    """Large contents in rows of PostgreSQL, one per part.

    Each part is stored in its own transaction; a content can be read once all parts are stored.
    """

    component = "database"

    def __init__(self, database: Database) -> None:
        self._database = database

    async def ping(self) -> None:
        await self._database.require_writable()

    async def put(self, digest: Digest, content: bytes) -> None:
        if len(content) <= _ROW_BYTES:
            row = (digest_bytes(digest), len(content), _now(), content)
            await self._database.rows("put_large_content", *row)
        else:
            await self._put(digest, len(content), BytesIO(content))

    def open_writer(self) -> PartWriter:
        """Collect the content in a temporary file first, so that an existing one is not sent."""
        return FilePartWriter(
            TEMPORARY_FILES, tempfile.TemporaryFile, self._store_file, close_temporary
        )

    async def _store_file(self, file: IO[bytes], digest: Digest) -> None:
        size = file.tell()
        file.seek(0)
        await self._put(digest, size, file)
        await asyncio.to_thread(close_temporary, file)

    async def get(self, digest: Digest) -> bytes | None:
        try:
            parts = [part async for part in self.read_parts(digest)]
        except FileNotFoundError:
            return None
        return parts[0] if len(parts) == 1 else await asyncio.to_thread(b"".join, parts)

    async def read_parts(self, digest: Digest) -> AsyncIterator[bytes]:
        name, position, end, size = digest_bytes(digest), 0, 0, None
        while size is None or end < size:
            rows = await self._database.rows("large_content_part", name, position)
            if not rows:
                raise FileNotFoundError(digest)
            size, part = rows[0]
            position, end = position + 1, end + len(part)
            yield part

    async def read_range(self, digest: Digest, start: int, end: int) -> AsyncIterator[bytes]:
        name, position = digest_bytes(digest), start // _ROW_BYTES
        while position * _ROW_BYTES < end:
            rows = await self._database.rows("large_content_part", name, position)
            if not rows:
                raise FileNotFoundError(digest)
            first = position * _ROW_BYTES
            yield rows[0][1][max(0, start - first) : end - first]
            position += 1

    async def identity(self, digest: Digest) -> str | None:
        """Empty: rows have nothing that changes with them, so ranges are verified each time."""
        return (
            "" if await self._database.rows("large_content_part", digest_bytes(digest), 0) else None
        )

    async def discard(self, digests: Collection[Digest]) -> None:
        names = list(map(digest_bytes, digests))
        await self._database.rows("discard_large_contents", names, _now())

    async def restore(self, digests: Collection[Digest]) -> None:
        names = list(map(digest_bytes, digests))
        await self._database.rows("restore_large_contents", names, _now())

    async def delete(self, digests: Collection[Digest]) -> None:
        """Delete one content at a time, since each may have thousands of rows."""
        names = list(map(digest_bytes, digests))
        for row in await self._database.rows("discarded_large_contents", names):
            await self._database.rows("delete_large_content", row[0])

    async def list_trash(self) -> AsyncIterator[tuple[Digest, TimestampMs]]:
        async for digest, _, at in self._list(in_trash=True):
            yield digest, at

    async def list_blobs(self) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        async for blob in self._list(in_trash=False):
            yield blob

    async def _list(self, *, in_trash: bool) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        last = b""
        while rows := await self._database.rows("large_contents", last, in_trash, _PAGE_SIZE):
            for name, size, at in rows:
                yield Digest(f"sha256:{name.hex()}"), size, at
            last = rows[-1][0]

    async def _put(self, digest: Digest, size: int, file: IO[bytes]) -> None:
        """Store the content of a file. Raises Unreachable if parts were lost meanwhile."""
        if await self._database.value("renew_large_content", digest_bytes(digest), _now()):
            return
        upload = await self._database.value("start_large_content", size, _now())
        try:
            count = await self._add_parts(upload, file)
            await self._finish(upload, digest, count)
        except BaseException:
            with suppress(Unreachable, StorageFull):  # garbage collection deletes it then
                await self._database.rows("delete_large_content", upload)
            raise

    async def _finish(self, upload: int, digest: Digest, count: int) -> None:
        row = (upload, digest_bytes(digest), count, _now())
        if not await self._database.value("finish_large_content", *row):
            raise Unreachable(self.component, "parts of an upload were lost")

    async def _add_parts(self, upload: int, file: IO[bytes]) -> int:
        """Store the content of a file; return the number of parts, at least one."""
        part = await asyncio.to_thread(file.read, _ROW_BYTES)
        count = 0
        while part or not count:
            try:
                await self._database.rows("add_content_part", upload, count, part)
            except asyncpg.ForeignKeyViolationError as error:
                raise Unreachable(self.component, "an upload was deleted") from error
            part, count = await asyncio.to_thread(file.read, _ROW_BYTES), count + 1
        return count


def _now() -> TimestampMs:
    return TimestampMs(time.time_ns() // 1_000_000)
