"""Recall log in PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from carrel.adapters.postgres.database import Database, searchable_text
from carrel.adapters.postgres.rows import transpose
from carrel.core.identifiers import TimestampMs
from carrel.core.memory.recall_records import Recall, RecallStats

_MAX_TIMESTAMP: Final = 2**62


class PostgresRecalls:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, tenant: str, recalls: Sequence[Recall]) -> None:
        rows = [
            (recall.agent, recall.memory, recall.id, recall.query, float(recall.score), recall.at)
            for recall in recalls
        ]
        if rows:
            await self._database.rows("add_recalls", tenant, *transpose(rows, 6))

    async def stats_by_memory(
        self, tenant: str, agent: str, *, min_score: float = 0.0, limit: int = 10_000
    ) -> tuple[RecallStats, ...]:
        rows = await self._database.rows(
            "recall_stats", searchable_text(tenant), searchable_text(agent), limit, min_score
        )
        return tuple(RecallStats(*row) for row in rows)

    async def count_since(self, tenant: str, agent: str, start: TimestampMs) -> Mapping[str, int]:
        ask = (searchable_text(tenant), searchable_text(agent), start)
        return {
            memory: count
            for memory, count in await self._database.rows("recall_counts_since", *ask)
        }

    async def delete(
        self,
        tenant: str,
        agent: str,
        memories: Collection[str],
        *,
        before: TimestampMs | None = None,
    ) -> int:
        ids = [id for memory in memories if (id := searchable_text(memory))]
        upto = _MAX_TIMESTAMP if before is None else before
        deleted = await self._database.value("delete_recalls", tenant, agent, ids, upto)
        return int(deleted)

    async def prune(self, tenant: str, agent: str, before: TimestampMs) -> int:
        return int(await self._database.value("prune_recalls", tenant, agent, before))
