"""Commits: the only way in which trees and records change.

A commit states what was read (expects) and what to write (writes, changes); a store applies all of
it or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

from msgspec import Struct

from carrel.core.identifiers import Path, Scope, ScopeKind, TimestampMs
from carrel.core.path_spelling import is_variant
from carrel.core.store.entry import Entry, FileAttributes, Head, VersionSource, new_file_id
from carrel.core.store.event import RECORD_CHANGED, EventDraft
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import (
    EVENTED_TYPES,
    UNAUDITED_TYPES,
    CollectionRevision,
    KeyReference,
    RecordChange,
    RecordRevision,
    RecordType,
)
from carrel.core.store.tree import Tree


class Expect(Struct, frozen=True, gc=False):
    """Expectation about one path: its version (0: never existed) or whether it is a file."""

    scope: Scope
    path: Path
    version: int | None = None
    live: bool | None = None

    def holds(self, head: Head | None) -> bool:
        if self.version is not None and self.version != (head.version if head else 0):
            return False
        return self.live is None or self.live == bool(head and head.entry)


def expect_unchanged(tree: Tree, path: Path) -> Expect:
    """Expectation that a path is as `tree` shows it. Listings contain no tombstones."""
    head = tree.heads.get(path) or tree.directories.get(path)
    return Expect(tree.scope, path, head.version) if head else Expect(tree.scope, path, live=False)


class Write(Struct, frozen=True, gc=False):
    scope: Scope
    path: Path
    entry: Entry | None
    """None writes a tombstone: the path is deleted here, or inherited again."""
    version_offset: int = 0
    """Least offset of the new version on a stack: see Head. It never decreases."""
    directory: FileAttributes | None = None
    """Without an entry: makes the path a directory, which may be empty."""
    file_id: str | None = None
    """Id of the file that is moved here; None keeps the id of the path's file, or begins one."""
    source: VersionSource | None = None
    """Version that is moved or copied here."""
    reviewed: str | None = None
    """Offer that a person reviewed and did not take: see Head."""

    @property
    def is_deletion(self) -> bool:
        return self.entry is None and self.directory is None


def stored_file_id(write: Write, previous: Head | None) -> str | None:
    """File id that the head of a write stores, given the path's head before it."""
    if write.entry is None:
        return None
    if write.file_id is not None or previous is None:
        return write.file_id
    if previous.entry is not None:
        return previous.stored_file_id
    return new_file_id(write.scope, write.path, previous.version + 1)


class Quota(Struct, frozen=True, gc=False):
    """Limits that a scope must meet after a commit."""

    scope: Scope
    max_files: int
    """Checked only if a path is added, so files over a lowered limit can still change."""
    max_bytes: int | None = None
    """Total size of all live files."""


class ExpectPathFree(Struct, frozen=True, gc=False):
    """Expectation that `path` is free for a file.

    No parent is a file, nothing lies below it, and it is no directory. With `collides`, no other
    path collides with it.
    """

    path: Path
    scopes: tuple[Scope, ...]
    """Scopes that are checked together.

    Always satisfied if the path is a file in the first.
    """
    followers: str | None = None
    """Index key of the agents whose own files and pins are checked too.

    Empty means all agents and templates. The commit writes to the layer below them, so that none
    of them can get a path meanwhile.
    """
    collides: Callable[[Path], bool] | None = None
    """Whether a variant of the path is not allowed beside it; None allows all: see is_variant."""

    @property
    def reads_listing(self) -> bool:
        """Whether the check needs the paths of many scopes."""
        return self.followers is not None or self.collides is not None

    def find_occupants(self, rows: Iterable[Sequence[Any]]) -> Iterator[PathOccupant]:
        """Occupants among what a store lists.

        Rows are (kind, name, path) of a path above or below, and (None, None, path) of a path that
        may be a variant.
        """
        tenant = self.scopes[0].tenant
        for kind, name, text in rows:
            path = Path(text)
            if kind is not None and name is not None:
                yield PathOccupant(path, Scope(tenant, ScopeKind(kind), name))
            elif self.collides is not None and self.collides(path):
                yield PathOccupant(path)


class PathOccupant(Struct, frozen=True):
    """Live path that does not leave another one free."""

    path: Path
    scope: Scope | None = None
    """Scope of a path above or below; None for a variant."""


def first_occupant(
    occupants: Iterable[PathOccupant], deleted: AbstractSet[tuple[Scope, Path]]
) -> Path | None:
    """First occupant that is not among the paths that the commit deletes.

    A variant always counts, since another scope may have it too.
    """
    remaining = (
        occupant.path for occupant in occupants if (occupant.scope, occupant.path) not in deleted
    )
    return min(remaining, default=None)


class ExpectPathsUnchanged(Struct, frozen=True):
    """Expectation that paths of many scopes are as they were read, new ones included.

    For a decision that read whole scopes and depends on some of their paths only.
    """

    revisions: Mapping[Scope, int]
    """Revision at which each scope was read."""
    concerns: Callable[[Path], bool]
    """Whether the decision depends on a path."""

    def holds(self, changed: Iterable[str]) -> bool:
        """Whether the decision depends on none of the paths that changed."""
        return not any(self.concerns(Path(text)) for text in changed)


class Commit(Struct, frozen=True, gc=False):
    """Expectations and writes that a store applies atomically."""

    writes: tuple[Write, ...]
    author: str
    reason: str
    at: TimestampMs
    expects: tuple[Expect, ...] = ()
    collection_revisions: tuple[CollectionRevision, ...] = ()
    """Collections the decision read; the commit is refused if one has changed."""
    record_revisions: tuple[RecordRevision, ...] = ()
    """Single records the decision read; the commit is refused if one has changed."""
    changes: tuple[RecordChange, ...] = ()
    unchanged_paths: ExpectPathsUnchanged | None = None
    path_checks: tuple[ExpectPathFree, ...] = ()
    """Checked against the state before the commit, without the paths that it deletes."""
    quotas: tuple[Quota, ...] = ()
    max_versions: int = 100
    """Newest versions kept per path; the store prunes older ones that no kept run can read."""
    run: str | None = None
    """Run that writes; the events are also added to its log."""
    audit_subjects: tuple[str, ...] = ()
    """Records to name in the audit beside those that change, as `type/id`."""
    events: tuple[EventDraft, ...] = ()
    """Events to log after those of the writes, also in the run's log."""
    idempotency_key: IdempotencyKey | None = None
    """Marked with the resulting versions in the same transaction."""
    key: KeyReference | None = None
    """Key through which the author acts, for the audit."""
    action: str = ""
    """Name of the action, for the audit; empty: the reason up to its first colon or comma."""
    audited_tenant: str = ""
    """Tenant whose audit names the subjects, if nothing is written or changed."""

    @property
    def tenant(self) -> str:
        """Tenant of the first write, else of the first record change, else the audited one."""
        if self.writes:
            return self.writes[0].scope.tenant
        return self.changes[0].tenant if self.changes else self.audited_tenant

    @property
    def reads_listing(self) -> bool:
        """Whether a check reads the paths of whole scopes."""
        has_check = self.unchanged_paths is not None
        return has_check or any(check.reads_listing for check in self.path_checks)


def audit_subjects(commit: Commit) -> Mapping[str, tuple[str, ...]]:
    """Audit subjects of a commit by tenant."""
    subjects: dict[str, tuple[str, ...]] = {}
    for change in commit.changes:
        if change.type in UNAUDITED_TYPES:
            continue
        subjects[change.tenant] = (*subjects.get(change.tenant, ()), f"{change.type}/{change.id}")
    if commit.audit_subjects:
        tenant = commit.tenant
        subjects[tenant] = (*subjects.get(tenant, ()), *commit.audit_subjects)
    return subjects


def event_drafts(commit: Commit) -> tuple[EventDraft, ...]:
    """Events of a commit beside those of its writes."""
    changed = tuple(
        EventDraft(change.tenant, RECORD_CHANGED, {"noun": change.type.value, "id": change.id})
        for change in commit.changes
        if change.type in EVENTED_TYPES
    )
    return (*changed, *commit.events) if changed else commit.events


def only_deletes(commit: Commit) -> bool:
    """Whether a commit deletes files and records and writes none but what is left to erase."""
    return all(write.is_deletion for write in commit.writes) and all(
        change.body is None or change.type is RecordType.ERASURE for change in commit.changes
    )


class Applied(Struct, frozen=True, gc=False):
    heads: tuple[Head, ...]
    """Result of each write, in order."""


class ExpectationFailed(Struct, frozen=True, gc=False):
    """Not applied: an expectation did not hold."""

    expected: Expect | ExpectPathsUnchanged | CollectionRevision | RecordRevision | RecordChange
    current: Head | None = None
    """For an Expect: the current head."""
    unique_key: str | None = None
    """For a RecordChange: the unique key that another record has."""


class PathOccupied(Struct, frozen=True, gc=False):
    """Not applied: a new path is not free."""

    check: ExpectPathFree
    occupant: Path
    """Existing file above or below the path, a directory below or at it, or a variant of it."""

    @property
    def is_by_variant(self) -> bool:
        """Whether the occupant differs from the path only in its spelling."""
        return is_variant(self.check.path.text, self.occupant.text)


class QuotaExceeded(Struct, frozen=True, gc=False):
    """Not applied: the scope would exceed its quota."""

    quota: Quota
    files: int
    size: int
    """Bytes that the scope would have had."""


Outcome = Applied | ExpectationFailed | PathOccupied | QuotaExceeded
