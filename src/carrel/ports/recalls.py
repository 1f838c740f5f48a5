"""Log of memory recalls."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from carrel.core.identifiers import TimestampMs
from carrel.core.memory.recall_records import Recall, RecallStats


class RecallLog(Protocol):
    """Log of which memories were returned for which queries; used for statistics only."""

    async def record(self, tenant: str, recalls: Sequence[Recall]) -> None:
        """Add recalls; existing ids are unchanged."""

    async def stats_by_memory(
        self, tenant: str, agent: str, *, min_score: float = 0.0, limit: int = 10_000
    ) -> tuple[RecallStats, ...]:
        """Return statistics of each recalled memory, most recalled first, then by id.

        Recalls below `min_score` do not count.
        """

    async def count_since(self, tenant: str, agent: str, start: TimestampMs) -> Mapping[str, int]:
        """Return the number of recalls since a time by memory, without zeros."""

    async def delete(
        self,
        tenant: str,
        agent: str,
        memories: Collection[str],
        *,
        before: TimestampMs | None = None,
    ) -> int:
        """Delete recalls of these memories, optionally only those before a time.

        Return the count.
        """

    async def prune(self, tenant: str, agent: str, before: TimestampMs) -> int:
        """Delete an agent's recalls before a time; return the count."""
