"""Erases scopes from the SQLite file, the bytes of deleted rows included.

Every connection overwrites deleted rows (`secure_delete`). Three places keep copies: the segments
of the full-text index, which are merged; the write-ahead log, which is truncated; and pages from
which SQLite moved a row, which only VACUUM removes.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path as File
from typing import Any, Final, TypeVar

from carrel.adapters.sqlite.database import STATEMENTS, connect, transaction
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.reserve import DiskReserve
from carrel.adapters.sqlite.row_rewriting import (
    Changes,
    apply_changes,
    erase_path,
    find_changes,
    list_records,
    list_versions,
    replace_versions,
)
from carrel.adapters.sqlite.write_lock import WriteLock
from carrel.core.identifiers import Digest, Path, Scope, TimestampMs
from carrel.core.maintenance.text_columns import RowBatch, RowRewrite
from carrel.core.outages import StorageFull
from carrel.ports import LargeBlobStore
from carrel.ports.erasure import (
    RecordWithKeys,
    StoredVersion,
    VersionReplacement,
    delete_affected_objects,
)

_BATCH_SIZE: Final = 500
_BODY_BATCH_SIZE: Final = 64
"""Contents in memory at once."""
Result = TypeVar("Result")
_MERGE_DONE_CHANGES: Final = 2
"""A merge step with fewer changes had nothing left to merge."""
_TRUNCATE_TIMEOUT_MS: Final = 1000
_FILE_PART_BYTES: Final = 4 * 2**20
_FILE_OVERLAP_BYTES: Final = 64 * 2**10
_ERASE_STATEMENTS: Final = (
    *("save_event_counter", "erase_run_events", "erase_run_layers", "release_runs"),
    *("erase_entries", "erase_versions", "empty_scope"),
)


class SqliteErasure:
    """Erasure of scopes and texts, over its own connections so that other caches are renewed."""

    def __init__(self, file: File, reader: Reader, objects: LargeBlobStore | None = None) -> None:
        self._file, self._reader, self._objects = file, reader, objects

    async def erase_scopes(self, scopes: Sequence[Scope], at: TimestampMs) -> int:
        return await asyncio.to_thread(self._run, lambda: self._erase(scopes, at))

    async def erase_paths(self, paths: Sequence[tuple[Scope, Path]]) -> int:
        return await self._delete_old(lambda db: self._erase_paths(db, paths))

    async def replace_versions(
        self, replacements: Sequence[VersionReplacement], at: TimestampMs
    ) -> int:
        return await self._delete_old(lambda db: replace_versions(db, replacements, at))

    async def list_versions(
        self, tenant: str, *, after: tuple[int, str, int] | None = None, limit: int = 200
    ) -> tuple[StoredVersion, ...]:
        position = after or (0, "", 0)
        return await self._reader.scan(lambda db: list_versions(db, tenant, *position, limit))

    async def list_records(
        self, tenant: str, *, after: tuple[str, str] | None = None, limit: int = 500
    ) -> tuple[RecordWithKeys, ...]:
        position = after or ("", "")
        return await self._reader.scan(lambda db: list_records(db, tenant, *position, limit))

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
        request = (tenant, table, rewrite, after, limit)
        position, count, changes = await self._reader.scan(lambda db: find_changes(db, *request))
        if changes and not dry_run:
            changes = await asyncio.to_thread(self._run, lambda: self._rewrite(request))
        return RowBatch(position, count, tuple(key for key, _ in changes))

    async def delete_unreferenced(
        self, is_affected: Callable[[bytes], bool], before: TimestampMs
    ) -> int:
        deleted = await asyncio.to_thread(self._run, lambda: self._delete_affected(is_affected))
        if self._objects is None:
            return deleted
        referenced = await self._reader.scan(
            lambda db: {row[0] for row in db.execute(STATEMENTS["external_digests"])}
        )
        return deleted + await delete_affected_objects(
            self._objects, referenced, is_affected, before
        )

    async def scrub(self, is_affected: Callable[[bytes], bool] | None = None) -> None:
        await asyncio.to_thread(self._run, lambda: self._scrub(is_affected))

    async def find_orphans(self) -> tuple[tuple[str, str], ...]:
        rows = await self._reader.scan(lambda db: db.execute(STATEMENTS["orphans"]).fetchall())
        return tuple((tenant, agent) for tenant, agent in rows)

    async def _delete_old(
        self, work: Callable[[sqlite3.Connection], tuple[int, Sequence[int]]]
    ) -> int:
        """Run work in a transaction, then delete the contents that it names."""

        def change() -> tuple[int, Sequence[str]]:
            with self._connection() as db, transaction(db):
                count, contents = work(db)
                rows = db.execute(STATEMENTS["content_digests"], (json.dumps(contents),)).fetchall()
            self._delete_contents(contents)
            digests = [digest.hex().upper() for _, digest, is_external in rows if is_external]
            with self._connection() as db:
                used = db.execute(STATEMENTS["external_among"], (json.dumps(digests),)).fetchall()
            return count, sorted(set(digests) - {digest for (digest,) in used})

        count, digests = await asyncio.to_thread(self._run, change)
        if digests and self._objects is not None:
            unused = [Digest(f"sha256:{digest.lower()}") for digest in digests]
            await self._objects.discard(unused)
            await self._objects.delete(unused)
        return count

    def _erase_paths(
        self, db: sqlite3.Connection, paths: Sequence[tuple[Scope, Path]]
    ) -> tuple[int, Sequence[int]]:
        versions, contents = 0, set[int]()
        for scope, path in paths:
            row = db.execute(STATEMENTS["scope"], (scope.tenant, scope.kind, scope.name)).fetchone()
            count, ids = erase_path(db, row[0], path.text) if row else (0, [])
            versions += count
            contents.update(ids)
        return versions, sorted(contents)

    def _rewrite(self, request: tuple[str, str, RowRewrite, Any, int]) -> Changes:
        with self._connection() as db, transaction(db):
            _, _, changes = find_changes(db, *request)
            apply_changes(db, request[1], changes)
            return changes

    def _delete_affected(self, is_affected: Callable[[bytes], bool]) -> int:
        last, affected = 0, list[int]()
        while True:
            with closing(connect(self._file)) as db:
                rows = db.execute(
                    STATEMENTS["unreferenced_bodies"], (last, _BODY_BATCH_SIZE)
                ).fetchall()
            affected += [id for id, body in rows if is_affected(body)]
            if len(rows) < _BODY_BATCH_SIZE:
                break
            last = rows[-1][0]
        self._delete_contents(affected)
        return len(affected)

    def _run(self, work: Callable[[], Result]) -> Result:
        """Run work; on a full disk release the reserve and run it again."""
        reserve = DiskReserve(self._file)
        try:
            return work()
        except sqlite3.Error as problem:
            outage = reserve.translate(problem)
            if isinstance(outage, StorageFull) and reserve.release():
                return work()
            raise outage from problem

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        with (
            closing(WriteLock(self._file)) as lock,
            lock.hold(),
            closing(connect(self._file)) as db,
        ):
            yield db

    def _erase(self, scopes: Sequence[Scope], at: TimestampMs) -> int:
        erased = 0
        for scope in scopes:
            with self._connection() as db:
                row = db.execute(
                    STATEMENTS["scope"], (scope.tenant, scope.kind, scope.name)
                ).fetchone()
                if row is None:
                    continue
                with transaction(db):
                    contents, versions = _erase_scope(db, row[0], at)
            erased += versions
            self._delete_contents(contents)
        return erased

    def _delete_contents(self, ids: Sequence[int]) -> None:
        """Delete contents that no version refers to.

        A commit that refers to one of them later is refused (`CommitBatch.flush`).
        """
        for start in range(0, len(ids), _BATCH_SIZE):
            batch = json.dumps(ids[start : start + _BATCH_SIZE])
            with self._connection() as db, transaction(db):
                unreferenced = db.execute(STATEMENTS["unreferenced_among"], (batch,)).fetchall()
                db.execute(STATEMENTS["save_content_counter"])
                db.executemany(STATEMENTS["delete_content"], unreferenced)

    def _scrub(self, is_affected: Callable[[bytes], bool] | None) -> int:
        self._merge_index("begin_index_merge")
        while self._merge_index("continue_index_merge") >= _MERGE_DONE_CHANGES:
            pass
        self._truncate_log()
        if is_affected is not None and _has_affected_bytes(self._file, is_affected):
            with self._connection() as db:
                db.execute("PRAGMA temp_store = FILE")  # not the whole database in memory
                db.execute("VACUUM")
            self._truncate_log()
        return 0

    def _truncate_log(self) -> None:
        with self._connection() as db:
            db.execute(f"PRAGMA busy_timeout = {_TRUNCATE_TIMEOUT_MS}")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _merge_index(self, statement: str) -> int:
        with self._connection() as db:
            before = db.total_changes
            db.execute(STATEMENTS[statement])
            return db.total_changes - before


def _erase_scope(db: sqlite3.Connection, id: Any, at: TimestampMs) -> tuple[Sequence[int], int]:
    """Delete the rows of a scope; return its contents and the number of versions."""
    contents = [content for (content,) in db.execute(STATEMENTS["contents_of_scope"], (id,))]
    parameters: dict[str, tuple[Any, ...]] = {"save_event_counter": (), "release_runs": (id, at)}
    versions = 0
    for name in _ERASE_STATEMENTS:
        count = db.execute(STATEMENTS[name], parameters.get(name, (id,))).rowcount
        versions = count if name == "erase_versions" else versions
    return contents, versions


def _has_affected_bytes(file: File, is_affected: Callable[[bytes], bool]) -> bool:
    """Search the database file, which keeps copies of rows that SQLite moved between pages."""
    previous = b""
    with file.open("rb") as database:
        while part := database.read(_FILE_PART_BYTES):
            if is_affected(previous + part):
                return True
            previous = part[-_FILE_OVERLAP_BYTES:]
    return False
