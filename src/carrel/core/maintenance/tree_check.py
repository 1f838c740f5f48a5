"""Consistency check of trees: entries against their versions and contents."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind, TimestampMs
from carrel.core.maintenance.findings import FindingList
from carrel.core.maintenance.id_counts import IdCounts
from carrel.core.policy import Policy

Row = Sequence[Any]

CLOCK_SKEW_MS: Final[TimestampMs] = 300_000
"""Maximum clock difference between two server processes."""
_USED_BIT: Final = 1


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """A tenant's policy and when it last changed; an earlier one may have pruned more."""

    policy: Policy = field(default_factory=Policy)
    changed_at: TimestampMs | None = None


class ContentUsage:
    """Contents by row id, and which of them are referenced."""

    def __init__(self) -> None:
        self._rows = IdCounts()

    def add(self, id: int, digest: bytes, size: int, *, used: bool) -> None:
        self._rows[id] = _fingerprint(digest, size) | used

    def mark_used(self, id: int) -> bool:
        """Mark a content as referenced; False if it does not exist."""
        fingerprint = self._rows[id]
        if fingerprint:
            self._rows[id] = fingerprint | _USED_BIT
        return bool(fingerprint)

    def matches(self, id: int, digest: bytes | None, size: int | None) -> bool:
        return self._rows[id] & ~_USED_BIT == _fingerprint(digest, size)

    def count_unused(self) -> int:
        return sum(not number & _USED_BIT for _, number in self._rows.items())


def _fingerprint(digest: bytes | None, size: int | None) -> int:
    """Fingerprint valid within this process; never 0, and the lowest bit is free."""
    return (hash((digest, size)) & (1 << 61) - 1) << 2 | 2


class TreeCheck:
    """Receives rows in key order: scope, entries, each followed by its versions."""

    def __init__(
        self,
        findings: FindingList,
        contents: ContentUsage,
        retention: Mapping[str, RetentionPolicy],
        run_revisions: Mapping[int, Iterable[int]],
    ) -> None:
        self._findings, self._contents = findings, contents
        self._retention, self._run_revisions = retention, run_revisions
        self._scope: Row | None = None
        self._scope_revision = self._max_versions = 0
        self._policy_changed_at: TimestampMs | None = None
        self._snapshot_revisions: Sequence[int] = ()
        self._files = self._size = 0
        self._path: str | None = None
        self._entry: Row | None = None
        self._version = self._revision = 0

    def check_scope(self, row: Row) -> None:
        self._end_scope()
        self._begin_scope(row)

    def check_entry(self, row: Row) -> None:
        if not self._is_in_current_scope(row):
            self._findings.error(f"entry {row[1]} of scope {row[0]}", "the scope is missing")
            return
        self._begin_path(row[1], row)
        content, digest, size = row[5:8]
        if not _is_consistent(content, digest, size):
            self._error("the entry has only some of content, digest and size")
        if content is not None:
            self._files += 1
            self._size += size or 0
        try:
            parsed = Path(row[1]).text
        except ValidationError:
            parsed = None
        if parsed != row[1]:
            self._error("is not a normalized path")

    def check_version(self, row: Row) -> None:
        _, path, version, revision = row[:4]
        if not self._is_in_current_scope(row):
            self._findings.error(
                f"version {version} of {path} of scope {row[0]}", "the scope is missing"
            )
            return
        if path != self._path:
            self._begin_path(path, None)
            self._error("has versions but no entry")
        if version > self._version + 1:
            self._check_gap(row)
        if revision < self._revision:
            self._error(f"version {version} has a lower revision than its predecessor")
        if revision > self._scope_revision:
            self._error(f"version {version} has a revision that the scope has not reached")
        self._check_content(row)
        self._compare_with_entry(row)
        self._version, self._revision = version, revision

    def finish(self) -> None:
        self._end_scope()

    def _is_in_current_scope(self, row: Row) -> bool:
        return self._scope is not None and row[0] == self._scope[0]

    def _begin_scope(self, row: Row) -> None:
        self._scope, self._path, self._entry = row, None, None
        self._files = self._size = self._version = self._revision = 0
        id, tenant, kind, name, self._scope_revision = row[:5]
        retention = self._retention.get(tenant, RetentionPolicy())
        self._max_versions = retention.policy.limits_of(
            Scope(tenant, ScopeKind(kind), name)
        ).max_versions
        self._policy_changed_at = retention.changed_at
        self._snapshot_revisions = sorted(self._run_revisions.get(id, ()))

    def _end_scope(self) -> None:
        self._end_path()
        if self._scope is None:
            return
        files, size = self._scope[5:7]
        if (files, size) != (self._files, self._size):
            text = f"states {files} files of {size} bytes; found {self._files} of {self._size}"
            self._findings.error(_scope_name(self._scope), text)

    def _begin_path(self, path: str, entry: Row | None) -> None:
        self._end_path()
        self._path, self._entry = path, entry
        self._version = self._revision = 0

    def _end_path(self) -> None:
        if self._entry is not None and self._version < self._entry[2]:
            self._error(f"is at version {self._entry[2]}, which is missing from its history")

    def _compare_with_entry(self, row: Row) -> None:
        if self._entry is None:
            return
        if row[2] > self._entry[2]:
            self._error(f"is at version {self._entry[2]}, but has a version {row[2]}")
        elif row[2] == self._entry[2] and (*row[:10], *row[13:16], *row[17:19]) != tuple(
            self._entry
        ):
            self._error("differs from its newest version")

    def _check_content(self, row: Row) -> None:
        version, content, digest, size, base = row[2], *row[5:9]
        if not _is_consistent(content, digest, size):
            self._error(f"version {version} has only some of content, digest and size")
        elif content is not None and not self._contents.mark_used(content):
            self._error(f"the content of version {version} is missing")
        elif content is not None and not self._contents.matches(content, digest, size):
            self._error(f"the content of version {version} does not match its digest or size")
        if base is not None and not self._contents.mark_used(base):
            self._error(f"the base content of version {version} is missing")

    def _check_gap(self, row: Row) -> None:
        """Check whether the versions missing before this one may have been pruned.

        None of the newest may be missing, unless an earlier policy pruned them. Older ones may be
        missing unless a kept run can see them. The revisions of missing versions are unknown, but
        each has its own: if fewer revisions than missing versions follow a snapshot, the snapshot
        saw one of them.
        """
        _, _, version, revision, timestamp = row[:5]
        newest = self._entry[2] if self._entry else version
        policy_applies = (
            self._policy_changed_at is None or timestamp > self._policy_changed_at + CLOCK_SKEW_MS
        )
        first_missing = max(self._version, newest - self._max_versions) + 1
        if first_missing < version and policy_applies:
            self._error(f"{_format_span(first_missing, version - 1)} missing")
            return
        index = bisect_left(self._snapshot_revisions, revision)
        snapshot_revision = self._snapshot_revisions[index - 1] if index else -1
        if (
            snapshot_revision >= self._revision
            and revision - 1 - snapshot_revision < version - 1 - self._version
        ):
            span = _format_span(self._version + 1, version - 1)
            self._error(f"{span} missing, although a kept run can see one")

    def _error(self, text: str) -> None:
        assert self._scope is not None
        self._findings.error(f"{_scope_name(self._scope)} {self._path}", text)


def _is_consistent(content: object, digest: object, size: object) -> bool:
    """Whether all three are present or, for a tombstone, all absent."""
    return len({content is None, digest is None, size is None}) == 1


def _scope_name(scope: Row) -> str:
    _, tenant, kind, name = scope[:4]
    return f"{kind} {name} of {tenant}"


def _format_span(first: int, last: int) -> str:
    return f"version {first} is" if first == last else f"versions {first} to {last} are"
