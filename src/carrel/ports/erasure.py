"""Deletion of content without a trace in the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, Protocol

from msgspec import Struct

from carrel.core.identifiers import Digest, Path, Scope, TimestampMs
from carrel.core.maintenance.text_columns import RowBatch, RowRewrite
from carrel.core.store.entry import Entry, Version
from carrel.core.store.record import Record
from carrel.ports.blobs import LargeBlobStore


class StoredVersion(Struct, frozen=True):
    """One version of a tenant, wherever it is."""

    scope: Scope
    version: Version
    is_head: bool
    position: tuple[int, str, int]
    """Order of all versions; see `Erasure.list_versions`."""


class VersionReplacement(Struct, frozen=True):
    """New content of one version that is not the head of its path."""

    scope: Scope
    path: Path
    version: int
    entry: Entry
    redacted: bool = False
    """Whether the whole content was replaced by a marker."""


class RecordWithKeys(Struct, frozen=True):
    record: Record
    unique_keys: tuple[str, ...]
    index_keys: tuple[str, ...]


class Erasure(Protocol):
    """Deletes what commits keep for ever: histories and the bytes of deleted rows."""

    async def erase_scopes(self, scopes: Sequence[Scope], at: TimestampMs) -> int:
        """Delete the files, histories and own contents of scopes; return the versions.

        Their runs keep status and times, but lose workflow, snapshot, variables and log; a running
        one is cancelled at this time.

        A scope's number and revision remain, so that no revision is used twice. Contents that other
        scopes refer to remain too. Large contents outside the database become unreferenced, and
        garbage collection deletes them. Unknown and empty scopes are ignored, so an interrupted
        call can be repeated.
        """

    async def erase_paths(self, paths: Sequence[tuple[Scope, Path]]) -> int:
        """Delete all versions of deleted paths; return how many. Live paths are ignored."""

    async def replace_versions(
        self, replacements: Sequence[VersionReplacement], at: TimestampMs
    ) -> int:
        """Replace the contents of versions and delete the old ones; return how many.

        Numbers, authors and times stay. Heads are ignored: a commit replaces them first. Old
        contents go at once, unless another version refers to them, in the database and in the
        large blob store.
        """

    async def list_versions(
        self, tenant: str, *, after: tuple[int, str, int] | None = None, limit: int = 200
    ) -> tuple[StoredVersion, ...]:
        """Return versions of all scopes of a tenant past a position, deletions included."""

    async def list_records(
        self, tenant: str, *, after: tuple[str, str] | None = None, limit: int = 500
    ) -> tuple[RecordWithKeys, ...]:
        """Return records of all types past a (type, id), with their keys."""

    async def rewrite_rows(
        self,
        tenant: str,
        table: str,
        rewrite: RowRewrite,
        *,
        after: tuple[Any, ...] | None = None,
        limit: int = 500,
        dry_run: bool = False,
    ) -> RowBatch:
        """Rewrite a table of `core.maintenance.text_columns`, a batch of rows past a key.

        The full-text index follows. A new id of a session goes into all rows that name it.
        `rewrite` may be called twice for a row.
        """

    async def delete_unreferenced(
        self, is_affected: Callable[[bytes], bool], before: TimestampMs
    ) -> int:
        """Delete affected contents that no version refers to; return how many.

        Those outside the database only if they were stored before a time, since the commit that
        refers to them may follow.
        """

    async def scrub(self, is_affected: Callable[[bytes], bool] | None = None) -> None:
        """Remove the bytes of deleted rows from the database's own files.

        If affected bytes remain, all files are rewritten, while writers wait. PostgreSQL does this
        itself, with VACUUM.
        """

    async def find_orphans(self) -> tuple[tuple[str, str], ...]:
        """Return tenant and id of deleted agents that still have files or sessions.

        An agent is deleted if it has no record and the audit says `delete an agent`; a lost record
        alone deletes nothing.
        """


async def delete_affected_objects(
    objects: LargeBlobStore,
    referenced: Set[bytes],
    is_affected: Callable[[bytes], bool],
    before: TimestampMs,
) -> int:
    """Delete affected contents outside the database that have no row; return how many."""
    suspects = [digest async for digest, _ in objects.list_trash()]
    suspects += [digest async for digest, _, at in objects.list_blobs() if at < before]
    deleted = 0
    for digest in suspects:
        if bytes.fromhex(digest.removeprefix("sha256:")) in referenced:
            continue
        if await _is_object_affected(objects, digest, is_affected):
            await objects.discard([digest])
            await objects.delete([digest])
            deleted += 1
    return deleted


async def _is_object_affected(
    objects: LargeBlobStore, digest: Digest, is_affected: Callable[[bytes], bool]
) -> bool:
    """Search an object part by part, with an overlap of one part."""
    previous = b""
    try:
        async for part in objects.read_parts(digest):
            if is_affected(previous + part):
                return True
            previous = part
    except FileNotFoundError:
        return False
    return False
