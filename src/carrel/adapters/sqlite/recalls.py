"""Recall log in SQLite."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.writer import Writer
from carrel.core.identifiers import TimestampMs
from carrel.core.memory.recall_records import Recall, RecallStats

_MAX_TIMESTAMP: Final = 2**62


class SqliteRecalls:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    async def record(self, tenant: str, recalls: Sequence[Recall]) -> None:
        rows = [
            (tenant, recall.agent, recall.memory, recall.id, recall.query, recall.score, recall.at)
            for recall in recalls
        ]
        if rows:
            await self._writer.submit(
                lambda db, _: db.executemany(STATEMENTS["add_recall"], rows) and None
            )

    async def stats_by_memory(
        self, tenant: str, agent: str, *, min_score: float = 0.0, limit: int = 10_000
    ) -> tuple[RecallStats, ...]:
        ask = (tenant, agent, min_score, limit)
        rows = await self._reader.scan(
            lambda db: db.execute(STATEMENTS["recall_stats"], ask).fetchall()
        )
        return tuple(RecallStats(*row) for row in rows)

    async def count_since(self, tenant: str, agent: str, start: TimestampMs) -> Mapping[str, int]:
        ask = (tenant, agent, start)
        rows = await self._reader.scan(
            lambda db: db.execute(STATEMENTS["recall_counts_since"], ask).fetchall()
        )
        return dict(rows)

    async def delete(
        self,
        tenant: str,
        agent: str,
        memories: Collection[str],
        *,
        before: TimestampMs | None = None,
    ) -> int:
        upto = _MAX_TIMESTAMP if before is None else before
        rows = [(tenant, agent, memory, upto) for memory in memories]
        return await self._writer.submit(
            lambda db, _: (
                db.executemany(STATEMENTS["delete_recalls"], rows).rowcount if rows else 0
            ),
            frees_space=True,
        )

    async def prune(self, tenant: str, agent: str, before: TimestampMs) -> int:
        parameters = (tenant, agent, before)
        return await self._writer.submit(
            lambda db, _: db.execute(STATEMENTS["prune_recalls"], parameters).rowcount,
            is_long=True,
            frees_space=True,
        )
