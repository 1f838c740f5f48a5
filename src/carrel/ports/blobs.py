"""Contents by digest, inline and large."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Iterator, Mapping, Sequence
from typing import Final, Protocol

from carrel.core.identifiers import Digest, TimestampMs, digest
from carrel.core.lru_cache import LruCache
from carrel.core.outages import CorruptContent
from carrel.core.store.blob import Blob

PART_BYTES: Final = 2**20
"""Size in which large contents are read and written."""
THREAD_THRESHOLD_BYTES: Final = 2**18
"""Larger contents are hashed, read and written in a thread."""

_MAX_VERIFIED: Final = 4096
"""Contents whose verification is remembered."""


class BlobReader(Protocol):
    """Reads contents, digests verified."""

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        """Return all requested contents. Raises CorruptContent."""

    def read_parts(self, blob: Blob) -> AsyncIterator[bytes]:
        """Yield the content in parts of about PART_BYTES, without holding it whole.

        Raises CorruptContent, after the last part if the digest does not match.
        """


class Hasher(Protocol):
    """SHA-256 of bytes so far."""

    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...

    def hexdigest(self) -> str: ...


class PartWriter(Protocol):
    """A large content that is being stored; nothing remains unless it is finished."""

    def write(self, part: bytes) -> None:
        """Add a part. Blocks, so call it in a thread."""

    def copy_hash(self) -> Hasher:
        """Return the hash of what was written so far."""

    async def finish(self) -> Blob:
        """Store the content durably."""

    async def discard(self) -> None:
        """Remove what was written; changes nothing after `finish`."""


class Blobs(BlobReader, Protocol):
    """Content by digest. Content never changes, so storing it twice is harmless."""

    @property
    def inline_max_bytes(self) -> int:
        """Contents up to this size are stored by the commit that refers to them."""

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        """Store contents, in order.

        Durable at the latest with a commit that refers to them.
        """

    def open_writer(self) -> PartWriter:
        """Begin to store a large content whose parts arrive one after the other."""

    async def put_parts(self, parts: Iterator[bytes]) -> Blob:
        """Store a large content without holding it whole; its parts are read in a thread."""

    def read_range(self, blob: Blob, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Yield the bytes from `start` up to `end` in parts of about PART_BYTES.

        The whole content is verified before its first part, unless this process has verified the
        same stored bytes before. Raises CorruptContent.
        """


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

    def open_writer(self) -> PartWriter:
        """Begin to store a content whose digest is known at its end."""

    async def get(self, digest: Digest) -> bytes | None:
        """Return the content, also from the trash, without verification; None if absent."""

    def read_parts(self, digest: Digest) -> AsyncIterator[bytes]:
        """Yield the content in parts, as `get` finds it. Raises FileNotFoundError."""

    def read_range(self, digest: Digest, start: int, end: int) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` up to `end`, at least one, in parts.

        Raises FileNotFoundError.
        """

    async def identity(self, digest: Digest) -> str | None:
        """Return what changes whenever the stored bytes could; None if absent.

        Empty if they were written so recently that a change might not show.
        """

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


async def write_parts(writer: PartWriter, parts: Iterator[bytes]) -> Blob:
    """Store a content whose parts are read in a thread."""

    def write() -> None:
        for part in parts:
            writer.write(part)

    try:
        await asyncio.to_thread(write)
        return await writer.finish()
    except BaseException:
        await writer.discard()
        raise


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


class VerifiedContents:
    """Reads ranges of large contents, each content verified before its first range.

    What was verified is remembered by the identity of its stored bytes.
    """

    def __init__(self, objects: LargeBlobStore) -> None:
        self._objects = objects
        self._identities: LruCache[Digest, str] = LruCache(_MAX_VERIFIED)

    async def read_range(self, digest: Digest, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """Raises CorruptContent before the first part."""
        await self._verify(digest)
        if start >= end:
            return
        try:
            async for part in self._objects.read_range(digest, start, end):
                yield part
        except FileNotFoundError:
            raise CorruptContent(f"content {digest} is missing") from None

    async def _verify(self, digest: Digest) -> None:
        identity = await self._objects.identity(digest)
        if identity and self._identities.get(digest) == identity:
            return
        async for _ in verify_parts(self._objects.read_parts(digest), digest):
            pass
        if identity:
            self._identities.put(digest, identity)
