"""Contents by digest, inline and large."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import IO, Final, Protocol

from carrel.core.identifiers import Digest, TimestampMs, digest
from carrel.core.outages import CorruptContent
from carrel.core.store.blob import Blob

PART_BYTES: Final = 2**20
"""Size in which large contents are read and written."""
THREAD_THRESHOLD_BYTES: Final = 2**18
"""Larger contents are hashed, read and written in a thread."""


class BlobReader(Protocol):
    """Reads contents, digests verified."""

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        """Return all requested contents. Raises CorruptContent."""

    def read_parts(self, blob: Blob) -> AsyncIterator[bytes]:
        """Yield the content in parts of about PART_BYTES, without holding it whole.

        Raises CorruptContent, after the last part if the digest does not match.
        """


class Blobs(BlobReader, Protocol):
    """Content by digest. Content never changes, so storing it twice is harmless."""

    @property
    def inline_max_bytes(self) -> int:
        """Contents up to this size are stored by the commit that refers to them."""

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        """Store contents, in order.

        Durable at the latest with a commit that refers to them.
        """

    async def put_parts(self, parts: Iterator[bytes]) -> Blob:
        """Store a large content without holding it whole; its parts are read in a thread."""


class LargeBlobStore(Protocol):
    """Store for large contents outside the database, by digest.

    Deletion has two steps: discarded contents go to the trash, from which they can still be read
    and restored. A writer that found a content just before still has it if it commits before the
    trash is emptied after the grace period.
    """

    component: str
    """Name in messages about outages."""

    async def ping(self) -> None:
        """Return if contents can be stored; raise Unreachable or StorageFull."""

    async def put(self, digest: Digest, content: bytes) -> None:
        """Store content durably. Existing content gets a new timestamp.

        Content in the trash is stored again.
        """

    async def put_parts(self, parts: Iterator[bytes]) -> tuple[Digest, int]:
        """Store a content whose parts are read in a thread; return its digest and size."""

    async def get(self, digest: Digest) -> bytes | None:
        """Return the content, also from the trash, without verification; None if absent."""

    def read_parts(self, digest: Digest) -> AsyncIterator[bytes]:
        """Yield the content in parts, as `get` finds it. Raises FileNotFoundError."""

    async def discard(self, digests: Collection[Digest]) -> None:
        """Move contents to the trash; absent ones are ignored."""

    async def restore(self, digests: Collection[Digest]) -> None:
        """Restore contents from the trash, which may keep a copy; absent ones are ignored."""

    async def delete(self, digests: Collection[Digest]) -> None:
        """Delete contents that are in the trash; others and absent ones are ignored."""

    def list_trash(self) -> AsyncIterator[tuple[Digest, TimestampMs]]:
        """Digests in the trash with the time of their last discard."""

    def list_blobs(self) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        """Digests outside the trash, with size and time of the last put or restore."""


async def hash_content(content: bytes) -> Digest:
    """Return the digest of a content, computed in a thread if it is large."""
    if len(content) <= THREAD_THRESHOLD_BYTES:
        return digest(content)
    return await asyncio.to_thread(digest, content)


async def verify_parts(parts: AsyncIterator[bytes], expected: Digest) -> AsyncIterator[bytes]:
    """Yield the parts of a content. Raises CorruptContent if the digest does not match."""
    hasher = hashlib.sha256()
    try:
        async for part in parts:
            await asyncio.to_thread(hasher.update, part)
            yield part
    except FileNotFoundError:
        raise CorruptContent(f"content {expected} is missing") from None
    if f"sha256:{hasher.hexdigest()}" != expected:
        raise CorruptContent(f"content {expected} does not match its digest")


@asynccontextmanager
async def spool_parts(parts: Iterator[bytes]) -> AsyncIterator[tuple[IO[bytes], Digest, int]]:
    """Write parts to a temporary file, read from its start; yield it with digest and size."""
    file = await asyncio.to_thread(tempfile.TemporaryFile)
    try:
        content_digest, size = await asyncio.to_thread(_write_hashed, file, parts)
        yield file, content_digest, size
    finally:
        await asyncio.to_thread(file.close)  # deletes it, which takes longer for a larger one


def _write_hashed(file: IO[bytes], parts: Iterator[bytes]) -> tuple[Digest, int]:
    """Write the parts and go back to the start; return their digest and size."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(part)
        file.write(part)
    size = file.tell()
    file.seek(0)
    return Digest(f"sha256:{hasher.hexdigest()}"), size
