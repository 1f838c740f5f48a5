"""Records in dictionaries. Trees.commit changes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from itertools import islice

from msgspec.structs import replace

from carrel.adapters.memory.state import MemoryState, RecordKey
from carrel.core.identifiers import TimestampMs
from carrel.core.search.full_text import index_terms
from carrel.core.store.record import AuditEntry, Record, RecordType


class MemoryRecords:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def get(
        self, tenant: str, record_type: RecordType, ids: Sequence[str]
    ) -> tuple[Record | None, ...]:
        return tuple(self._record((tenant, record_type, id)) for id in ids)

    async def get_by_unique_key(self, unique_keys: Sequence[str]) -> tuple[Record | None, ...]:
        owners = (self._state.handles.get(handle) for handle in unique_keys)
        return tuple(self._record(owner) if owner else None for owner in owners)

    async def list(
        self,
        tenant: str,
        record_type: RecordType,
        *,
        link: str = "",
        after: str = "",
        limit: int = 100,
    ) -> tuple[Record, ...]:
        ordered = sorted(self._state.records, key=lambda key: (key[2], key[0]))
        wanted = (
            key
            for key in ordered
            if tenant in {"", key[0]}
            and key[1] is record_type
            and key[2] > after
            and (not link or link in self._state.links[key])
        )
        return tuple(filter(None, map(self._record, islice(wanted, limit))))

    async def count(
        self, tenant: str, record_type: RecordType, index_keys: Sequence[str]
    ) -> tuple[int, ...]:
        mine = [
            names for key, names in self._state.links.items() if key[:2] == (tenant, record_type)
        ]
        return tuple(sum(link in names for names in mine) for link in index_keys)

    async def find(
        self,
        tenant: str,
        record_type: RecordType,
        link: str,
        words: Sequence[str],
        *,
        limit: int = 100,
    ) -> tuple[Record, ...]:
        found: list[tuple[int, int, str]] = []
        for key, record in self._state.records.items():
            if key[:2] != (tenant, record_type) or link not in self._state.links[key]:
                continue
            known = index_terms(record_type, record.body)
            some = sum(any(one.startswith(word) for one in known) for word in words)
            found += [(some, sum(word in known for word in words), key[2])] if some else []
        ids = [id for _, _, id in sorted(found, reverse=True)[:limit]]
        return tuple(filter(None, await self.get(tenant, record_type, ids)))

    async def collection_revisions(self, asks: Sequence[tuple[str, RecordType]]) -> tuple[int, ...]:
        return tuple(self._state.shelves.get(ask, 0) for ask in asks)

    async def revision(self) -> int:
        return self._state.records_revision

    async def mark_used(self, marks: Mapping[str, TimestampMs]) -> None:
        for id, at in marks.items():
            self._state.used[id] = max(at, self._state.used.get(id, at))

    async def last_used(self, ids: Sequence[str]) -> tuple[TimestampMs | None, ...]:
        return tuple(self._state.used.get(id) for id in ids)

    async def audit(
        self, tenant: str, *, before: int = 0, limit: int = 100
    ) -> tuple[AuditEntry, ...]:
        newest = (entry for entry in reversed(self._state.deeds) if entry.tenant == tenant)
        return tuple(islice((entry for entry in newest if not before or entry.id < before), limit))

    def _record(self, key: RecordKey) -> Record | None:
        """A copy, so that nobody changes a record by changing what they read."""
        record = self._state.records.get(key)
        return replace(record, body=deepcopy(record.body)) if record else None
