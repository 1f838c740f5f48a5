"""Records in PostgreSQL: reading them, and noting when they were last used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from carrel.adapters.postgres.database import Database, searchable_text
from carrel.adapters.postgres.read_batching import ReadBatcher
from carrel.adapters.postgres.rows import Row, columns, from_json, record_of
from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import AuditEntry, Record, RecordType

_LAST: Final = "\U0010ffff"
"""Sorts after whatever a word may go on with."""


class PostgresRecords:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._revisions: ReadBatcher[None, int] = ReadBatcher(self._revision, lambda _: 0)

    async def close(self) -> None:
        await self._revisions.close()

    async def get(
        self, tenant: str, record_type: RecordType, ids: Sequence[str]
    ) -> tuple[Record | None, ...]:
        wanted = [searchable_text(id) for id in ids]
        rows = await self._database.rows("records", wanted, searchable_text(tenant), record_type)
        return _placed(rows, len(ids))

    async def get_by_unique_key(self, unique_keys: Sequence[str]) -> tuple[Record | None, ...]:
        rows = await self._database.rows(
            "records_named", [searchable_text(name) for name in unique_keys]
        )
        return _placed(rows, len(unique_keys))

    async def list(
        self,
        tenant: str,
        record_type: RecordType,
        *,
        link: str = "",
        after: str = "",
        limit: int = 100,
    ) -> tuple[Record, ...]:
        owner, name = searchable_text(tenant), searchable_text(link)
        if tenant and link:
            rows = await self._database.rows(
                "records_linked", owner, record_type, name, after, limit
            )
        elif tenant:
            rows = await self._database.rows("records_listed", owner, record_type, after, limit)
        elif link:
            rows = await self._database.rows(
                "records_linked_everywhere", record_type, name, after, limit
            )
        else:
            rows = await self._database.rows("records_everywhere", record_type, after, limit)
        return tuple(map(record_of, rows))

    async def count(
        self, tenant: str, record_type: RecordType, index_keys: Sequence[str]
    ) -> tuple[int, ...]:
        names = [searchable_text(name) for name in index_keys]
        rows = await self._database.rows(
            "records_counted", names, searchable_text(tenant), record_type
        )
        found = {place: count for place, count in rows}
        return tuple(found.get(n + 1, 0) for n in range(len(index_keys)))

    async def find(
        self,
        tenant: str,
        record_type: RecordType,
        link: str,
        words: Sequence[str],
        *,
        limit: int = 100,
    ) -> tuple[Record, ...]:
        wanted = [word for one in words if (word := searchable_text(one))]
        upto = [word + _LAST for word in wanted]
        ask = (wanted, upto, searchable_text(tenant), record_type, searchable_text(link), limit)
        rows = await self._database.rows("ids_by_words", *ask) if wanted else ()
        return tuple(filter(None, await self.get(tenant, record_type, [row[0] for row in rows])))

    async def collection_revisions(self, asks: Sequence[tuple[str, RecordType]]) -> tuple[int, ...]:
        revisions = await self._database.value("shelves", *columns(asks, 2)) if asks else ()
        return tuple(revisions)

    async def revision(self) -> int:
        return await self._revisions.ask(None)

    async def mark_used(self, marks: Mapping[str, TimestampMs]) -> None:
        if marks:
            await self._database.rows("use", *columns(sorted(marks.items()), 2))

    async def last_used(self, ids: Sequence[str]) -> tuple[TimestampMs | None, ...]:
        rows = await self._database.rows("used", [searchable_text(id) for id in ids])
        found = {place: at for place, at in rows}
        return tuple(found.get(n + 1) for n in range(len(ids)))

    async def audit(
        self, tenant: str, *, before: int = 0, limit: int = 100
    ) -> tuple[AuditEntry, ...]:
        rows = await self._database.rows("audit", searchable_text(tenant), before or 2**62, limit)
        return tuple(
            AuditEntry(id, owner, at, author, reason, tuple(from_json(subjects)))
            for id, owner, at, author, reason, subjects in rows
        )

    async def _revision(self, asks: Sequence[None]) -> Sequence[int]:
        return [await self._database.value("records_revision")] * len(asks)


def _placed(rows: Sequence[Row], count: int) -> tuple[Record | None, ...]:
    found = {row[0]: record_of(row, 1) for row in rows}
    return tuple(found.get(n + 1) for n in range(count))
