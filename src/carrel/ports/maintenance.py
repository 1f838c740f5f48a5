"""Maintenance operations on a whole store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from carrel.core.identifiers import Digest, TimestampMs


class TableRows(Protocol):
    """Rows of all tables, of a store or a backup."""

    async def count(self, table: str) -> int: ...

    def rows(self, table: str, batch: int = 1000) -> AsyncIterator[Sequence[Sequence[Any]]]:
        """Rows of a table of `core.maintenance.tables`, ordered by key."""


class StoreSnapshot(TableRows, Protocol):
    """Consistent read-only view of all tables."""

    async def find_damage(self) -> Sequence[tuple[str, str]]:
        """Subject and text of damage: rows left out so far, and the database's own check."""


class StoreMaintenance(Protocol):
    """Operator's operations on a whole store."""

    async def ping(self) -> None:
        """Return if the store can be read and written; raise Unreachable or StorageFull."""

    async def keep_reserve(self) -> None:
        """Reserve space on a local disk, so that deletions work when it is full."""

    def snapshot(self, *, skip_damaged: bool = False) -> AbstractAsyncContextManager[StoreSnapshot]:
        """Open a consistent view; concurrent writes continue.

        Rows that cannot be read raise CorruptContent, or are left out if `skip_damaged`.
        """

    async def load(self, rows: AsyncIterator[tuple[str, Sequence[Sequence[Any]]]]) -> None:
        """Fill an empty store with rows atomically. Raises Conflict if it is not empty.

        Ids assigned later are greater than the loaded ones.
        """

    async def collect(
        self, now: TimestampMs, grace_ms: int, event_retention_ms: int
    ) -> Mapping[str, int]:
        """Delete unreferenced and expired rows; return the number deleted by kind.

        Content younger than `grace_ms` is kept, since a commit may be about to refer to it. Events
        older than `event_retention_ms` are deleted once they have been turned into deliveries.
        """

    async def reindex(self) -> int:
        """Rebuild the full-text index of records; return the number of terms."""

    async def referenced_digests(self) -> Set[Digest]:
        """Return the digests of all contents outside the database."""

    async def migrations(self) -> tuple[str, ...]:
        """Return the names of the applied migrations, in order."""
