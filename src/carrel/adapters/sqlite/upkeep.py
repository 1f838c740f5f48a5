"""Looking after the whole file: a consistent view of every row, filling an empty one, tidying."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path as File
from typing import Any

from carrel.adapters.sqlite.database import SQL, connect, transaction
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.writer import Writer
from carrel.core.archive import TABLES
from carrel.core.errors import Taken
from carrel.core.names import Digest, Moment
from carrel.ports import Objects

_DAY = 24 * 3600 * 1000
Rows = Sequence[Sequence[Any]]


class SqliteFrozen:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    async def count(self, table: str) -> int:
        _known(table)
        [count] = await asyncio.to_thread(
            lambda: self._db.execute(f"SELECT count(*) FROM {table}").fetchone()
        )
        return int(count)

    async def rows(self, table: str, batch: int = 1000) -> AsyncIterator[Rows]:
        columns = ", ".join(_known(table))
        found = await asyncio.to_thread(
            lambda: self._db.execute(f"SELECT {columns} FROM {table} ORDER BY {_order(table)}")
        )
        while rows := await asyncio.to_thread(found.fetchmany, batch):
            yield rows


class SqliteUpkeep:
    def __init__(self, file: File, reader: Reader, writer: Writer, objects: Objects | None) -> None:
        self._file, self._reader, self._writer, self._objects = file, reader, writer, objects

    async def ping(self) -> None:
        self._reader.db.execute("SELECT 1").fetchone()

    @asynccontextmanager
    async def frozen(self) -> AsyncIterator[SqliteFrozen]:
        with closing(connect(self._file)) as db, transaction(db, "DEFERRED"):
            db.execute("SELECT count(*) FROM counter").fetchone()
            yield SqliteFrozen(db)

    async def load(self, rows: AsyncIterator[tuple[str, Rows]]) -> None:
        with closing(connect(self._file)) as db, transaction(db, "IMMEDIATE"):
            if db.execute("SELECT 1 FROM scope UNION ALL SELECT 1 FROM record LIMIT 1").fetchone():
                raise Taken("the store is not empty; restore goes into an empty one")
            async for table, some in rows:
                columns = _known(table)
                marks = ", ".join("?" for _ in columns)
                sql = f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({marks})"
                await asyncio.to_thread(db.executemany, sql, some)

    async def collect(self, now: Moment, grace: int, events_kept: int) -> Mapping[str, int]:
        counts = await self._writer.do(lambda db, _: _collect(db, now, grace, events_kept))
        return {**counts, "objects": await self._collect_objects(now - grace)}

    async def _collect_objects(self, before: Moment) -> int:
        if self._objects is None:
            return 0
        old = [digest async for digest, _, at in self._objects.each() if at < before]
        kept = await self._reader.scan(_outside)
        gone = [digest for digest in old if digest not in kept]
        await self._objects.delete(gone)
        return len(gone)


def _known(table: str) -> Sequence[str]:
    return TABLES[table]


def _order(table: str) -> str:
    first = TABLES[table][0]
    keys = {"entry": "scope, path", "version": "scope, path, version", "run_layer": "run, place"}
    return keys.get(table, first)


def _outside(db: sqlite3.Connection) -> frozenset[Digest]:
    rows = db.execute(SQL["outside_digests"]).fetchall()
    return frozenset(Digest("sha256:" + row[0].hex()) for row in rows)


def _collect(
    db: sqlite3.Connection, now: Moment, grace: int, events_kept: int
) -> Mapping[str, int]:
    before = {
        "versions": ("collect_versions", ()),
        "contents": ("collect_contents", (now - grace,)),
        "receipts": ("collect_receipts", (now - _DAY,)),
        "attempts": ("collect_attempts", (now - 30 * _DAY,)),
        "deliveries": ("collect_deliveries", (now - 30 * _DAY,)),
        "events": ("collect_events", (now - events_kept,)),
    }
    return {what: db.execute(SQL[name], ask).rowcount for what, (name, ask) in before.items()}
