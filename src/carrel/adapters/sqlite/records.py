"""Reading records in SQLite, and noting when they were last used."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from sqlite3 import Connection

from carrel.adapters.sqlite.database import SQL
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.rows import RECORDS, Row, record_of
from carrel.adapters.sqlite.writer import Writer
from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import AuditEntry, Record, RecordType


class SqliteRecords:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    async def get(
        self, tenant: str, record_type: RecordType, ids: Sequence[str]
    ) -> tuple[Record | None, ...]:
        ask = (json.dumps(list(ids)), tenant, record_type)
        return _placed(self._reader.db.execute(SQL["records"], ask).fetchall(), len(ids))

    async def get_by_unique_key(self, unique_keys: Sequence[str]) -> tuple[Record | None, ...]:
        if len(unique_keys) == 1:
            return self._reader.cached(("record", unique_keys[0]), _record_named, unique_keys[0])
        ask = (json.dumps(list(unique_keys)),)
        return _placed(
            self._reader.db.execute(SQL["records_named"], ask).fetchall(), len(unique_keys)
        )

    async def list(
        self,
        tenant: str,
        record_type: RecordType,
        *,
        link: str = "",
        after: str = "",
        limit: int = 100,
    ) -> tuple[Record, ...]:
        db = self._reader.db
        if link and tenant:
            rows = db.execute(SQL["records_linked"], (tenant, record_type, link, after, limit))
        elif link:
            rows = db.execute(SQL["records_linked_everywhere"], (record_type, link, after, limit))
        elif tenant:
            rows = db.execute(SQL["records_listed"], (tenant, record_type, after, limit))
        else:
            rows = db.execute(SQL["records_everywhere"], (record_type, after, limit))
        return tuple(map(record_of, rows.fetchall()))

    async def count(
        self, tenant: str, record_type: RecordType, index_keys: Sequence[str]
    ) -> tuple[int, ...]:
        ask = (json.dumps(list(index_keys)), tenant, record_type)
        found = dict(self._reader.db.execute(SQL["records_counted"], ask).fetchall())
        return tuple(found.get(place, 0) for place in range(len(index_keys)))

    async def find(
        self,
        tenant: str,
        record_type: RecordType,
        link: str,
        words: Sequence[str],
        *,
        limit: int = 100,
    ) -> tuple[Record, ...]:
        ask = (json.dumps(list(words)), tenant, record_type, link, limit)
        rows = self._reader.db.execute(SQL["ids_by_words"], ask).fetchall() if words else ()
        return tuple(filter(None, await self.get(tenant, record_type, [row[0] for row in rows])))

    async def collection_revisions(self, asks: Sequence[tuple[str, RecordType]]) -> tuple[int, ...]:
        wanted = json.dumps([list(ask) for ask in asks])
        rows = self._reader.db.execute(SQL["shelves"], (wanted,)).fetchall()
        found = dict(rows)
        return tuple(found.get(place, 0) for place in range(len(asks)))

    async def revision(self) -> int:
        return self._reader.cached(RECORDS, _revision)

    async def mark_used(self, marks: Mapping[str, TimestampMs]) -> None:
        rows = list(marks.items())
        await self._writer.submit(lambda db, _: db.executemany(SQL["set_used"], rows) and None)

    async def last_used(self, ids: Sequence[str]) -> tuple[TimestampMs | None, ...]:
        ask = (json.dumps(list(ids)),)
        found = dict(self._reader.db.execute(SQL["used"], ask).fetchall())
        return tuple(found.get(place) for place in range(len(ids)))

    async def audit(
        self, tenant: str, *, before: int = 0, limit: int = 100
    ) -> tuple[AuditEntry, ...]:
        rows = self._reader.db.execute(SQL["audit"], (tenant, before or 2**62, limit)).fetchall()
        return tuple(
            AuditEntry(id, owner, at, author, reason, tuple(json.loads(subjects)))
            for id, owner, at, author, reason, subjects in rows
        )


def _record_named(db: Connection, unique_key: str) -> tuple[Record | None]:
    row = db.execute(SQL["record_named"], (unique_key,)).fetchone()
    return (record_of(row) if row else None,)


def _revision(db: Connection) -> int:
    found = db.execute(SQL["records_revision"]).fetchone()
    return int(found[0]) if found else 0


def _placed(rows: Sequence[Row], count: int) -> tuple[Record | None, ...]:
    found = {row[0]: record_of(row[1:]) for row in rows}
    return tuple(found.get(place) for place in range(count))
