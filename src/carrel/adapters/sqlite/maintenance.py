"""Maintenance of the SQLite store: snapshots, restore and garbage collection."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path as File
from typing import Any, Final

from msgspec.json import decode

from carrel.adapters.sqlite.commit_batch import CommitBatch
from carrel.adapters.sqlite.damage import DamagedPage
from carrel.adapters.sqlite.database import STATEMENTS, connect, transaction
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.sessions import index_batch
from carrel.adapters.sqlite.table_scan import TableScan
from carrel.adapters.sqlite.writer import Writer
from carrel.core import webhooks
from carrel.core.errors import Conflict
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.maintenance.tables import KEY_LENGTHS, TABLES
from carrel.core.outages import StorageFull
from carrel.core.search.full_text import SEARCHED_TYPES, index_terms
from carrel.core.store import idempotency
from carrel.ports import CorruptContent

_DELETE_BATCH_SIZE: Final = 500
"""Rows deleted per transaction, so that other writes need not wait long."""
_MAX_BATCH_BYTES: Final = 4 * 2**20
"""Size after which a batch of long rows is returned, however few they are."""
_COUNTER_STATEMENTS: Final = {
    "delete_content": "save_content_counter",
    "delete_event": "save_event_counter",
}
_MAX_DAMAGE_REPORTS: Final = 100
_TABLES_WITH_LONG_ROWS: Final = frozenset({"content", "delivery", "session_entry"})
Rows = Sequence[Sequence[Any]]


class SqliteSnapshot:
    def __init__(self, db: sqlite3.Connection, *, skip_damaged: bool) -> None:
        self._db, self._skip_damaged = db, skip_damaged
        self._damage: dict[str, list[str]] = {}

    async def count(self, table: str) -> int:
        sql = f"SELECT count(*) FROM {_source(table)}"
        try:
            [count] = await asyncio.to_thread(lambda: self._db.execute(sql).fetchone())
        except DamagedPage:
            return 0
        return int(count)

    async def rows(self, table: str, batch: int = 1000) -> AsyncIterator[Rows]:
        columns = TABLES[_check_table(table)]
        scan = TableScan(self._db, _source(table), tuple(columns), KEY_LENGTHS[table])
        self._damage[table] = scan.damage
        fetch = _fetch_bounded if table in _TABLES_WITH_LONG_ROWS else sqlite3.Cursor.fetchmany
        batches = scan.batches(fetch, batch)
        while rows := await asyncio.to_thread(next, batches, ()):
            yield rows
        if scan.damage and not self._skip_damaged:
            raise CorruptContent(f"table {table}: {scan.damage[0]}; run carrel doctor")

    async def find_damage(self) -> Sequence[tuple[str, str]]:
        unreadable = [
            (f"table {table}", text) for table, texts in self._damage.items() for text in texts
        ]
        return [*unreadable, *await asyncio.to_thread(self._check_pages)]

    def _check_pages(self) -> Sequence[tuple[str, str]]:
        try:
            texts = self._db.execute(f"PRAGMA integrity_check({_MAX_DAMAGE_REPORTS})").fetchall()
        except sqlite3.DatabaseError as error:
            texts = [(str(error),)]
        return [("database file", text) for (text,) in texts if text != "ok"]


class SqliteMaintenance:
    def __init__(self, file: File, reader: Reader, writer: Writer) -> None:
        self._file, self._reader, self._writer = file, reader, writer

    async def ping(self) -> None:
        self._reader.db.execute(STATEMENTS["migrations"]).fetchone()
        if self._writer.is_disk_full():
            raise StorageFull("database")

    async def keep_reserve(self) -> None:
        await asyncio.to_thread(self._writer.reserve.fill)

    @asynccontextmanager
    async def snapshot(self, *, skip_damaged: bool = False) -> AsyncIterator[SqliteSnapshot]:
        with closing(connect(self._file)) as db:  # closing ends the transaction, even a failed one
            db.execute("BEGIN DEFERRED")
            db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            yield SqliteSnapshot(db, skip_damaged=skip_damaged)

    async def load(self, rows: AsyncIterator[tuple[str, Rows]]) -> None:
        with closing(connect(self._file)) as db, transaction(db, "IMMEDIATE"):
            if db.execute("SELECT 1 FROM scope UNION ALL SELECT 1 FROM record LIMIT 1").fetchone():
                raise Conflict("the store is not empty; restore needs an empty store")
            async for table, batch in rows:
                columns = TABLES[_check_table(table)]
                placeholders = ", ".join("?" for _ in columns)
                sql = (
                    f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({placeholders})"
                )
                await asyncio.to_thread(_insert, db, sql, batch)
            db.execute(STATEMENTS["save_content_counter"])
            db.execute(STATEMENTS["save_event_counter"])
            await asyncio.to_thread(_index_session_entries, db)
            await asyncio.to_thread(_index_records, db)

    async def collect(
        self, now: TimestampMs, grace_ms: int, event_retention_ms: int
    ) -> Mapping[str, int]:
        """Find garbage with a reader, then delete it in batches.

        Content that was unreferenced when found cannot become referenced: a commit that refers to
        stored content expects that a path still has it.
        """
        return {
            "versions": await self._collect_versions(),
            "contents": await self._collect(
                "unreferenced_contents", now - grace_ms, "delete_content"
            ),
            "receipts": await self._delete_before(
                "delete_expired_idempotency_keys", now - idempotency.RETENTION_MS
            ),
            "attempts": await self._delete_before(
                "delete_old_attempts", now - webhooks.RETENTION_MS
            ),
            "deliveries": await self._delete_before(
                "delete_old_deliveries", now - webhooks.RETENTION_MS
            ),
            "events": await self._collect(
                "expired_events", now - event_retention_ms, "delete_event"
            ),
        }

    async def reindex(self) -> int:
        return await self._writer.submit(lambda db, _: _index_records(db), is_long=True)

    async def referenced_digests(self) -> frozenset[Digest]:
        rows = await self._reader.scan(
            lambda db: db.execute(STATEMENTS["external_digests"]).fetchall()
        )
        return frozenset(Digest("sha256:" + row[0].hex()) for row in rows)

    async def migrations(self) -> tuple[str, ...]:
        return tuple(
            name for (name,) in self._reader.db.execute(STATEMENTS["migrations"]).fetchall()
        )

    async def _collect_versions(self) -> int:
        """Repeat until nothing is left, since one scan returns a bounded number of rows."""
        total, deleted = 0, 1
        while deleted:
            deleted = await self._delete("prune_version", await self._find("prunable_versions"))
            total += deleted
        return total

    async def _collect(self, select: str, before: TimestampMs, delete: str) -> int:
        return await self._delete(delete, await self._find(select, before))

    async def _find(self, statement: str, *parameters: Any) -> Rows:
        return await self._reader.scan(
            lambda db: db.execute(STATEMENTS[statement], parameters).fetchall()
        )

    async def _delete(self, statement: str, keys: Rows) -> int:
        batches = (
            keys[start : start + _DELETE_BATCH_SIZE]
            for start in range(0, len(keys), _DELETE_BATCH_SIZE)
        )
        return sum(
            [
                await self._writer.submit(
                    partial(_delete_rows, statement, batch), is_long=True, frees_space=True
                )
                for batch in batches
            ]
        )

    async def _delete_before(self, statement: str, before: TimestampMs) -> int:
        return await self._writer.submit(
            lambda db, _: db.execute(STATEMENTS[statement], (before,)).rowcount,
            is_long=True,
            frees_space=True,
        )


def _delete_rows(statement: str, keys: Rows, db: sqlite3.Connection, _: CommitBatch) -> int:
    if statement in _COUNTER_STATEMENTS:  # keep the counter: the newest id must not be reused
        db.execute(STATEMENTS[_COUNTER_STATEMENTS[statement]])
    return db.executemany(STATEMENTS[statement], keys).rowcount


def _insert(db: sqlite3.Connection, sql: str, rows: Rows) -> None:
    """Insert rows in a helper, so that the cursor is finalized here.

    Finalized later in another thread, it would reset the next statement.
    """
    db.executemany(sql, rows)


def rebuild_indexes(db: sqlite3.Connection) -> None:
    """Rebuild all full-text indexes."""
    _index_session_entries(db)
    _index_records(db)


def _index_session_entries(db: sqlite3.Connection) -> None:
    """Rebuild the full-text index of session entries."""
    position, count = index_batch(db, None, _DELETE_BATCH_SIZE)
    while count:
        position, count = index_batch(db, position, _DELETE_BATCH_SIZE)


def _index_records(db: sqlite3.Connection) -> int:
    """Rebuild the search terms of records; return their number."""
    db.execute(STATEMENTS["delete_all_search_terms"])
    count = 0
    for record_type in sorted(SEARCHED_TYPES):
        for tenant, _, index_key, id, body in db.execute(
            STATEMENTS["index_keys_with_bodies"], (record_type,)
        ):
            rows = [
                (tenant, record_type, index_key, term, id)
                for term in index_terms(record_type, decode(body))
            ]
            count += db.executemany(STATEMENTS["add_search_term"], rows).rowcount if rows else 0
    return count


def _check_table(table: str) -> str:
    """Return the table name if known: names cannot be bound as parameters."""
    if table not in TABLES:
        raise KeyError(table)
    return table


def _source(table: str) -> str:
    """Return the FROM clause of a table; counters include the values in use."""
    if _check_table(table) != "counter":
        return table
    return (
        f"(SELECT name, value FROM ({STATEMENTS['counters'].rstrip().rstrip(';')}) WHERE value > 0)"
    )


def _fetch_bounded(cursor: sqlite3.Cursor, max_rows: int) -> Rows:
    rows: list[Sequence[Any]] = []
    size = 0
    while len(rows) < max_rows and size < _MAX_BATCH_BYTES:
        row = cursor.fetchone()
        if row is None:
            break
        rows.append(row)
        size += sum(len(value) for value in row if type(value) is bytes)
    return rows
