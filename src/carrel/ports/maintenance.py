"""What is asked of a store as a whole, by whoever looks after it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence, Set
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from carrel.core.identifiers import Digest, TimestampMs


class StoreSnapshot(Protocol):
    """The whole store as it was at one moment, table by table."""

    async def count(self, table: str) -> int: ...

    def rows(self, table: str, batch: int = 1000) -> AsyncIterator[Sequence[Sequence[Any]]]:
        """Every row of a table of ``core.archive.TABLES``, columns in that order, by its key."""


class StoreMaintenance(Protocol):
    """What an operator does to a store as a whole."""

    async def ping(self) -> None:
        """Return if the store answers; raise what is wrong otherwise."""

    def snapshot(self) -> AbstractAsyncContextManager[StoreSnapshot]:
        """Hold still one consistent view, while others go on writing."""

    async def load(self, rows: AsyncIterator[tuple[str, Sequence[Sequence[Any]]]]) -> None:
        """Fill an empty store with rows of tables, all or nothing. Raises Taken if not empty.

        Ids that are given out afterwards are greater than those that came.
        """

    async def collect(self, now: TimestampMs, grace: int, events_kept: int) -> Mapping[str, int]:
        """Remove rows that nothing refers to or that have run out, and say how many of what.

        Bytes younger than ``grace`` milliseconds stay, since a commit may be on its way to them;
        events older than ``events_kept`` milliseconds go once they have been turned into
        deliveries.
        """

    async def reindex(self) -> int:
        """Make the words anew that records are found by, and say how many they are."""

    async def referenced_digests(self) -> Set[Digest]:
        """The digests of all bytes that are kept outside the database."""

    async def migrations(self) -> tuple[str, ...]:
        """The names of the steps by which the store got its shape, in order."""
