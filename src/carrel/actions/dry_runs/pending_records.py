"""Records of a dry run: changed ones over those of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from carrel.actions.dry_runs.pending_changes import PendingChanges, PendingRecord, RecordKey
from carrel.core.identifiers import TimestampMs
from carrel.core.search.bm25 import TermStatistics, TermWeight
from carrel.core.store.audit_filter import EVERY_ENTRY, AuditFilter
from carrel.core.store.commit import Commit, ExpectationFailed
from carrel.core.store.record import (
    AuditEntry,
    CollectionRevision,
    Record,
    RecordChange,
    RecordFilter,
    RecordRevision,
    RecordType,
)
from carrel.ports.records import Records


class PendingRecords:
    """Records of a dry run. Counts and searches see stored records only."""

    def __init__(self, stored: Records, changes: PendingChanges) -> None:
        self._stored = stored
        self._changes = changes

    async def get(
        self, tenant: str, record_type: RecordType, ids: Sequence[str]
    ) -> tuple[Record | None, ...]:
        stored = await self._stored.get(tenant, record_type, ids)
        if not self._changes.records:
            return stored
        pairs = zip(ids, stored, strict=True)
        return tuple(self._current((tenant, record_type, id), record) for id, record in pairs)

    async def get_by_unique_key(self, unique_keys: Sequence[str]) -> tuple[Record | None, ...]:
        stored = await self._stored.get_by_unique_key(unique_keys)
        pairs = zip(unique_keys, stored, strict=True)
        return tuple(self._owner(name, record) for name, record in pairs)

    async def list(
        self,
        tenant: str,
        record_type: RecordType,
        *,
        index_key: str = "",
        after: str = "",
        limit: int = 100,
    ) -> tuple[Record, ...]:
        changed = self._changes.records
        stored = await self._stored.list(
            tenant, record_type, index_key=index_key, after=after, limit=limit + len(changed)
        )
        by_id = {item.id: item for item in stored if _key(item) not in changed}
        for (owner, type, id), pending in changed.items():
            is_listed = type is record_type and tenant in ("", owner) and id > after
            if is_listed and pending.record and (not index_key or index_key in pending.index_keys):
                by_id[id] = pending.record
        return tuple(by_id[id] for id in sorted(by_id))[:limit]

    async def count(
        self, tenant: str, record_type: RecordType, index_keys: Sequence[str]
    ) -> tuple[int, ...]:
        return await self._stored.count(tenant, record_type, index_keys)

    async def list_matching(
        self,
        tenant: str,
        record_type: RecordType,
        filter: RecordFilter,
        *,
        after: str = "",
        limit: int = 100,
    ) -> tuple[Record, ...]:
        changed = self._changes.records
        stored = await self._stored.list_matching(
            tenant, record_type, filter, after=after, limit=limit + len(changed)
        )
        by_id = {item.id: item for item in stored if _key(item) not in changed}
        for (owner, type, id), pending in changed.items():
            is_listed = type is record_type and owner == tenant and id > after
            if is_listed and pending.record and filter.matches(pending.index_keys):
                by_id[id] = pending.record
        return tuple(by_id[id] for id in sorted(by_id))[:limit]

    async def count_matching(
        self, tenant: str, record_type: RecordType, filter: RecordFilter
    ) -> int:
        return await self._stored.count_matching(tenant, record_type, filter)

    async def count_by_key(
        self, tenant: str, record_type: RecordType, prefix: str
    ) -> Mapping[str, int]:
        return await self._stored.count_by_key(tenant, record_type, prefix)

    async def count_terms(
        self, tenant: str, record_type: RecordType, index_key: str, terms: Sequence[str]
    ) -> TermStatistics:
        return await self._stored.count_terms(tenant, record_type, index_key, terms)

    async def find(
        self,
        tenant: str,
        record_type: RecordType,
        index_key: str,
        terms: Sequence[TermWeight],
        *,
        limit: int = 100,
    ) -> tuple[Record, ...]:
        return await self._stored.find(tenant, record_type, index_key, terms, limit=limit)

    async def collection_revisions(
        self, collections: Sequence[tuple[str, RecordType]]
    ) -> tuple[int, ...]:
        stored = await self._stored.collection_revisions(collections)
        pending = self._changes.collections
        pairs = zip(collections, stored, strict=True)
        return tuple(revision + pending.get(collection, 0) for collection, revision in pairs)

    async def revision(self) -> int:
        return await self._stored.revision() + self._changes.record_commits

    async def mark_used(self, used_at: Mapping[str, TimestampMs]) -> None:
        """A dry run stores nothing."""

    async def last_used(self, ids: Sequence[str]) -> tuple[TimestampMs | None, ...]:
        return await self._stored.last_used(ids)

    async def audit(
        self,
        tenant: str,
        filter: AuditFilter = EVERY_ENTRY,
        *,
        before: int = 0,
        limit: int = 100,
    ) -> tuple[AuditEntry, ...]:
        return await self._stored.audit(tenant, filter, before=before, limit=limit)

    async def count_audit_entries(self, tenant: str, filter: AuditFilter) -> int:
        return await self._stored.count_audit_entries(tenant, filter)

    async def find_audit_entries(
        self, tenant: str, commits: Sequence[tuple[TimestampMs, str, str]]
    ) -> tuple[AuditEntry | None, ...]:
        return await self._stored.find_audit_entries(tenant, commits)

    async def find_conflict(self, commit: Commit) -> ExpectationFailed | None:
        """Return the first expectation about records that does not hold."""
        for collection in commit.collection_revisions:
            if await self._collection_revision(collection) != collection.revision:
                return ExpectationFailed(collection)
        for read in commit.record_revisions:
            if await self._revision_of(read) != read.revision:
                return ExpectationFailed(read)
        return await self._refused_change(commit)

    async def apply(self, commit: Commit) -> None:
        """Change the records. A deletion of an absent record changes nothing."""
        changed: set[tuple[str, RecordType]] = set()
        for change in commit.changes:
            [existing] = await self.get(change.tenant, change.type, [change.id])
            if change.body is None and existing is None:
                continue
            self._changes.records[_key(change)] = _pending_record(change, existing, commit)
            changed.add((change.tenant, change.type))
        collections = self._changes.collections
        collections.update((item, collections.get(item, 0) + 1) for item in changed)

    async def _refused_change(self, commit: Commit) -> ExpectationFailed | None:
        owners: dict[str, RecordKey] = {}
        for change in commit.changes:
            [record] = await self.get(change.tenant, change.type, [change.id])
            revision = record.revision if record else 0
            if change.expected is not None and change.expected != revision:
                return ExpectationFailed(change)
            for name in change.unique_keys if change.body is not None else ():
                owner = owners.setdefault(name, _key(change))
                if owner != _key(change) or await self._is_taken(name, owner, commit):
                    return ExpectationFailed(change, unique_key=name)
        return None

    async def _is_taken(self, name: str, owner: RecordKey, commit: Commit) -> bool:
        """Whether another record has a unique key, unless this commit releases it."""
        [record] = await self.get_by_unique_key([name])
        if record is None or _key(record) == owner:
            return False
        return not any(
            _key(change) == _key(record) and name not in change.unique_keys
            for change in commit.changes
        )

    async def _collection_revision(self, collection: CollectionRevision) -> int:
        [revision] = await self.collection_revisions([(collection.tenant, collection.type)])
        return revision

    async def _revision_of(self, read: RecordRevision) -> int:
        [record] = await self.get(read.tenant, read.type, [read.id])
        return record.revision if record else 0

    def _current(self, key: RecordKey, stored: Record | None) -> Record | None:
        pending = self._changes.records.get(key)
        return stored if pending is None else pending.record

    def _owner(self, name: str, stored: Record | None) -> Record | None:
        for pending in self._changes.records.values():
            if name in pending.unique_keys:
                return pending.record
        return None if stored and _key(stored) in self._changes.records else stored


def _pending_record(change: RecordChange, existing: Record | None, commit: Commit) -> PendingRecord:
    if change.body is None:
        return PendingRecord(None)
    record = Record(
        change.tenant,
        change.type,
        change.id,
        existing.revision + 1 if existing else 1,
        change.body,
        existing.created_at if existing else commit.at,
        commit.at,
    )
    return PendingRecord(record, change.unique_keys, change.index_keys)


def _key(item: Record | RecordChange) -> RecordKey:
    return (item.tenant, item.type, item.id)
