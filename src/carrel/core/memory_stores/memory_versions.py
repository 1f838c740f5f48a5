"""Versions of memories, derived from those of files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from carrel.core.identifiers import Scope, TimestampMs
from carrel.core.memory_stores.memory_paths import is_memory
from carrel.core.store.entry import Head, TransferKind, Version, new_file_id, version_key


class MemoryOperation(StrEnum):
    CREATED = "created"
    MODIFIED = "modified"
    DELETED = "deleted"


class MemoryVersion(Struct, frozen=True):
    """One change of a memory. A rename is one, although it writes at two paths."""

    row: Version
    scope: Scope
    file_id: str
    operation: MemoryOperation

    @property
    def key(self) -> str:
        return version_key(self.scope, self.row.head)


class VersionFilter(Struct, frozen=True):
    """Which versions a list has."""

    file_id: str | None = None
    operation: MemoryOperation | None = None
    run: str | None = None
    """Run that wrote."""
    author: str | None = None
    since: TimestampMs | None = None
    until: TimestampMs | None = None

    def matches(self, version: MemoryVersion) -> bool:
        row, at = version.row, version.row.head.at
        return (
            self.file_id in (None, version.file_id)
            and self.operation in (None, version.operation)
            and self.run in (None, row.run)
            and (self.author is None or (self.author == row.author and row.run is None))
            and (self.since is None or self.since <= at)
            and (self.until is None or at <= self.until)
        )

    def is_complete_at(self, version: MemoryVersion) -> bool:
        """Whether no older version can match, because the memory began at this one."""
        begins = version.operation is MemoryOperation.CREATED
        return begins and self.file_id == version.file_id


def deleted_heads(rows: Sequence[Version]) -> Iterator[Head]:
    """Deletions among the versions of complete revisions, moves excluded."""
    moved = {
        (row.head.revision, row.source.path)
        for row in rows
        if row.source is not None and row.source.kind is TransferKind.MOVE
    }
    for row in rows:
        head = row.head
        is_deletion = not head.is_live and head.version > 1
        if is_deletion and (head.revision, head.path.text) not in moved:
            yield head


def memory_versions(
    scope: Scope, rows: Sequence[Version], deleted: Mapping[str, Head]
) -> Iterator[MemoryVersion]:
    """Versions of memories among those of files, newest first.

    `deleted` has what a deletion removed, by the key of the deletion.
    """
    for row in sorted(rows, key=lambda row: version_key(scope, row.head), reverse=True):
        head = row.head
        if is_memory(head):
            file_id = head.file_id(scope)
            is_first = file_id == new_file_id(scope, head.path, head.version)
            operation = MemoryOperation.CREATED if is_first else MemoryOperation.MODIFIED
            yield MemoryVersion(row, scope, file_id, operation)
            continue
        removed = deleted.get(version_key(scope, head))
        if removed is not None and is_memory(removed):
            yield MemoryVersion(row, scope, removed.file_id(scope), MemoryOperation.DELETED)
