"""What came up of an agent's memories, and for which questions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from carrel.core.identifiers import TimestampMs
from carrel.core.memory.recall import Recall, RecallStats


class RecallLog(Protocol):
    """Which memories came up for which questions. What is recorded only counts."""

    async def record(self, tenant: str, recalls: Sequence[Recall]) -> None:
        """Keep these; one that is there already, by its id, stays as it is."""

    async def tallies(
        self, tenant: str, agent: str, *, limit: int = 10_000
    ) -> tuple[RecallStats, ...]:
        """Sum up, in one question, each memory that came up: most often first, then by id."""

    async def since(self, tenant: str, agent: str, moment: TimestampMs) -> Mapping[str, int]:
        """How often each memory of an agent has come up since then, for those that have."""

    async def drop(
        self,
        tenant: str,
        agent: str,
        memories: Collection[str],
        *,
        before: TimestampMs | None = None,
    ) -> int:
        """Forget that these memories came up, or that they did before a moment; say how often."""

    async def prune(self, tenant: str, agent: str, before: TimestampMs) -> int:
        """Forget all that an agent recalled before a moment, and say how much that was."""
