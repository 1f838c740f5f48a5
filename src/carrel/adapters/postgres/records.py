"""Record queries in PostgreSQL, and last-used times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from carrel.adapters.postgres.database import Database, searchable_text
from carrel.adapters.postgres.read_batching import RequestBatcher
from carrel.adapters.postgres.rows import Row, from_json, record_from_row, transpose
from carrel.core.identifiers import TimestampMs
from carrel.core.search.bm25 import MAX_COUNTED, TermCount, TermStatistics, TermWeight
from carrel.core.store.audit_filter import EVERY_ENTRY, AuditFilter
from carrel.core.store.record import AuditEntry, KeyReference, Record, RecordFilter, RecordType
from carrel.ports import request_scope

_AFTER_ANY_SUFFIX: Final = "\U0010ffff"
"""Sorts after any suffix of a term."""
_BEFORE_ANY_SUFFIX: Final = "\x01"


class PostgresRecords:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._revisions: RequestBatcher[None, int] = RequestBatcher(self._revision, lambda _: 0)

    async def close(self) -> None:
        await self._revisions.close()

    async def get(
        self, tenant: str, record_type: RecordType, ids: Sequence[str]
    ) -> tuple[Record | None, ...]:
        requested = [searchable_text(id) for id in ids]
        rows = await self._database.rows("records", requested, searchable_text(tenant), record_type)
        return _records_by_index(rows, len(ids))

    async def get_by_unique_key(self, unique_keys: Sequence[str]) -> tuple[Record | None, ...]:
        rows = await self._database.rows(
            "records_by_unique_key", [searchable_text(name) for name in unique_keys]
        )
        return _records_by_index(rows, len(unique_keys))

    async def list(
        self,
        tenant: str,
        record_type: RecordType,
        *,
        index_key: str = "",
        after: str = "",
        limit: int = 100,
    ) -> tuple[Record, ...]:
        owner, name = searchable_text(tenant), searchable_text(index_key)
        if tenant and index_key:
            rows = await self._database.rows(
                "list_records_by_index_key", owner, record_type, name, after, limit
            )
        elif tenant:
            rows = await self._database.rows("list_records", owner, record_type, after, limit)
        elif index_key:
            rows = await self._database.rows(
                "list_records_of_all_tenants_by_index_key", record_type, name, after, limit
            )
        else:
            rows = await self._database.rows(
                "list_records_of_all_tenants", record_type, after, limit
            )
        return tuple(map(record_from_row, rows))

    async def count(
        self, tenant: str, record_type: RecordType, index_keys: Sequence[str]
    ) -> tuple[int, ...]:
        names = [searchable_text(name) for name in index_keys]
        rows = await self._database.rows(
            "count_records", names, searchable_text(tenant), record_type
        )
        counts = {position: count for position, count in rows}
        return tuple(counts.get(index + 1, 0) for index in range(len(index_keys)))

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
        name = "list_records_by_keys" if filter.index_keys else "list_records_by_key_ranges"
        first, *others = _searchable_ranges(filter)
        owner = (searchable_text(tenant), record_type)
        rows = await self._database.rows(name, *owner, *first, after, *transpose(others, 2), limit)
        return tuple(map(record_from_row, rows))

    async def count_matching(
        self, tenant: str, record_type: RecordType, filter: RecordFilter
    ) -> int:
        owner = (searchable_text(tenant), record_type)
        if filter.key_ranges:
            first, *others = _searchable_ranges(filter)
            [row] = await self._database.rows(
                "count_records_by_keys", *owner, *first, *transpose(others, 2)
            )
        else:
            [row] = await self._database.rows("count_all_records", *owner)
        return int(row[0])

    async def count_by_key(
        self, tenant: str, record_type: RecordType, prefix: str
    ) -> Mapping[str, int]:
        [bounds] = _searchable_ranges(RecordFilter(key_prefixes=(prefix,)))
        owner = (searchable_text(tenant), record_type)
        return {
            name: count
            for name, count in await self._database.rows("count_index_keys", *owner, *bounds)
        }

    async def count_terms(
        self, tenant: str, record_type: RecordType, index_key: str, terms: Sequence[str]
    ) -> TermStatistics:
        [documents] = await self.count(tenant, record_type, [index_key])
        upper_bounds = [term + _AFTER_ANY_SUFFIX for term in terms]
        owner = (searchable_text(tenant), record_type, searchable_text(index_key))
        rows = await self._database.rows(
            "count_record_terms", list(terms), upper_bounds, *owner, MAX_COUNTED
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
        rows = [
            (
                item.term,
                item.term + (_AFTER_ANY_SUFFIX if item.prefix else _BEFORE_ANY_SUFFIX),
                item.exact,
                item.prefix,
            )
            for item in terms
        ]
        owner = (searchable_text(tenant), record_type, searchable_text(index_key))
        ids = await self._database.rows("record_ids_by_terms", *transpose(rows, 4), *owner, limit)
        return tuple(filter(None, await self.get(tenant, record_type, [row[0] for row in ids])))

    async def collection_revisions(
        self, collections: Sequence[tuple[str, RecordType]]
    ) -> tuple[int, ...]:
        revisions = (
            await self._database.value("collection_revisions", *transpose(collections, 2))
            if collections
            else ()
        )
        return tuple(revisions)

    async def revision(self) -> int:
        scope = request_scope.current()
        if scope is None:
            return await self._revisions.submit(None)
        revision, commits = scope.get(), scope.commits
        if revision is None:
            revision = await self._revisions.submit(None)
            scope.set(revision, commits)
        return revision

    async def mark_used(self, used_at: Mapping[str, TimestampMs]) -> None:
        if used_at:
            await self._database.rows("mark_used", *transpose(sorted(used_at.items()), 2))

    async def last_used(self, ids: Sequence[str]) -> tuple[TimestampMs | None, ...]:
        rows = await self._database.rows("last_used", [searchable_text(id) for id in ids])
        timestamps = {position: at for position, at in rows}
        return tuple(timestamps.get(index + 1) for index in range(len(ids)))

    async def audit(
        self,
        tenant: str,
        filter: AuditFilter = EVERY_ENTRY,
        *,
        before: int = 0,
        limit: int = 100,
    ) -> tuple[AuditEntry, ...]:
        range = (searchable_text(tenant), filter.start, filter.end, before)
        if filter.keys:
            first, *others = map(searchable_text, filter.keys)
            rows = await self._database.rows("audit_entries_by_keys", *range, first, others, limit)
        else:
            rows = await self._database.rows("audit_entries", *range, limit)
        return tuple(map(_audit_entry_from_row, rows))

    async def count_audit_entries(self, tenant: str, filter: AuditFilter) -> int:
        range = (searchable_text(tenant), filter.start, filter.end)
        if filter.keys:
            first, *others = map(searchable_text, filter.keys)
            [row] = await self._database.rows("count_audit_entries_by_keys", *range, first, others)
        else:
            [row] = await self._database.rows("count_audit_entries", *range)
        return int(row[0])

    async def find_audit_entries(
        self, tenant: str, commits: Sequence[tuple[TimestampMs, str, str]]
    ) -> tuple[AuditEntry | None, ...]:
        rows = await self._database.rows("audit_entries_of_commits", tenant, *transpose(commits, 3))
        entries = {row[0]: _audit_entry_from_row(row[1:]) for row in map(tuple, rows)}
        return tuple(entries.get(index + 1) for index in range(len(commits)))

    async def _revision(self, requests: Sequence[None]) -> Sequence[int]:
        return [await self._database.value("records_revision")] * len(requests)


def _audit_entry_from_row(row: Row) -> AuditEntry:
    id, owner, at, author, reason, subjects, key, key_name, action = row
    return AuditEntry(
        *(str(id), owner, at, author, reason, tuple(from_json(subjects))),
        key=KeyReference(key, key_name) if key else None,
        action=action,
    )


def _records_by_index(rows: Sequence[Row], count: int) -> tuple[Record | None, ...]:
    records = {row[0]: record_from_row(row, 1) for row in rows}
    return tuple(records.get(index + 1) for index in range(count))


def _searchable_ranges(filter: RecordFilter) -> list[tuple[str | None, str | None]]:
    return [(searchable_text(low), searchable_text(high)) for low, high in filter.key_ranges]
