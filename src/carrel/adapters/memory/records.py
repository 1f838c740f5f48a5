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
        self, tenant: str, noun: RecordType, ids: Sequence[str]
    ) -> tuple[Record | None, ...]:
        return tuple(self._record((tenant, noun, id)) for id in ids)

    async def named(self, handles: Sequence[str]) -> tuple[Record | None, ...]:
        owners = (self._state.handles.get(handle) for handle in handles)
        return tuple(self._record(owner) if owner else None for owner in owners)

    async def list(
        self, tenant: str, noun: RecordType, *, link: str = "", after: str = "", limit: int = 100
    ) -> tuple[Record, ...]:
        ordered = sorted(self._state.records, key=lambda key: (key[2], key[0]))
        wanted = (
            key
            for key in ordered
            if tenant in {"", key[0]}
            and key[1] is noun
            and key[2] > after
            and (not link or link in self._state.links[key])
        )
        return tuple(filter(None, map(self._record, islice(wanted, limit))))

    async def count(self, tenant: str, noun: RecordType, links: Sequence[str]) -> tuple[int, ...]:
        mine = [names for key, names in self._state.links.items() if key[:2] == (tenant, noun)]
        return tuple(sum(link in names for names in mine) for link in links)

    async def find(
        self, tenant: str, noun: RecordType, link: str, words: Sequence[str], *, limit: int = 100
    ) -> tuple[Record, ...]:
        found: list[tuple[int, int, str]] = []
        for key, record in self._state.records.items():
            if key[:2] != (tenant, noun) or link not in self._state.links[key]:
                continue
            known = index_terms(noun, record.body)
            some = sum(any(one.startswith(word) for one in known) for word in words)
            found += [(some, sum(word in known for word in words), key[2])] if some else []
        ids = [id for _, _, id in sorted(found, reverse=True)[:limit]]
        return tuple(filter(None, await self.get(tenant, noun, ids)))

    async def shelves(self, asks: Sequence[tuple[str, RecordType]]) -> tuple[int, ...]:
        return tuple(self._state.shelves.get(ask, 0) for ask in asks)

    async def revision(self) -> int:
        return self._state.records_revision

    async def used(self, marks: Mapping[str, TimestampMs]) -> None:
        for id, at in marks.items():
            self._state.used[id] = max(at, self._state.used.get(id, at))

    async def last_used(self, ids: Sequence[str]) -> tuple[TimestampMs | None, ...]:
        return tuple(self._state.used.get(id) for id in ids)

    async def audit(
        self, tenant: str, *, before: int = 0, limit: int = 100
    ) -> tuple[AuditEntry, ...]:
        newest = (deed for deed in reversed(self._state.deeds) if deed.tenant == tenant)
        return tuple(islice((deed for deed in newest if not before or deed.id < before), limit))

    def _record(self, key: RecordKey) -> Record | None:
        """A copy, so that nobody changes a record by changing what they read."""
        record = self._state.records.get(key)
        return replace(record, body=deepcopy(record.body)) if record else None
