"""Keeping a catalog up to date: after every change, what it concerns is done again.

That is an agent's, a template's or the defaults' files, or the tenant where more follows from it.

What is known of the store is where its log of events and its records stood when they were last
looked at. That is forgotten with the process; whoever comes next begins with all tenants, so that
nothing a crash left undone stays so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from carrel.actions.catalog.export import (
    ChangedScope,
    Marks,
    claim,
    project,
    project_parts,
    remove_strangers,
)
from carrel.actions.catalog.writer import ExportFailure, ExportResult
from carrel.actions.records import iter_records
from carrel.core.errors import Refusal
from carrel.core.identifiers import Path, Scope, ScopeKind, TimestampMs
from carrel.core.store.event import UPDATED
from carrel.core.store.record import Record, RecordType
from carrel.ports import LeaderLock, ObjectStore, Ports
from carrel.ports.logging import log_of

BACKOFF: Final = (1, 2, 5, 15, 60, 300)
"""Seconds until what failed is tried again, the last for as long as it fails."""
_NOUNS: Final = (
    RecordType.TENANT,
    RecordType.POLICY,
    RecordType.DEFAULTS,
    RecordType.TEMPLATE,
    RecordType.AGENT,
)
_KINDS: Final = frozenset({ScopeKind.DEFAULTS, ScopeKind.TEMPLATE, ScopeKind.AGENT})
_PAGE: Final = 500
_MOST_PARTS: Final = 50
"""Scopes of a tenant that are done one by one; if more have changed, it is done as a whole."""
_IDLE: Final = 1.0
"""Seconds between looks at records, whose changes wake nobody."""
_GATHER: Final = 0.2
"""Seconds in which changes gather, so that many of them are one pass."""
_BESIDE: Final = 5.0
"""Seconds after which one without the turn asks for it again."""
_log = log_of("carrel.catalog")


async def run_catalog(
    ports: Ports, object_store: ObjectStore, turn: LeaderLock, stop: asyncio.Event
) -> None:
    """Keep it up to date until told to stop, whatever goes wrong, while it is this one's turn."""
    follower, tries = CatalogFollower(ports, object_store), 0
    try:
        while not stop.is_set():
            try:
                if not await turn.try_acquire():
                    follower = CatalogFollower(ports, object_store)
                    await first_of(_BESIDE, stop.wait())
                    continue
                # Called off when told to stop: what is half done then is what a crash would leave.
                await first_of(None, follower.catch_up(), stop.wait())
                tries = 0
            except Exception as problem:
                _log.warning("the catalog is held up", **told_of(problem))
                await first_of(BACKOFF[min(tries, len(BACKOFF) - 1)], stop.wait())
                tries += 1
            else:
                if await first_of(_IDLE, stop.wait(), ports.events.wait_for_new(_IDLE)):
                    await first_of(_GATHER, stop.wait())
    finally:
        await turn.release()


class CatalogFollower:
    """Knows which tenants are to be done, and does them."""

    def __init__(self, ports: Ports, object_store: ObjectStore) -> None:
        self._ports, self._depot = ports, object_store
        self._cursor: str | None = None
        self._revision = -1
        self._shelves: dict[str, tuple[int, ...]] = {}
        self._slugs: frozenset[str] = frozenset()
        self._due: dict[str, TimestampMs] = {}
        """Tenants to be done as a whole, each with when it may be done."""
        self._parts: dict[str, dict[Scope, set[Path]]] = {}
        """What has changed of tenants of which the rest need not be done."""
        self._marks: dict[str, Marks] = {}
        self._tries: dict[str, int] = {}
        self._strangers = True
        """There may be something of tenants that are no longer there."""
        self._claimed = False

    async def catch_up(self) -> ExportResult:
        """Do what is due by now. Raises OSError where the place fails, and goes on next time.

        A tenant that fails by itself, or in part, is tried again later, and holds up no other.
        """
        done = ExportResult()
        if not self._claimed:
            await claim(self._depot)
            self._claimed = True
        await self._look()
        for id in [id for id in self._parts if id not in self._due]:
            await self._do_parts(id, done)
        now = self._ports.clock.now()
        for id in [id for id, at in self._due.items() if at <= now]:
            await self._do(id, done)
        if self._strangers:
            done.deleted += await remove_strangers(self._depot, self._slugs)
            self._strangers = False
        return done

    async def _do(self, id: str, done: ExportResult) -> None:
        before = len(done.failures)
        try:
            [tenant] = await self._ports.records.get(id, RecordType.TENANT, [id])
            if tenant is not None:
                self._marks[id] = await project(self._ports, self._depot, tenant, done)
        except OSError:
            raise
        except Exception as problem:
            _log.warning("a tenant's catalog is held up", tenant=id, **told_of(problem))
            self._put_off(id)
        else:
            self._settle(id, done.failures[before:])

    async def _do_parts(self, id: str, done: ExportResult) -> None:
        """Or have the tenant done as a whole, where parts of it will not do or cannot be had."""
        before, changed = len(done.failures), self._parts[id]
        marks = self._marks.get(id, {})
        parts = {
            scope: ChangedScope(marks.get(scope), frozenset(paths))
            for scope, paths in changed.items()
        }
        fits = False
        try:
            [tenant] = await self._ports.records.get(id, RecordType.TENANT, [id])
            if tenant is not None and len(parts) <= _MOST_PARTS:
                fits = await project_parts(self._ports, self._depot, tenant, parts, done)
        except OSError:
            raise
        except Exception as problem:
            _log.warning("a part of a catalog is held up", tenant=id, **told_of(problem))
        if fits:
            self._settle(id, done.failures[before:])
        else:
            self._due[id] = 0

    def _settle(self, id: str, failures: list[ExportFailure]) -> None:
        if failures:
            _log.warning("the catalog lacks objects", tenant=id, objects=len(failures))
        if any(failure.passing for failure in failures):
            self._put_off(id)
        else:
            self._tries.pop(id, None)
            self._due.pop(id, None)
            self._parts.pop(id, None)

    def _put_off(self, id: str) -> None:
        tries = self._tries.get(id, 0)
        self._tries[id] = tries + 1
        self._due[id] = self._ports.clock.now() + 1000 * BACKOFF[min(tries, len(BACKOFF) - 1)]

    async def _look(self) -> None:
        """What is read for a tenant is read after this, so that no change falls in between."""
        await self._look_at_events()
        revision = await self._ports.records.revision()
        if revision != self._revision:
            await self._look_at_records()
            self._revision = revision

    async def _look_at_events(self) -> None:
        if self._cursor is None:
            self._cursor = await self._ports.events.latest()
        while events := await self._ports.events.after(self._cursor, limit=_PAGE):
            for event in events:
                if event.type == UPDATED and event.scope and event.scope.kind in _KINDS:
                    self._note(event.tenant, event.scope, Path(event.payload["path"]))
            self._cursor = events[-1].cursor

    def _note(self, tenant: str, scope: Scope, path: Path) -> None:
        if tenant in self._due:
            self._due[tenant] = 0
        else:
            self._parts.setdefault(tenant, {}).setdefault(scope, set()).add(path)

    async def _look_at_records(self) -> None:
        """By the shelves of what a plan is made from; a tenant that is not known yet is due."""
        tenants = [tenant async for tenant in iter_records(self._ports, "", RecordType.TENANT)]
        found = await self._revisions(tenants)
        for id, collection_revisions in found.items():
            if self._shelves.get(id) != collection_revisions:
                self._due[id] = 0
        slugs = frozenset(tenant.body["slug"] for tenant in tenants)
        self._strangers |= bool(self._slugs - slugs)
        self._shelves, self._slugs = found, slugs

    async def _revisions(self, tenants: list[Record]) -> dict[str, tuple[int, ...]]:
        asks = [(tenant.id, record_type) for tenant in tenants for record_type in _NOUNS]
        told = await self._ports.records.collection_revisions(asks) if asks else ()
        width = len(_NOUNS)
        return {
            tenant.id: tuple(told[at * width : (at + 1) * width])
            for at, tenant in enumerate(tenants)
        }


async def first_of(seconds: float | None, *waits: Coroutine[Any, Any, Any]) -> bool:
    """Whether one of these was done before the time was over; the others are called off."""
    tasks = {asyncio.create_task(wait) for wait in waits}
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return any([task.result() for task in done])
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def told_of(problem: Exception) -> dict[str, str]:
    """What may be written down: a place's own words, of others no more than what they are."""
    told = {"error": type(problem).__name__}
    if isinstance(problem, OSError | Refusal):
        told["said"] = str(problem)[:500]
    return told
