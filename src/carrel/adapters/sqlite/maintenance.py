"""Looking after the whole file: a consistent view of every row, filling an empty one, tidying."""

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
from carrel.adapters.sqlite.database import SQL, connect, transaction
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.sessions import index_some
from carrel.adapters.sqlite.writer import Writer
from carrel.core.errors import Conflict
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.maintenance.tables import TABLES, key_of
from carrel.core.search.full_text import SEARCHED, index_terms

_DAY: Final = 24 * 3600 * 1000
_SLICE: Final = 500
"""Rows that are removed in one go, so that nobody waits long for the writer."""
_HEAVY: Final = 4 * 2**20
"""Bytes after which a batch of long rows is handed over, however few they are."""
_COUNTED: Final = {"drop_content": "continue_contents", "drop_event": "continue_events"}
_LONG: Final = frozenset({"content", "delivery", "utterance"})
Rows = Sequence[Sequence[Any]]


class SqliteSnapshot:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    async def count(self, table: str) -> int:
        sql = f"SELECT count(*) FROM {_source(table)}"
        [count] = await asyncio.to_thread(lambda: self._db.execute(sql).fetchone())
        return int(count)

    async def rows(self, table: str, batch: int = 1000) -> AsyncIterator[Rows]:
        columns = ", ".join(TABLES[_known(table)])
        sql = f"SELECT {columns} FROM {_source(table)} ORDER BY {key_of(table)}"
        found = await asyncio.to_thread(self._db.execute, sql)
        take = _some if table in _LONG else sqlite3.Cursor.fetchmany
        while rows := await asyncio.to_thread(take, found, batch):
            yield rows


class SqliteMaintenance:
    def __init__(self, file: File, reader: Reader, writer: Writer) -> None:
        self._file, self._reader, self._writer = file, reader, writer

    async def ping(self) -> None:
        self._reader.db.execute("SELECT 1").fetchone()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[SqliteSnapshot]:
        with closing(connect(self._file)) as db, transaction(db, "DEFERRED"):
            db.execute("SELECT count(*) FROM counter").fetchone()
            yield SqliteSnapshot(db)

    async def load(self, rows: AsyncIterator[tuple[str, Rows]]) -> None:
        with closing(connect(self._file)) as db, transaction(db, "IMMEDIATE"):
            if db.execute("SELECT 1 FROM scope UNION ALL SELECT 1 FROM record LIMIT 1").fetchone():
                raise Conflict("the store is not empty; restore goes into an empty one")
            async for table, some in rows:
                columns = TABLES[_known(table)]
                marks = ", ".join("?" for _ in columns)
                sql = f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) VALUES ({marks})"
                await asyncio.to_thread(_insert, db, sql, some)
            db.execute(SQL["continue_contents"])
            db.execute(SQL["continue_events"])
            await asyncio.to_thread(_index_utterances, db)
            await asyncio.to_thread(_index, db)

    async def collect(self, now: TimestampMs, grace: int, events_kept: int) -> Mapping[str, int]:
        """What is to go is looked for beside the writer, and then goes slice by slice.

        Nothing that was unreferenced when it was looked for can be referred to again: whoever
        refers to stored bytes expects, in the same commit, that they still are what a path says.
        """
        return {
            "versions": await self._collect_versions(),
            "contents": await self._collect("old_contents", now - grace, "drop_content"),
            "receipts": await self._remove("collect_receipts", now - _DAY),
            "attempts": await self._remove("collect_attempts", now - 30 * _DAY),
            "deliveries": await self._remove("collect_deliveries", now - 30 * _DAY),
            "events": await self._collect("old_events", now - events_kept, "drop_event"),
        }

    async def reindex(self) -> int:
        return await self._writer.submit(lambda db, _: _index(db), long=True)

    async def referenced_digests(self) -> frozenset[Digest]:
        rows = await self._reader.scan(lambda db: db.execute(SQL["outside_digests"]).fetchall())
        return frozenset(Digest("sha256:" + row[0].hex()) for row in rows)

    async def migrations(self) -> tuple[str, ...]:
        return tuple(name for (name,) in self._reader.db.execute(SQL["migrations"]).fetchall())

    async def _collect_versions(self) -> int:
        """As many scans as it takes: lowering a limit may free more than fits into memory."""
        total, gone = 0, 1
        while gone:
            gone = await self._drop("prune_version", await self._find("old_versions"))
            total += gone
        return total

    async def _collect(self, find: str, before: TimestampMs, drop: str) -> int:
        return await self._drop(drop, await self._find(find, before))

    async def _find(self, statement: str, *ask: Any) -> Rows:
        return await self._reader.scan(lambda db: db.execute(SQL[statement], ask).fetchall())

    async def _drop(self, statement: str, keys: Rows) -> int:
        slices = (keys[start : start + _SLICE] for start in range(0, len(keys), _SLICE))
        return sum(
            [
                await self._writer.submit(partial(_dropped, statement, some), long=True)
                for some in slices
            ]
        )

    async def _remove(self, statement: str, before: TimestampMs) -> int:
        return await self._writer.submit(
            lambda db, _: db.execute(SQL[statement], (before,)).rowcount, long=True
        )


def _dropped(statement: str, keys: Rows, db: sqlite3.Connection, _: CommitBatch) -> int:
    if statement in _COUNTED:  # the newest may be among them, and its id is never given out again
        db.execute(SQL[_COUNTED[statement]])
    return db.executemany(SQL[statement], keys).rowcount


def _insert(db: sqlite3.Connection, sql: str, rows: Rows) -> None:
    """The cursor ends here: ending later, elsewhere, it would reset the next call's statement."""
    db.executemany(sql, rows)


def _index_utterances(db: sqlite3.Connection) -> None:
    """Let everything that was said be found by its words."""
    place, count = index_some(db, None, _SLICE)
    while count:
        place, count = index_some(db, place, _SLICE)


def _index(db: sqlite3.Connection) -> int:
    """Make the words anew that records are found by."""
    db.execute(SQL["forget_words"])
    count = 0
    for record_type in sorted(SEARCHED):
        for tenant, _, link, id, body in db.execute(SQL["links_and_bodies"], (record_type,)):
            rows = [
                (tenant, record_type, link, word, id)
                for word in index_terms(record_type, decode(body))
            ]
            count += db.executemany(SQL["add_word"], rows).rowcount if rows else 0
    return count


def _known(table: str) -> str:
    """Names of tables cannot be parameters; these are all that there are."""
    if table not in TABLES:
        raise KeyError(table)
    return table


def _source(table: str) -> str:
    """Where a table's rows come from: for the counters, from what they count as well."""
    if _known(table) != "counter":
        return table
    return f"(SELECT name, value FROM ({SQL['counters'].rstrip().rstrip(';')}) WHERE value > 0)"


def _some(found: sqlite3.Cursor, most: int) -> Rows:
    rows: list[Sequence[Any]] = []
    weight = 0
    while len(rows) < most and weight < _HEAVY:
        row = found.fetchone()
        if row is None:
            break
        rows.append(row)
        weight += sum(len(value) for value in row if type(value) is bytes)
    return rows
