"""Recalls in a dictionary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from carrel.adapters.memory.state import MemoryState
from carrel.core.identifiers import TimestampMs
from carrel.core.memory.recall import Recall, RecallStats

_DAY: Final = 86_400_000


class MemoryRecalls:
    def __init__(self, state: MemoryState) -> None:
        self._recalls = state.recalls

    async def record(self, tenant: str, recalls: Sequence[Recall]) -> None:
        for one in recalls:
            self._recalls.setdefault((tenant, one.agent, one.memory, one.id), one)

    async def tallies(
        self, tenant: str, agent: str, *, limit: int = 10_000
    ) -> tuple[RecallStats, ...]:
        grouped: dict[str, list[Recall]] = {}
        for one in self._of(tenant, agent):
            grouped.setdefault(one.memory, []).append(one)
        tallies = [_tally(memory, recalls) for memory, recalls in grouped.items()]
        return tuple(sorted(tallies, key=lambda one: (-one.hits, one.memory))[:limit])

    async def since(self, tenant: str, agent: str, moment: TimestampMs) -> Mapping[str, int]:
        return Counter(one.memory for one in self._of(tenant, agent) if one.at >= moment)

    async def drop(
        self,
        tenant: str,
        agent: str,
        memories: Collection[str],
        *,
        before: TimestampMs | None = None,
    ) -> int:
        return self._remove(
            [
                (tenant, agent, one.memory, one.id)
                for one in self._of(tenant, agent)
                if one.memory in memories and (before is None or one.at < before)
            ]
        )

    async def prune(self, tenant: str, agent: str, before: TimestampMs) -> int:
        old = [one for one in self._of(tenant, agent) if one.at < before]
        return self._remove([(tenant, agent, one.memory, one.id) for one in old])

    def _of(self, tenant: str, agent: str) -> list[Recall]:
        return [one for key, one in self._recalls.items() if key[:2] == (tenant, agent)]

    def _remove(self, keys: Sequence[tuple[str, str, str, str]]) -> int:
        for key in keys:
            del self._recalls[key]
        return len(keys)


def _tally(memory: str, recalls: Sequence[Recall]) -> RecallStats:
    return RecallStats(
        memory,
        hits=len(recalls),
        relevance=sum(one.score for one in recalls) / len(recalls),
        queries=len({one.query for one in recalls}),
        days=len({one.at // _DAY for one in recalls}),
        latest=max(one.at for one in recalls),
    )
