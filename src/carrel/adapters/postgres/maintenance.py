"""Maintenance of the PostgreSQL store: snapshots, restore and reindexing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import asyncpg

from carrel.adapters.postgres.database import (
    STATEMENTS,
    Database,
    exclusive_connection,
    translate_driver_errors,
)
from carrel.adapters.postgres.garbage_collector import PostgresGarbageCollector
from carrel.adapters.postgres.rows import from_json, transpose
from carrel.adapters.postgres.sessions import index_batch
from carrel.core.errors import Conflict
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.maintenance.tables import TABLES, key_columns
from carrel.core.outages import CorruptContent
from carrel.core.search.full_text import SEARCHED_TYPES, index_terms

Rows = Sequence[Sequence[Any]]

_SEARCH_TERM_COLUMNS: Final = ("tenant", "type", "index_key", "term", "id")
_BATCH_SIZES: Final = {"content": 64, "delivery": 64, "session_entry": 64}
"""Rows fetched at a time from tables with long rows."""

_INDEX_BATCH_SIZE: Final = 500
_SNAPSHOT_STATEMENTS: Final = {
    "counter": "snapshot_counter",
    "delivery_cursor": "snapshot_delivery_cursor",
}
"""Statements for tables whose rows are converted for other stores."""
_AFTER_RESTORE: Final = (
    "end_restore",
    "advance_id_sequences",
    "restore_delivery_cursor",
    "set_restored_event",
)


class PostgresSnapshot:
    def __init__(self, connection: asyncpg.Connection, *, skip_damaged: bool) -> None:
        self._connection, self._skip_damaged = connection, skip_damaged
        self._damage: list[tuple[str, str]] = []

    async def count(self, table: str) -> int:
        try:
            async with self._savepoint():
                sql = f"SELECT count(*) FROM ({_select(table)}) AS x"
                return int(await self._connection.fetchval(sql))
        except CorruptContent:
            return 0

    async def rows(self, table: str, batch: int = 1000) -> AsyncIterator[Rows]:
        cursor = await self._connection.cursor(_select(table))
        size = min(batch, _BATCH_SIZES.get(table, batch))
        while batch_rows := await self._fetch(table, cursor, size):
            yield [tuple(row) for row in batch_rows]

    async def _fetch(self, table: str, cursor: Any, size: int) -> Rows:
        """Fetch rows; none after a damaged page, if such pages are skipped."""
        try:
            async with self._savepoint():
                return cast(Rows, await cursor.fetch(size))
        except CorruptContent as error:
            if not self._skip_damaged:
                raise CorruptContent(f"table {table}: {error}; run carrel doctor") from error
            self._damage.append((f"table {table}", f"rows cannot be read: {error.__cause__}"))
            return ()

    @asynccontextmanager
    async def _savepoint(self) -> AsyncIterator[None]:
        """After damage in this block the snapshot can still be read."""
        with translate_driver_errors():
            async with self._connection.transaction():
                yield

    async def find_damage(self) -> Sequence[tuple[str, str]]:
        """Tables of which rows could not be read; the server has its own check of indexes."""
        return self._damage


class PostgresMaintenance:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def ping(self) -> None:
        await self._database.require_writable()
        if self._database.is_disk_full:
            await self._database.value("probe_write")
            self._database.is_disk_full = False

    async def keep_reserve(self) -> None:
        """Do nothing: the database server manages its disk."""

    @asynccontextmanager
    async def snapshot(self, *, skip_damaged: bool = False) -> AsyncIterator[PostgresSnapshot]:
        async with (
            exclusive_connection(self._database.url) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            await connection.fetchval(STATEMENTS["ping"])  # the first statement fixes the snapshot
            yield PostgresSnapshot(connection, skip_damaged=skip_damaged)

    async def load(self, rows: AsyncIterator[tuple[str, Rows]]) -> None:
        async with exclusive_connection(self._database.url) as connection, connection.transaction():
            await connection.execute(STATEMENTS["acquire_global_lock"])
            if not await connection.fetchval(STATEMENTS["is_empty"]):
                raise Conflict("the store is not empty; restore needs an empty store")
            await connection.execute(STATEMENTS["begin_restore"])
            with translate_driver_errors():
                async for table, batch in rows:
                    await _load(connection, table, batch)
            for name in _AFTER_RESTORE:
                await connection.execute(STATEMENTS[name])
            await _index_session_entries(connection)
            await _index_records(connection)
            await connection.execute("ANALYZE")

    async def collect(
        self, now: TimestampMs, grace_ms: int, event_retention_ms: int
    ) -> Mapping[str, int]:
        async with exclusive_connection(self._database.url) as connection:
            return await PostgresGarbageCollector(connection).collect(
                now, grace_ms, event_retention_ms
            )

    async def reindex(self) -> int:
        async with exclusive_connection(self._database.url) as connection, connection.transaction():
            await connection.execute(STATEMENTS["acquire_global_lock"])
            return await _index_records(connection)

    async def referenced_digests(self) -> frozenset[Digest]:
        rows = await self._database.rows("external_digests")
        return frozenset(Digest("sha256:" + row[0].hex()) for row in rows)

    async def migrations(self) -> tuple[str, ...]:
        return tuple(row[0] for row in await self._database.rows("migrations"))


async def rebuild_indexes(connection: asyncpg.Connection) -> None:
    """Rebuild all full-text indexes."""
    await _index_session_entries(connection)
    await _index_records(connection)


async def _index_session_entries(connection: asyncpg.Connection) -> None:
    """Rebuild the full-text index of session entries."""

    async def query(name: str, *values: Any) -> Rows:
        return cast(Rows, await connection.fetch(STATEMENTS[name], *values))

    position, count = await index_batch(query, None, _INDEX_BATCH_SIZE)
    while count:
        position, count = await index_batch(query, position, _INDEX_BATCH_SIZE)


def _select(table: str) -> str:
    names = ", ".join(TABLES[table])
    if table in _SNAPSHOT_STATEMENTS:
        return STATEMENTS[_SNAPSHOT_STATEMENTS[table]]
    return f"SELECT {names} FROM {table} ORDER BY {key_columns(table)}"


async def _index_records(connection: asyncpg.Connection) -> int:
    """Rebuild the search terms of records; return their number."""
    await connection.execute(STATEMENTS["delete_all_search_terms"])
    count = 0
    for record_type in sorted(SEARCHED_TYPES):
        cursor = await connection.cursor(STATEMENTS["index_keys_with_bodies"], record_type)
        while batch := await cursor.fetch(500):
            rows = [
                (tenant, record_type, index_key, term, id)
                for tenant, _, index_key, id, body in batch
                for term in index_terms(record_type, from_json(body))
            ]
            await connection.copy_records_to_table(
                "search_term", records=rows, columns=_SEARCH_TERM_COLUMNS
            )
            count += len(rows)
    return count


async def _load(connection: asyncpg.Connection, table: str, rows: Rows) -> None:
    names = TABLES[table]
    if table == "counter":
        await connection.execute(STATEMENTS["restore_counter"], *transpose(rows, 2))
    else:
        await connection.copy_records_to_table(table, records=rows, columns=names)
