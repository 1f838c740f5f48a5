"""Reaching the server: connections, their settings, and bringing an older database up to date."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from importlib.resources import files
from typing import Any, Final, cast

import asyncpg

from carrel.adapters.postgres.rows import Row
from carrel.core import sql_statements
from carrel.core.errors import ValidationError

HERE: Final = files("carrel.adapters.postgres")
SQL: Final = sql_statements.parse((HERE / "statements.sql").read_text("utf-8"))
MIGRATIONS: Final[Mapping[str, str]] = {
    file.name: file.read_text("utf-8")
    for file in sorted((HERE / "migrations").iterdir(), key=lambda file: file.name)
    if file.name.endswith(".sql")
}
OLDEST: Final = 15

_ALWAYS: Final = {
    "application_name": "carrel",
    "default_transaction_isolation": "read committed",
    "synchronous_commit": "on",
    "jit": "off",
}
# Every question asked here is answered row by row from an index. A plan is made once a connection,
# perhaps while a table is still so small that reading all of it looks cheaper: that must not last.
_SHORT: Final = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_memoize": "off",
    "plan_cache_mode": "force_generic_plan",
}


class Incompatible(Exception):
    """The database is one that this version of Carrel cannot serve."""


class Database:
    """A pool of connections, and statements by their names."""

    def __init__(self, url: str, pool: asyncpg.Pool) -> None:
        self.url, self._pool = url, pool

    async def rows(self, name: str, *values: Any) -> Sequence[Row]:
        with encode_text():
            return cast(Sequence[Row], await self._pool.fetch(SQL[name], *values))

    async def row(self, name: str, *values: Any) -> Row:
        """The only row that a question has for an answer."""
        with encode_text():
            return cast(Row, await self._pool.fetchrow(SQL[name], *values))

    async def value(self, name: str, *values: Any) -> Any:
        with encode_text():
            return await self._pool.fetchval(SQL[name], *values)

    async def script(self, text: str) -> None:
        """Run statements in one round trip, as they are."""
        await self._pool.execute(text)


@contextmanager
def encode_text() -> Iterator[None]:
    """PostgreSQL cannot hold a NUL in a text: whoever sends one is told so."""
    try:
        yield
    except asyncpg.InternalClientError as error:
        # What the driver says when a connection ends in the middle of a word.
        raise ConnectionError("the connection to the database has ended") from error
    except (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError) as error:
        raise ValidationError("a text holds a character that cannot be stored") from error


def searchable_text(text: str) -> str | None:
    """The text to look for; None, which finds nothing, if it cannot be stored anyway."""
    return None if "\0" in text else text


@asynccontextmanager
async def connected(url: str, size: int) -> AsyncIterator[Database]:
    pool = asyncpg.create_pool(
        url,
        min_size=1,
        max_size=size,
        max_queries=2**31,
        server_settings={**_ALWAYS, **_SHORT},
        reset=_leave_as_it_is,
        timeout=10,
    )
    async with pool:
        yield Database(url, pool)


async def _leave_as_it_is(connection: Any) -> None:
    """Nothing here changes a session, so no round trip is spent on resetting it."""


@asynccontextmanager
async def exclusive_connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    """A connection of one's own for what takes long, planned for the occasion."""
    connection = await asyncpg.connect(url, server_settings=_ALWAYS, timeout=10)
    try:
        yield connection
    finally:
        await connection.close()


async def prepare(url: str) -> None:
    """Bring the database up to date; whoever comes first does it, the others wait."""
    async with exclusive_connection(url) as connection:
        if connection.get_server_version().major < OLDEST:
            raise Incompatible(f"Carrel needs PostgreSQL {OLDEST} or newer")
        if await connection.fetchval(SQL["encoding"]) != "UTF8":
            raise Incompatible("the database is not encoded in UTF8")
        async with connection.transaction():
            await connection.execute(SQL["migration_lock"])
            await _migrate(connection)
            if await connection.fetchval(SQL["events_from_elsewhere"]):
                await connection.execute(SQL["rebase"])


async def _migrate(connection: asyncpg.Connection) -> None:
    await connection.execute(SQL["migration_table"])
    done = {name: checksum for name, checksum in await connection.fetch(SQL["migrations"])}
    if unknown := sorted(done.keys() - MIGRATIONS.keys()):
        raise Incompatible(f"the database has {unknown[-1]}, which this version does not know")
    for name, text in MIGRATIONS.items():
        checksum = hashlib.sha256(text.encode()).hexdigest()
        if done.get(name, checksum) != checksum:
            raise Incompatible(f"{name} was applied to the database with another text")
        if name not in done:
            await connection.execute(text)
            await connection.execute(SQL["add_migration"], name, checksum, time.time_ns() // 10**6)
