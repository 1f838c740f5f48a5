"""Records beside the files: tenants, people, agents, policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from carrel.core.identifiers import TimestampMs
from carrel.core.search.bm25 import TermStatistics, TermWeight
from carrel.core.store.audit_filter import EVERY_ENTRY, AuditFilter
from carrel.core.store.record import AuditEntry, Record, RecordFilter, RecordType


class Records(Protocol):
    """Records. They change only by Trees.commit."""

    async def get(
        self, tenant: str, record_type: RecordType, ids: Sequence[str]
    ) -> tuple[Record | None, ...]:
        """Return each record of this tenant and type by id."""

    async def get_by_unique_key(self, unique_keys: Sequence[str]) -> tuple[Record | None, ...]:
        """Return each record by one of its unique keys, in any tenant."""

    async def list(
        self,
        tenant: str,
        record_type: RecordType,
        *,
        index_key: str = "",
        after: str = "",
        limit: int = 100,
    ) -> tuple[Record, ...]:
        """Return records ordered by id, past `after`, optionally with this index key.

        An empty tenant lists all tenants: only for maintenance.
        """

    async def count(
        self, tenant: str, record_type: RecordType, index_keys: Sequence[str]
    ) -> tuple[int, ...]:
        """Return the number of records of this tenant and type for each index key."""

    async def list_matching(
        self,
        tenant: str,
        record_type: RecordType,
        filter: RecordFilter,
        *,
        after: str = "",
        limit: int = 100,
    ) -> tuple[Record, ...]:
        """Return the tenant's records that meet every condition, ordered by id, past `after`."""

    async def count_matching(
        self, tenant: str, record_type: RecordType, filter: RecordFilter
    ) -> int:
        """Return the number of the tenant's records that meet every condition."""

    async def count_by_key(
        self, tenant: str, record_type: RecordType, prefix: str
    ) -> Mapping[str, int]:
        """Return the number of records for each index key with this prefix, in order."""

    async def count_terms(
        self, tenant: str, record_type: RecordType, index_key: str, terms: Sequence[str]
    ) -> TermStatistics:
        """Count the records with this index key and each of these terms.

        Terms are those of `core.search.full_text`; each is counted up to MAX_COUNTED.
        """

    async def find(
        self,
        tenant: str,
        record_type: RecordType,
        index_key: str,
        terms: Sequence[TermWeight],
        *,
        limit: int = 100,
    ) -> tuple[Record, ...]:
        """Return records with this index key and any of these terms.

        Ordered by the sum of the weights of their terms, then by id descending.
        """

    async def collection_revisions(
        self, collections: Sequence[tuple[str, RecordType]]
    ) -> tuple[int, ...]:
        """Return the revision of each (tenant, type), 0 if it never had a record."""

    async def revision(self) -> int:
        """Return a number that increases with every change of an audited record."""

    async def mark_used(self, used_at: Mapping[str, TimestampMs]) -> None:
        """Store when each id was last used; earlier times never replace later ones."""

    async def last_used(self, ids: Sequence[str]) -> tuple[TimestampMs | None, ...]: ...

    async def audit(
        self,
        tenant: str,
        filter: AuditFilter = EVERY_ENTRY,
        *,
        before: int = 0,
        limit: int = 100,
    ) -> tuple[AuditEntry, ...]:
        """Return audit entries that meet every condition, newest first.

        If `before` is not 0, only those that follow the entry with this id.
        """

    async def count_audit_entries(self, tenant: str, filter: AuditFilter) -> int:
        """Return the number of audit entries that meet every condition."""

    async def find_audit_entries(
        self, tenant: str, commits: Sequence[tuple[TimestampMs, str, str]]
    ) -> tuple[AuditEntry | None, ...]:
        """Return the audit entry of each commit by its time, author and reason."""
