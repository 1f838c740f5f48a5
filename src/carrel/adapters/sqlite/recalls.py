"""Recalls in SQLite."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from carrel.adapters.sqlite.database import SQL
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.writer import Writer
from carrel.core.identifiers import TimestampMs
from carrel.core.memory.recall import Recall, RecallStats

_NEVER: Final = 2**62


class SqliteRecalls:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    async def record(self, tenant: str, recalls: Sequence[Recall]) -> None:
        rows = [
            (tenant, one.agent, one.memory, one.id, one.query, one.score, one.at) for one in recalls
        ]
        if rows:
            await self._writer.submit(
                lambda db, _: db.executemany(SQL["add_recall"], rows) and None
            )

    async def tallies(
        self, tenant: str, agent: str, *, limit: int = 10_000
    ) -> tuple[RecallStats, ...]:
        ask = (tenant, agent, limit)
        rows = await self._reader.scan(lambda db: db.execute(SQL["tallies"], ask).fetchall())
        return tuple(RecallStats(*row) for row in rows)

    async def since(self, tenant: str, agent: str, moment: TimestampMs) -> Mapping[str, int]:
        ask = (tenant, agent, moment)
        rows = await self._reader.scan(lambda db: db.execute(SQL["recalls_since"], ask).fetchall())
        return dict(rows)

    async def drop(
        self,
        tenant: str,
        agent: str,
        memories: Collection[str],
        *,
        before: TimestampMs | None = None,
    ) -> int:
        upto = _NEVER if before is None else before
        rows = [(tenant, agent, memory, upto) for memory in memories]
        return await self._writer.submit(
            lambda db, _: db.executemany(SQL["drop_recalls"], rows).rowcount if rows else 0
        )

    async def prune(self, tenant: str, agent: str, before: TimestampMs) -> int:
        ask = (tenant, agent, before)
        return await self._writer.submit(
            lambda db, _: db.execute(SQL["prune_recalls"], ask).rowcount, long=True
        )
