"""What a memory store remembers, and the log that every change of it is written to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from carrel.core.identifiers import Digest, Path, Scope, ScopeKind, TimestampMs
from carrel.core.memory.recall import Recall
from carrel.core.retention import keeps_all, prunable
from carrel.core.runs import Run
from carrel.core.sessions import Session, TranscriptEntry
from carrel.core.store.event import Event, EventDraft
from carrel.core.store.idempotency import StoredResponse
from carrel.core.store.record import AuditEntry, Record, RecordType
from carrel.core.store.tree import Entry, Head, IdempotencyKey, Version
from carrel.core.webhooks import Delivery, DeliveryAttempt

RecordKey = tuple[str, RecordType, str]


@dataclass(slots=True)
class ScopeHistory:
    """All that one scope has said and not yet lost to pruning."""

    revision: int = 0
    files: int = 0
    size: int = 0
    paths: dict[Path, list[Version]] = field(default_factory=dict)
    """Oldest first."""

    def head(self, path: Path) -> Head | None:
        versions = self.paths.get(path)
        return versions[-1].head if versions else None

    def head_at(self, path: Path, revision: int) -> Head | None:
        said = (v.head for v in reversed(self.paths.get(path, ())) if v.head.revision <= revision)
        return next(said, None)

    def add(self, version: Version) -> None:
        was = self.head(version.head.path)
        for entry, sign in ((was and was.entry, -1), (version.head.entry, 1)):
            if entry:
                self.files += sign
                self.size += sign * entry.blob.size
        self.paths.setdefault(version.head.path, []).append(version)

    def prune(self, path: Path, keep: int, held: frozenset[int]) -> None:
        versions = self.paths[path]
        said = [(version.head.version, version.head.revision) for version in versions]
        gone = set(prunable(said, keep, held))
        self.paths[path] = [version for version in versions if version.head.version not in gone]


@dataclass(slots=True)
class IdempotencyClaim:
    """A receipt on its way: claimed, perhaps marked by a commit, perhaps settled."""

    fingerprint: str
    at: TimestampMs
    versions: tuple[int, ...] | None = None
    receipt: StoredResponse | None = None


@dataclass(slots=True)
class MemoryState:
    scopes: dict[Scope, ScopeHistory] = field(default_factory=dict)
    contents: dict[Digest, bytes] = field(default_factory=dict)

    records: dict[RecordKey, Record] = field(default_factory=dict)
    handles: dict[str, RecordKey] = field(default_factory=dict)
    links: dict[RecordKey, tuple[str, ...]] = field(default_factory=dict)
    shelves: dict[tuple[str, RecordType], int] = field(default_factory=dict)
    records_revision: int = 0
    deeds: list[AuditEntry] = field(default_factory=list)
    used: dict[str, TimestampMs] = field(default_factory=dict)

    runs: dict[str, Run] = field(default_factory=dict)
    run_events: dict[str, int] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    sleepers: set[asyncio.Future[None]] = field(default_factory=set)

    receipts: dict[IdempotencyKey, IdempotencyClaim] = field(default_factory=dict)
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    attempts: dict[str, list[DeliveryAttempt]] = field(default_factory=dict)
    mark: str | None = None
    sessions: dict[tuple[str, str], Session] = field(default_factory=dict)
    said: dict[tuple[str, str], list[TranscriptEntry]] = field(default_factory=dict)
    words: dict[tuple[str, str, int], tuple[str, ...]] = field(default_factory=dict)
    recalls: dict[tuple[str, str, str, str], Recall] = field(default_factory=dict)
    """By tenant, agent, memory and id."""

    def told(self, scope: Scope) -> ScopeHistory:
        return self.scopes.get(scope) or ScopeHistory()

    def entry(self, scope: Scope, path: Path) -> Entry | None:
        head = self.told(scope).head(path)
        return head.entry if head else None

    def keeps_all(self, scope: Scope) -> bool:
        agent = self.records.get((scope.tenant, RecordType.AGENT, scope.name))
        return scope.kind is ScopeKind.AGENT and keeps_all(agent.body if agent else None)

    def held(self, scope: Scope) -> frozenset[int]:
        """The revisions of a scope at which kept runs stand."""
        layers = (layer for run in self.runs.values() for layer in run.snapshot)
        return frozenset(layer.revision for layer in layers if layer.scope == scope)

    def log(
        self,
        type: str,
        scope: Scope,
        at: TimestampMs,
        payload: Mapping[str, Any],
        run: str | None = None,
    ) -> None:
        self._log(EventDraft(scope.tenant, type, payload), scope, at, run)

    def tell(self, event: EventDraft, at: TimestampMs, run: str | None) -> None:
        """Log what a commit wants told."""
        self._log(event, None, at, run)

    def _log(self, told: EventDraft, scope: Scope | None, at: TimestampMs, run: str | None) -> None:
        number = str(len(self.events) + 1)
        place = self._place(told.tenant, run)
        payload = {**told.payload}
        self.events.append(
            Event(number, f"ev_{number}", told.type, told.tenant, at, payload, scope, run, place)
        )
        for sleeper in self.sleepers:
            if not sleeper.done():
                sleeper.set_result(None)

    def _place(self, tenant: str, run: str | None) -> int | None:
        """The next place in a run's log, or None where this tenant has no such run."""
        known = self.runs.get(run or "")
        if known is None or known.tenant != tenant:
            return None
        self.run_events[known.id] = self.run_events.get(known.id, 0) + 1
        return self.run_events[known.id]
