"""Contents by digest, inline and large."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Protocol

from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.store.blob import Blob


class CorruptContent(Exception):
    """Stored bytes are missing or do not match their digest."""


class Blobs(Protocol):
    """Content by digest. Content never changes, so storing it twice is harmless."""

    @property
    def inline_max_bytes(self) -> int:
        """Contents up to this size are stored by the commit that refers to them."""

    async def put(self, contents: Sequence[bytes]) -> tuple[Blob, ...]:
        """Store contents, in order.

        Durable at the latest with a commit that refers to them.
        """

    async def get(self, blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        """Return all requested contents, digests verified. Raises CorruptContent."""


class LargeBlobStore(Protocol):
    """Store for large contents outside the database, by digest.

    Deletion has two steps: discarded contents go to the trash, from which they can still be read
    and restored. A writer that found a content just before still has it if it commits before the
    trash is emptied after the grace period.
    """

    async def put(self, digest: Digest, content: bytes) -> None:
        """Store content durably. Existing content gets a new timestamp.

        Content in the trash is stored again.
        """

    async def get(self, digest: Digest) -> bytes | None:
        """Return the content, also from the trash, without verification; None if absent."""

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
