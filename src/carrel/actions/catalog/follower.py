"""Keeps a catalog up to date: exports what each change affects.

A change affects the files of an agent, a template or the defaults, or the whole tenant.

The follower remembers the event cursor and the collection revisions in memory only. A new
process starts with all tenants, so work that a crash interrupted is done again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from carrel.actions.catalog.export import (
    ChangedScope,
    ReviewedDigests,
    claim,
    export_scopes,
    export_tenant,
    remove_unknown_tenants,
)
from carrel.actions.catalog.writer import ExportFailure, ExportResult
from carrel.actions.records import iter_records
from carrel.core.accounts import tenant_from_record
from carrel.core.errors import Refusal
from carrel.core.identifiers import Path, Scope, ScopeKind, TimestampMs
from carrel.core.store.event import WORKSPACE_UPDATED
from carrel.core.store.record import Record, RecordType
from carrel.ports import LeaderLock, ObjectStore, Ports
from carrel.ports.logging import get_logger

BACKOFF_SECONDS: Final = (1, 2, 5, 15, 60, 300)
"""Seconds before each retry; the last repeats."""
_RECORD_TYPES: Final = (
    RecordType.TENANT,
    RecordType.POLICY,
    RecordType.DEFAULTS,
    RecordType.TEMPLATE,
    RecordType.AGENT,
)
_SCOPE_KINDS: Final = frozenset({ScopeKind.DEFAULTS, ScopeKind.TEMPLATE, ScopeKind.AGENT})
_PAGE_SIZE: Final = 500
_MAX_CHANGED_SCOPES: Final = 50
"""Above this many changed scopes, the whole tenant is exported."""
_POLL_SECONDS: Final = 1.0
"""Seconds between polls of records, whose changes wake no waiter."""
_BATCH_DELAY_SECONDS: Final = 0.2
"""Seconds to wait after a wake-up, so that many changes become one pass."""
_LOCK_RETRY_SECONDS: Final = 5.0
"""Seconds between attempts to acquire the leader lock."""
_log = get_logger("carrel.catalog")


async def run_catalog(
    ports: Ports, object_store: ObjectStore, lock: LeaderLock, stop: asyncio.Event
) -> None:
    """Keep the catalog up to date while holding the leader lock, until `stop` is set.

    Retries after any failure.
    """
    follower, failures = CatalogFollower(ports, object_store), 0
    try:
        while not stop.is_set():
            try:
                if not await lock.try_acquire():
                    follower = CatalogFollower(ports, object_store)
                    await wait_for_first(_LOCK_RETRY_SECONDS, stop.wait())
                    continue
                # Cancelled on stop: a half-done export is repaired like one that crashed.
                await wait_for_first(None, follower.catch_up(), stop.wait())
                failures = 0
            except Exception as problem:
                _log.warning("catalog export failed", **error_fields(problem))
                await wait_for_first(
                    BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS) - 1)], stop.wait()
                )
                failures += 1
            else:
                if await wait_for_first(
                    _POLL_SECONDS, stop.wait(), ports.events.wait_for_new(_POLL_SECONDS)
                ):
                    await wait_for_first(_BATCH_DELAY_SECONDS, stop.wait())
    finally:
        await lock.release()


class CatalogFollower:
    """Tracks which tenants and scopes changed, and exports them."""

    def __init__(self, ports: Ports, object_store: ObjectStore) -> None:
        self._ports, self._object_store = ports, object_store
        self._cursor: str | None = None
        self._revision = -1
        self._collection_revisions: dict[str, tuple[int, ...]] = {}
        self._slugs: frozenset[str] = frozenset()
        self._due: dict[str, TimestampMs] = {}
        """Tenants to export whole, with the earliest time of the next attempt."""
        self._changed: dict[str, dict[Scope, set[Path]]] = {}
        """Changed paths by scope, of tenants that need no full export."""
        self._reviewed_digests: dict[str, ReviewedDigests] = {}
        self._failures: dict[str, int] = {}
        self._cleanup_due = True
        """Objects of deleted tenants may exist."""
        self._claimed = False

    async def catch_up(self) -> ExportResult:
        """Export what is due. Raises OSError if the object store fails.

        The next call continues after an error. A tenant that fails, wholly or in part, is retried
        later
        and does not delay others.
        """
        result = ExportResult()
        if not self._claimed:
            await claim(self._object_store)
            self._claimed = True
        await self._poll()
        for id in [id for id in self._changed if id not in self._due]:
            await self._export_scopes(id, result)
        now = self._ports.clock.now()
        for id in [id for id, due_at in self._due.items() if due_at <= now]:
            await self._export_tenant(id, result)
        if self._cleanup_due:
            result.deleted += await remove_unknown_tenants(self._object_store, self._slugs)
            self._cleanup_due = False
        return result

    async def _export_tenant(self, id: str, result: ExportResult) -> None:
        failures_before = len(result.failures)
        try:
            [tenant] = await self._ports.records.get(id, RecordType.TENANT, [id])
            if tenant is not None:
                self._reviewed_digests[id] = await export_tenant(
                    self._ports, self._object_store, tenant, result
                )
        except OSError:
            raise
        except Exception as problem:
            _log.warning("catalog export of a tenant failed", tenant=id, **error_fields(problem))
            self._schedule_retry(id)
        else:
            self._finish(id, result.failures[failures_before:])

    async def _export_scopes(self, id: str, result: ExportResult) -> None:
        """Export the changed scopes, or schedule a full export if that does not suffice."""
        failures_before, changed = len(result.failures), self._changed[id]
        digests = self._reviewed_digests.get(id, {})
        changed_scopes = {
            scope: ChangedScope(digests.get(scope), frozenset(paths))
            for scope, paths in changed.items()
        }
        exported = False
        try:
            [tenant] = await self._ports.records.get(id, RecordType.TENANT, [id])
            if tenant is not None and len(changed_scopes) <= _MAX_CHANGED_SCOPES:
                exported = await export_scopes(
                    self._ports, self._object_store, tenant, changed_scopes, result
                )
        except OSError:
            raise
        except Exception as problem:
            _log.warning("partial catalog export failed", tenant=id, **error_fields(problem))
        if exported:
            self._finish(id, result.failures[failures_before:])
        else:
            self._due[id] = 0

    def _finish(self, id: str, failures: list[ExportFailure]) -> None:
        if failures:
            _log.warning("catalog objects could not be exported", tenant=id, objects=len(failures))
        if any(failure.is_transient for failure in failures):
            self._schedule_retry(id)
        else:
            self._failures.pop(id, None)
            self._due.pop(id, None)
            self._changed.pop(id, None)

    def _schedule_retry(self, id: str) -> None:
        failures = self._failures.get(id, 0)
        self._failures[id] = failures + 1
        self._due[id] = (
            self._ports.clock.now()
            + 1000 * BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS) - 1)]
        )

    async def _poll(self) -> None:
        """Find changes; tenants are read after this, so no change is missed."""
        await self._poll_events()
        revision = await self._ports.records.revision()
        if revision != self._revision:
            await self._poll_records()
            self._revision = revision

    async def _poll_events(self) -> None:
        if self._cursor is None:
            self._cursor = await self._ports.events.latest_cursor()
        while events := await self._ports.events.read_after(self._cursor, limit=_PAGE_SIZE):
            for event in events:
                if (
                    event.type == WORKSPACE_UPDATED
                    and event.scope
                    and event.scope.kind in _SCOPE_KINDS
                ):
                    self._add_change(event.tenant, event.scope, Path(event.payload["path"]))
            self._cursor = events[-1].cursor

    def _add_change(self, tenant: str, scope: Scope, path: Path) -> None:
        if tenant in self._due:
            self._due[tenant] = 0
        else:
            self._changed.setdefault(tenant, {}).setdefault(scope, set()).add(path)

    async def _poll_records(self) -> None:
        """Mark tenants whose collection revisions changed, and new tenants, as due."""
        tenants = [tenant async for tenant in iter_records(self._ports, "", RecordType.TENANT)]
        revisions = await self._load_revisions(tenants)
        for id, collection_revisions in revisions.items():
            if self._collection_revisions.get(id) != collection_revisions:
                self._due[id] = 0
        slugs = frozenset(tenant_from_record(tenant).slug for tenant in tenants)
        self._cleanup_due |= bool(self._slugs - slugs)
        self._collection_revisions, self._slugs = revisions, slugs

    async def _load_revisions(self, tenants: list[Record]) -> dict[str, tuple[int, ...]]:
        collections = [
            (tenant.id, record_type) for tenant in tenants for record_type in _RECORD_TYPES
        ]
        revisions = (
            await self._ports.records.collection_revisions(collections) if collections else ()
        )
        width = len(_RECORD_TYPES)
        return {
            tenant.id: tuple(revisions[index * width : (index + 1) * width])
            for index, tenant in enumerate(tenants)
        }


async def wait_for_first(seconds: float | None, *waits: Coroutine[Any, Any, Any]) -> bool:
    """Return whether an awaitable returned true in time; cancels the others."""
    tasks = {asyncio.create_task(wait) for wait in waits}
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return any([task.result() for task in done])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def error_fields(problem: Exception) -> dict[str, str]:
    """Log fields of an error: its type, and the message of an OSError or Refusal."""
    fields = {"error": type(problem).__name__}
    if isinstance(problem, OSError | Refusal):
        fields["said"] = str(problem)[:500]
    return fields
