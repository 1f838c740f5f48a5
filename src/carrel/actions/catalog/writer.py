"""Writes planned catalog objects, deletes stale ones and reports the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from carrel.core.catalog import layout
from carrel.core.catalog.layout import CatalogPlan, ReviewedFileKey
from carrel.core.catalog.object_keys import nested_keys
from carrel.core.identifiers import Digest, digest
from carrel.core.store.blob import Blob
from carrel.ports import CorruptContent, ObjectStore, Ports

_BATCH_OBJECTS: Final = 256
_BATCH_BYTES: Final = 8 * 2**20
"""Limits of one batch in memory: objects, and bytes unless one object is larger."""
_NESTED_KEY_REASON: Final = "another object has the name of its directory"


class ExportFailure(Struct, frozen=True):
    """Object that could not be exported."""

    key: str
    reason: str
    is_transient: bool
    """True if a retry may succeed; False if the object store cannot hold the object."""


@dataclass(slots=True)
class ExportResult:
    """Counts and failures of an export of one or more tenants."""

    tenants: int = 0
    written: int = 0
    unchanged: int = 0
    deleted: int = 0
    failures: list[ExportFailure] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    """Files whose names are reserved in the catalog layout."""


class CatalogWriter:
    """Makes the objects under a prefix match the plans."""

    def __init__(self, ports: Ports, object_store: ObjectStore, result: ExportResult) -> None:
        self._ports, self._object_store, self._result = ports, object_store, result
        self._existing: dict[str, Digest | None] = {}
        """Existing objects that no plan contains so far."""
        self._reviewed: set[str] = set()
        """Keys that the plans of several agents may contain."""
        self._refused: dict[str, Blob | bytes] = {}

    async def load_existing(self, prefix: str) -> None:
        async for key, stored_digest in self._object_store.list(prefix):
            if layout.parse_key(key):
                self._existing[key] = stored_digest

    async def write_plan(self, plan: CatalogPlan) -> None:
        """Write the changed objects: files first, then the objects generated from them."""
        nested = nested_keys(plan) if self._object_store.forbids_nested_keys else frozenset()
        self._result.failures += [
            ExportFailure(key, _NESTED_KEY_REASON, is_transient=False) for key in sorted(nested)
        ]
        allowed = {key: plan[key] for key in plan if key not in nested}
        changed = {key: allowed[key] for key in allowed if self._needs_write(key, allowed[key])}
        for kind in (Blob, bytes):
            await self._put(
                {key: changed[key] for key in changed if isinstance(changed[key], kind)}
            )

    async def finish(self) -> None:
        """Delete objects that no plan contains, then retry the refused ones."""
        await self._object_store.delete(list(self._existing))
        self._result.deleted += len(self._existing)
        retries, self._refused = self._refused, {}
        for batch in _batches(retries):
            for key, reason in (await self._write(batch)).items():
                self._result.failures.append(ExportFailure(key, reason, is_transient=False))

    def _needs_write(self, key: str, content: Blob | bytes) -> bool:
        if key in self._reviewed:
            return False
        if isinstance(layout.parse_key(key), ReviewedFileKey):
            self._reviewed.add(key)
        expected_digest = content.digest if isinstance(content, Blob) else digest(content)
        is_same = self._existing.pop(key, None) == expected_digest
        self._result.unchanged += is_same
        return not is_same

    async def _put(self, contents: CatalogPlan) -> None:
        for batch in _batches(contents):
            self._refused |= {key: batch[key] for key in await self._write(batch)}

    async def _write(self, contents: CatalogPlan) -> Mapping[str, str]:
        """Write objects; return refused keys with the reason. Skips unreadable blobs."""
        refused = await self._object_store.put(payload := await self._load_bytes(contents))
        self._result.written += len(payload) - len(refused)
        return refused

    async def _load_bytes(self, contents: CatalogPlan) -> dict[str, bytes]:
        blobs = {key: blob for key, blob in contents.items() if isinstance(blob, Blob)}
        generated = {
            key: generated for key, generated in contents.items() if isinstance(generated, bytes)
        }
        try:
            stored = await self._ports.blobs.get(set(blobs.values())) if blobs else {}
        except CorruptContent:
            return generated | await self._load_individually(blobs)
        return generated | {key: stored[blob.digest] for key, blob in blobs.items()}

    async def _load_individually(self, blobs: Mapping[str, Blob]) -> dict[str, bytes]:
        payload: dict[str, bytes] = {}
        for key, blob in blobs.items():
            try:
                payload[key] = (await self._ports.blobs.get([blob]))[blob.digest]
            except CorruptContent as problem:
                self._result.failures.append(ExportFailure(key, str(problem), is_transient=True))
        return payload


def _batches(contents: CatalogPlan) -> Iterator[dict[str, Blob | bytes]]:
    """Split a plan into batches that fit in memory."""
    batch: dict[str, Blob | bytes] = {}
    batch_bytes = 0
    for key, content in contents.items():
        size = content.size if isinstance(content, Blob) else len(content)
        if batch and (len(batch) >= _BATCH_OBJECTS or batch_bytes + size > _BATCH_BYTES):
            yield batch
            batch, batch_bytes = {}, 0
        batch[key] = content
        batch_bytes += size
    if batch:
        yield batch
