"""Erases scopes from the SQLite file, the bytes of deleted rows included.

Every connection overwrites deleted rows (`secure_delete`). Two places keep copies: the segments of
the full-text index, which are merged, and the write-ahead log, which is truncated.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path as File
from typing import Any, Final

from carrel.adapters.sqlite.database import STATEMENTS, connect, transaction
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.reserve import DiskReserve
from carrel.adapters.sqlite.write_lock import WriteLock
from carrel.core.identifiers import Scope, TimestampMs
from carrel.core.outages import StorageFull

_BATCH_SIZE: Final = 500
_MERGE_DONE_CHANGES: Final = 2
"""A merge step with fewer changes had nothing left to merge."""
_TRUNCATE_TIMEOUT_MS: Final = 1000
_ERASE_STATEMENTS: Final = (
    *("save_event_counter", "erase_run_events", "erase_run_layers", "release_runs"),
    *("erase_entries", "erase_versions", "empty_scope"),
)


class SqliteErasure:
    """Uses its own connections, so that the writer's and readers' caches are renewed."""

    def __init__(self, file: File, reader: Reader) -> None:
        self._file, self._reader = file, reader

    async def erase_scopes(self, scopes: Sequence[Scope], at: TimestampMs) -> int:
        return await asyncio.to_thread(self._run, lambda: self._erase(scopes, at))

    async def scrub(self) -> None:
        await asyncio.to_thread(self._run, self._scrub)

    async def find_orphans(self) -> tuple[tuple[str, str], ...]:
        rows = await self._reader.scan(lambda db: db.execute(STATEMENTS["orphans"]).fetchall())
        return tuple((tenant, agent) for tenant, agent in rows)

    def _run(self, work: Callable[[], int]) -> int:
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

        They cannot become referenced: a commit that refers to stored content expects that a path
        still has it.
        """
        for start in range(0, len(ids), _BATCH_SIZE):
            batch = json.dumps(ids[start : start + _BATCH_SIZE])
            with self._connection() as db, transaction(db):
                unreferenced = db.execute(STATEMENTS["unreferenced_among"], (batch,)).fetchall()
                db.execute(STATEMENTS["save_content_counter"])
                db.executemany(STATEMENTS["delete_content"], unreferenced)

    def _scrub(self) -> int:
        self._merge_index("begin_index_merge")
        while self._merge_index("continue_index_merge") >= _MERGE_DONE_CHANGES:
            pass
        with self._connection() as db:
            db.execute(f"PRAGMA busy_timeout = {_TRUNCATE_TIMEOUT_MS}")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return 0

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
