"""Record queries in SQLite, and last-used times."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from sqlite3 import Connection

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.rows import RECORDS_REVISION_KEY, Row, record_from_row
from carrel.adapters.sqlite.writer import Writer
from carrel.core.identifiers import TimestampMs
from carrel.core.search.bm25 import MAX_COUNTED, TermCount, TermStatistics, TermWeight
from carrel.core.store.audit_filter import EVERY_ENTRY, AuditFilter
from carrel.core.store.record import AuditEntry, KeyReference, Record, RecordFilter, RecordType


class SqliteRecords:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    async def get(
        self, tenant: str, record_type: RecordType, ids: Sequence[str]
    ) -> tuple[Record | None, ...]:
        parameters = (json.dumps(list(ids)), tenant, record_type)
        return _records_by_index(
            self._reader.db.execute(STATEMENTS["records"], parameters).fetchall(), len(ids)
        )

    async def get_by_unique_key(self, unique_keys: Sequence[str]) -> tuple[Record | None, ...]:
        if len(unique_keys) == 1:
            return self._reader.get_or_query(
                ("record", unique_keys[0]), _query_by_unique_key, unique_keys[0]
            )
        parameters = (json.dumps(list(unique_keys)),)
        return _records_by_index(
            self._reader.db.execute(STATEMENTS["records_by_unique_key"], parameters).fetchall(),
            len(unique_keys),
        )

    async def list(
        self,
        tenant: str,
        record_type: RecordType,
        *,
        index_key: str = "",
        after: str = "",
        limit: int = 100,
    ) -> tuple[Record, ...]:
        db = self._reader.db
        if index_key and tenant:
            rows = db.execute(
                STATEMENTS["list_records_by_index_key"],
                (tenant, record_type, index_key, after, limit),
            )
        elif index_key:
            rows = db.execute(
                STATEMENTS["list_records_of_all_tenants_by_index_key"],
                (record_type, index_key, after, limit),
            )
        elif tenant:
            rows = db.execute(STATEMENTS["list_records"], (tenant, record_type, after, limit))
        else:
            rows = db.execute(
                STATEMENTS["list_records_of_all_tenants"], (record_type, after, limit)
            )
        return tuple(map(record_from_row, rows.fetchall()))

    async def count(
        self, tenant: str, record_type: RecordType, index_keys: Sequence[str]
    ) -> tuple[int, ...]:
        parameters = (json.dumps(list(index_keys)), tenant, record_type)
        counts = dict(self._reader.db.execute(STATEMENTS["count_records"], parameters).fetchall())
        return tuple(counts.get(index, 0) for index in range(len(index_keys)))

    async def list_matching(
        self,
        tenant: str,
        record_type: RecordType,
        filter: RecordFilter,
        *,
        after: str = "",
        limit: int = 100,
    ) -> tuple[Record, ...]:
        if len(filter.index_keys) < 2 and not filter.key_prefixes:
            index_key = "".join(filter.index_keys)
            return await self.list(
                tenant, record_type, index_key=index_key, after=after, limit=limit
            )
        first, *others = filter.key_ranges
        name = "list_records_by_keys" if filter.index_keys else "list_records_by_key_ranges"
        parameters = (tenant, record_type, *first, after, json.dumps(others), limit)
        rows = await self._reader.scan(
            lambda db: db.execute(STATEMENTS[name], parameters).fetchall()
        )
        return tuple(map(record_from_row, rows))

    async def count_matching(
        self, tenant: str, record_type: RecordType, filter: RecordFilter
    ) -> int:
        name, parameters = "count_all_records", [tenant, record_type]
        if filter.key_ranges:
            first, *others = filter.key_ranges
            name, parameters = "count_records_by_keys", [*parameters, *first, json.dumps(others)]
        row = await self._reader.scan(
            lambda db: db.execute(STATEMENTS[name], parameters).fetchone()
        )
        return int(row[0])

    async def count_by_key(
        self, tenant: str, record_type: RecordType, prefix: str
    ) -> Mapping[str, int]:
        [bounds] = RecordFilter(key_prefixes=(prefix,)).key_ranges
        parameters = (tenant, record_type, *bounds)
        rows = await self._reader.scan(
            lambda db: db.execute(STATEMENTS["count_index_keys"], parameters).fetchall()
        )
        return dict(rows)

    async def count_terms(
        self, tenant: str, record_type: RecordType, index_key: str, terms: Sequence[str]
    ) -> TermStatistics:
        [documents] = await self.count(tenant, record_type, [index_key])
        parameters = (json.dumps(list(terms)), tenant, record_type, index_key, MAX_COUNTED)
        rows = await self._reader.scan(
            lambda db: db.execute(STATEMENTS["count_record_terms"], parameters).fetchall()
        )
        return TermStatistics(documents, {term: TermCount(*counts) for term, *counts in rows})

    async def find(
        self,
        tenant: str,
        record_type: RecordType,
        index_key: str,
        terms: Sequence[TermWeight],
        *,
        limit: int = 100,
    ) -> tuple[Record, ...]:
        if not terms:
            return ()
        weights = json.dumps([(item.term, item.exact, item.prefix) for item in terms])
        parameters = (weights, tenant, record_type, index_key, limit)
        rows = await self._reader.scan(
            lambda db: db.execute(STATEMENTS["record_ids_by_terms"], parameters).fetchall()
        )
        return tuple(filter(None, await self.get(tenant, record_type, [row[0] for row in rows])))

    async def collection_revisions(
        self, collections: Sequence[tuple[str, RecordType]]
    ) -> tuple[int, ...]:
        requested = json.dumps([list(pair) for pair in collections])
        rows = self._reader.db.execute(STATEMENTS["collection_revisions"], (requested,)).fetchall()
        revisions = dict(rows)
        return tuple(revisions.get(index, 0) for index in range(len(collections)))

    async def revision(self) -> int:
        return self._reader.get_or_query(RECORDS_REVISION_KEY, _query_revision)

    async def mark_used(self, used_at: Mapping[str, TimestampMs]) -> None:
        rows = list(used_at.items())
        await self._writer.submit(
            lambda db, _: db.executemany(STATEMENTS["mark_used"], rows) and None
        )

    async def last_used(self, ids: Sequence[str]) -> tuple[TimestampMs | None, ...]:
        parameters = (json.dumps(list(ids)),)
        timestamps = dict(self._reader.db.execute(STATEMENTS["last_used"], parameters).fetchall())
        return tuple(timestamps.get(index) for index in range(len(ids)))

    async def audit(
        self,
        tenant: str,
        filter: AuditFilter = EVERY_ENTRY,
        *,
        before: int = 0,
        limit: int = 100,
    ) -> tuple[AuditEntry, ...]:
        name, parameters = "audit_entries", [tenant, filter.start, filter.end, before]
        if filter.keys:
            first, *others = filter.keys
            name, parameters = "audit_entries_by_keys", [*parameters, first, json.dumps(others)]
        rows = await self._reader.scan(
            lambda db: db.execute(STATEMENTS[name], [*parameters, limit]).fetchall()
        )
        return tuple(map(_audit_entry_from_row, rows))

    async def count_audit_entries(self, tenant: str, filter: AuditFilter) -> int:
        name, parameters = "count_audit_entries", [tenant, filter.start, filter.end]
        if filter.keys:
            first, *others = filter.keys
            name = "count_audit_entries_by_keys"
            parameters += [first, json.dumps(others)]
        row = await self._reader.scan(
            lambda db: db.execute(STATEMENTS[name], parameters).fetchone()
        )
        return int(row[0])

    async def find_audit_entries(
        self, tenant: str, commits: Sequence[tuple[TimestampMs, str, str]]
    ) -> tuple[AuditEntry | None, ...]:
        parameters = (json.dumps(list(commits)), tenant)
        rows = self._reader.db.execute(
            STATEMENTS["audit_entries_of_commits"], parameters
        ).fetchall()
        entries = {row[0]: _audit_entry_from_row(row[1:]) for row in rows}
        return tuple(entries.get(index) for index in range(len(commits)))


def _audit_entry_from_row(row: Row) -> AuditEntry:
    id, owner, at, author, reason, subjects, key, key_name, action = row
    return AuditEntry(
        *(str(id), owner, at, author, reason, tuple(json.loads(subjects))),
        key=KeyReference(key, key_name) if key else None,
        action=action,
    )


def _query_by_unique_key(db: Connection, unique_key: str) -> tuple[Record | None]:
    row = db.execute(STATEMENTS["record_by_unique_key"], (unique_key,)).fetchone()
    return (record_from_row(row) if row else None,)


def _query_revision(db: Connection) -> int:
    row = db.execute(STATEMENTS["records_revision"]).fetchone()
    return int(row[0]) if row else 0


def _records_by_index(rows: Sequence[Row], count: int) -> tuple[Record | None, ...]:
    records = {row[0]: record_from_row(row[1:]) for row in rows}
    return tuple(records.get(index) for index in range(count))
