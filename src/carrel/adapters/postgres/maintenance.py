"""Looking after the database: one view of every row, filling an empty one, tidying."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import asyncpg

from carrel.adapters.postgres.database import SQL, Database, encode_text, exclusive_connection
from carrel.adapters.postgres.garbage_collector import Collector
from carrel.adapters.postgres.rows import columns, from_json
from carrel.adapters.postgres.sessions import index_some
from carrel.core.errors import Conflict
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.maintenance.tables import TABLES, key_of
from carrel.core.search.full_text import SEARCHED, index_terms

Rows = Sequence[Sequence[Any]]

_WORD: Final = ("tenant", "noun", "link", "word", "id")
_FEWER: Final = {"content": 64, "delivery": 64, "utterance": 64}
"""Tables whose rows are long, and how many of them are fetched at a time."""


_INDEXED: Final = 500


class PostgresSnapshot:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def count(self, table: str) -> int:
        return int(await self._connection.fetchval(f"SELECT count(*) FROM ({_select(table)}) AS x"))

    async def rows(self, table: str, batch: int = 1000) -> AsyncIterator[Rows]:
        cursor = await self._connection.cursor(_select(table))
        while found := await cursor.fetch(min(batch, _FEWER.get(table, batch))):
            yield [tuple(row) for row in found]


class PostgresMaintenance:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def ping(self) -> None:
        await self._database.value("ping")

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[PostgresSnapshot]:
        async with (
            exclusive_connection(self._database.url) as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            await connection.fetchval(SQL["ping"])  # the view is that of the first statement
            yield PostgresSnapshot(connection)

    async def load(self, rows: AsyncIterator[tuple[str, Rows]]) -> None:
        async with exclusive_connection(self._database.url) as connection, connection.transaction():
            await connection.execute(SQL["take_everything"])
            if not await connection.fetchval(SQL["is_empty"]):
                raise Conflict("the store is not empty; restore goes into an empty one")
            await connection.execute(SQL["loading"])
            with encode_text():
                async for table, some in rows:
                    await _load(connection, table, some)
            for name in ("loaded", "continue_numbers", "load_marks", "note_loaded"):
                await connection.execute(SQL[name])
            await _index_utterances(connection)
            await _index(connection)
            await connection.execute("ANALYZE")

    async def collect(self, now: TimestampMs, grace: int, events_kept: int) -> Mapping[str, int]:
        async with exclusive_connection(self._database.url) as connection:
            return await Collector(connection).collect(now, grace, events_kept)

    async def reindex(self) -> int:
        async with exclusive_connection(self._database.url) as connection, connection.transaction():
            await connection.execute(SQL["take_everything"])
            return await _index(connection)

    async def referenced_digests(self) -> frozenset[Digest]:
        rows = await self._database.rows("outside_digests")
        return frozenset(Digest("sha256:" + row[0].hex()) for row in rows)

    async def migrations(self) -> tuple[str, ...]:
        return tuple(row[0] for row in await self._database.rows("migrations"))


async def _index_utterances(connection: asyncpg.Connection) -> None:
    """Let everything that was said be found by its words."""

    async def ask(name: str, *values: Any) -> Rows:
        return cast(Rows, await connection.fetch(SQL[name], *values))

    place, count = await index_some(ask, None, _INDEXED)
    while count:
        place, count = await index_some(ask, place, _INDEXED)


def _select(table: str) -> str:
    names = ", ".join(TABLES[table])
    if table in {"counter", "mark"}:
        return SQL[f"frozen_{table}"]
    return f"SELECT {names} FROM {table} ORDER BY {key_of(table)}"


async def _index(connection: asyncpg.Connection) -> int:
    """Make the words anew that records are found by."""
    await connection.execute(SQL["forget_words"])
    count = 0
    for record_type in sorted(SEARCHED):
        cursor = await connection.cursor(SQL["links_and_bodies"], record_type)
        while found := await cursor.fetch(500):
            rows = [
                (tenant, record_type, link, word, id)
                for tenant, _, link, id, body in found
                for word in index_terms(record_type, from_json(body))
            ]
            await connection.copy_records_to_table("word", records=rows, columns=_WORD)
            count += len(rows)
    return count


async def _load(connection: asyncpg.Connection, table: str, rows: Rows) -> None:
    names = TABLES[table]
    if table == "counter":
        await connection.execute(SQL["load_counter"], *columns(rows, 2))
    else:
        await connection.copy_records_to_table(table, records=rows, columns=names)
