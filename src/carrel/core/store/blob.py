"""Blobs: contents by digest."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from carrel.core.identifiers import Digest


class Blob(Struct, frozen=True, eq=False, gc=False):
    """Content by digest.

    `storage_ref` is its location, private to the store that set it.
    """

    digest: Digest
    size: int
    storage_ref: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blob) and (self.digest, self.size) == (other.digest, other.size)

    def __ne__(self, other: object) -> bool:  # Struct's own compares identity
        return not self == other

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Blob({self.digest!r}, {self.size})"
