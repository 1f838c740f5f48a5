"""Keyed object store for external readers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from typing import Protocol

from carrel.core.identifiers import Digest


class ObjectStore(Protocol):
    """Keyed object store for external readers (directory or bucket).

    Every method raises OSError on failure.
    """

    @property
    def forbids_nested_keys(self) -> bool:
        """Whether a key cannot exist while another key lies below it."""

    async def put(self, contents: Mapping[str, bytes]) -> Mapping[str, str]:
        """Store each content under its key, replacing atomically.

        Returns the keys that cannot be stored, each with the reason.
        """

    async def get(self, key: str) -> bytes | None: ...

    async def delete(self, keys: Collection[str]) -> None:
        """Delete keys; absent ones are ignored."""

    def list(self, prefix: str) -> AsyncIterator[tuple[str, Digest | None]]:
        """Keys that start with `prefix`, which is empty or ends with a slash.

        Each with the digest of its content; None if it was not written through this port.
        """
