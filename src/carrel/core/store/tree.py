"""What is stored, and the one way it changes.

A scope owns a tree: for each path it speaks of, an Entry. Trees change only by a Commit, which
says what it saw (expects) and what it wants (writes, changes); a store applies all of it or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from carrel.core.identifiers import Digest, Path, Scope, TimestampMs
from carrel.core.store.event import RECORD_CHANGED, EventDraft
from carrel.core.store.record import QUIET, TOLD, CollectionRevision, RecordChange

MARKDOWN = "text/markdown"


class Blob(Struct, frozen=True, eq=False, gc=False):
    """Content by name. ``ref`` says where a store keeps it, and only that store reads it."""

    digest: Digest
    size: int
    storage_ref: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Blob) and (self.digest, self.size) == (other.digest, other.size)

    def __ne__(self, other: object) -> bool:  # else the Struct's own, which knows only identity
        return not self == other

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Blob({self.digest!r}, {self.size})"


class Entry(Struct, frozen=True, gc=False):
    """What one scope says about one path.

    ``base`` is what lay beneath when this was written or last reviewed. Hence a pin is simply an
    entry whose blob equals its base, and an upstream change is any base that no longer holds.
    """

    blob: Blob
    base: Blob | None = None
    type: str = MARKDOWN


class Head(Struct, frozen=True, gc=False):
    """The latest that a scope said about a path; ``entry`` None is a tombstone."""

    path: Path
    version: int
    """From 1, rising by 1 with every change, tombstones included, never reused."""
    revision: int
    """The scope's revision at which this was said."""
    at: TimestampMs
    entry: Entry | None


class Version(Struct, frozen=True, gc=False):
    """One line of a path's history: what was said, and by whom, why and in which run."""

    head: Head
    by: str
    why: str
    run: str | None = None


class Tree(Struct, frozen=True, gc=False):
    scope: Scope
    revision: int
    """Rises with every commit to this scope, so equal revisions mean equal trees."""
    heads: Mapping[Path, Head]
    """What the reader asked for: live entries, and tombstones only of paths asked for by name."""

    def entry(self, path: Path) -> Entry | None:
        head = self.heads.get(path)
        return head.entry if head else None

    def version(self, path: Path) -> int:
        """The latest version of a path, 0 where nothing was ever said of it."""
        head = self.heads.get(path)
        return head.version if head else 0


class Expect(Struct, frozen=True, gc=False):
    """What a decision saw of one path: its version (0 = never was), or only whether it lives."""

    scope: Scope
    path: Path
    version: int | None = None
    live: bool | None = None

    def holds(self, found: Head | None) -> bool:
        if self.version is not None and self.version != (found.version if found else 0):
            return False
        return self.live is None or self.live == bool(found and found.entry)


def expect_unchanged(tree: Tree, path: Path) -> Expect:
    """That a path still is as a tree showed it; a listing shows nothing of one that was deleted."""
    head = tree.heads.get(path)
    return Expect(tree.scope, path, head.version) if head else Expect(tree.scope, path, live=False)


class Write(Struct, frozen=True, gc=False):
    scope: Scope
    path: Path
    entry: Entry | None
    """None leaves a tombstone, so that the path is absent here, or inherited again."""


class Quota(Struct, frozen=True, gc=False):
    """How much one scope may hold once a commit has been applied to it."""

    scope: Scope
    files: int
    """Refused only when the commit adds a path: what is over a lowered limit can still change."""
    size: int | None = None
    """Bytes of all live files together."""


class PathFree(Struct, frozen=True, gc=False):
    """That a new path is neither a directory nor within a file, as on a disk it could not be."""

    path: Path
    scopes: tuple[Scope, ...]
    """Of all of these; but where the path lives in the first, nothing is new and all is well."""


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """Names one request that must not be done twice."""

    tenant: str
    endpoint: str
    key: str


class Commit(Struct, frozen=True, gc=False):
    """What was seen and what is wanted, applied whole or not at all in one transaction."""

    writes: tuple[Write, ...]
    author: str
    reason: str
    at: TimestampMs
    expects: tuple[Expect, ...] = ()
    collection_revisions: tuple[CollectionRevision, ...] = ()
    """Records the decision rested on: it is refused if a shelf's revision has moved."""
    changes: tuple[RecordChange, ...] = ()
    path_checks: tuple[PathFree, ...] = ()
    """As things are before the commit."""
    quotas: tuple[Quota, ...] = ()
    max_versions: int = 100
    """How many versions of a path stay; one that a kept run can see always stays."""
    run: str | None = None
    """The run that writes; the events stand in its log too."""
    audit_subjects: tuple[str, ...] = ()
    """What the audit is to name beside the records that change, as ``noun/id``."""
    events: tuple[EventDraft, ...] = ()
    """Events that are told with it, after those of its writes; in the log of its run too."""
    idempotency_key: IdempotencyKey | None = None
    """Marked with the outcome in the same transaction, so a repeated request finds it."""


def audit_subjects(commit: Commit) -> Mapping[str, tuple[str, ...]]:
    """What the audit of each tenant is to name: nobody reads of another's."""
    found: dict[str, tuple[str, ...]] = {}
    for change in commit.changes:
        if change.type in QUIET:
            continue
        found[change.tenant] = (*found.get(change.tenant, ()), f"{change.type}/{change.id}")
    if commit.audit_subjects:
        tenant = commit.writes[0].scope.tenant
        found[tenant] = (*found.get(tenant, ()), *commit.audit_subjects)
    return found


def event_drafts(commit: Commit) -> tuple[EventDraft, ...]:
    """What is told beside its writes: of the records that it changes, and what it wants told."""
    changed = tuple(
        EventDraft(change.tenant, RECORD_CHANGED, {"noun": change.type.value, "id": change.id})
        for change in commit.changes
        if change.type in TOLD
    )
    return (*changed, *commit.events) if changed else commit.events


class Applied(Struct, frozen=True, gc=False):
    heads: tuple[Head, ...]
    """What each write became, in order."""


class ExpectationFailed(Struct, frozen=True, gc=False):
    """Not applied: this expectation no longer held."""

    expected: Expect | CollectionRevision | RecordChange
    found: Head | None = None
    """For an Expect, what is there instead."""
    handle: str | None = None
    """For a Change, the name that another record already has."""


class PathOccupied(Struct, frozen=True, gc=False):
    """Not applied: a new path found no room."""

    room: PathFree
    by: Path
    """What is there: a file that it would be within, or one within it."""


class QuotaExceeded(Struct, frozen=True, gc=False):
    """Not applied: it would have taken a scope over its quota."""

    quota: Quota
    files: int
    size: int
    """What the scope would have held."""


Outcome = Applied | ExpectationFailed | PathOccupied | QuotaExceeded
