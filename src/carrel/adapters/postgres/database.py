"""Connects to PostgreSQL: pool, session settings and migrations."""

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

PACKAGE_FILES: Final = files("carrel.adapters.postgres")
STATEMENTS: Final = sql_statements.parse_statements(
    (PACKAGE_FILES / "statements.sql").read_text("utf-8")
)
MIGRATIONS: Final[Mapping[str, str]] = {
    file.name: file.read_text("utf-8")
    for file in sorted((PACKAGE_FILES / "migrations").iterdir(), key=lambda file: file.name)
    if file.name.endswith(".sql")
}
MIN_SERVER_VERSION: Final = 15

_SESSION_SETTINGS: Final = {
    "application_name": "carrel",
    "default_transaction_isolation": "read committed",
    "synchronous_commit": "on",
    "jit": "off",
}
# Every pooled query is an index lookup. A plan is made once per connection, perhaps while a table
# is so small that a sequential scan looks cheaper, and would then be kept.
_SHORT_QUERY_SETTINGS: Final = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_memoize": "off",
    "plan_cache_mode": "force_generic_plan",
}


class PostgresSchemaMismatch(Exception):
    """The database cannot be served by this version of Carrel."""


class Database:
    """Connection pool and named statements."""

    def __init__(self, url: str, pool: asyncpg.Pool) -> None:
        self.url, self._pool = url, pool

    async def rows(self, name: str, *values: Any) -> Sequence[Row]:
        with translate_driver_errors():
            return cast(Sequence[Row], await self._pool.fetch(STATEMENTS[name], *values))

    async def row(self, name: str, *values: Any) -> Row:
        """Return the only row of a query."""
        with translate_driver_errors():
            return cast(Row, await self._pool.fetchrow(STATEMENTS[name], *values))

    async def value(self, name: str, *values: Any) -> Any:
        with translate_driver_errors():
            return await self._pool.fetchval(STATEMENTS[name], *values)

    async def script(self, text: str) -> None:
        """Run statements in one round trip."""
        await self._pool.execute(text)


@contextmanager
def translate_driver_errors() -> Iterator[None]:
    """Raise ValidationError for text that PostgreSQL cannot store, such as NUL."""
    try:
        yield
    except asyncpg.InternalClientError as error:
        # Raised by the driver when a connection ends in the middle of a message.
        raise ConnectionError("the database connection was closed") from error
    except (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError) as error:
        raise ValidationError("text contains a character that cannot be stored") from error


def searchable_text(text: str) -> str | None:
    """Return the text, or None (which matches nothing) if it cannot be stored."""
    return None if "\0" in text else text


@asynccontextmanager
async def open_database(url: str, size: int) -> AsyncIterator[Database]:
    pool = asyncpg.create_pool(
        url,
        min_size=1,
        max_size=size,
        max_queries=2**31,
        server_settings={**_SESSION_SETTINGS, **_SHORT_QUERY_SETTINGS},
        reset=_skip_reset,
        timeout=10,
    )
    async with pool:
        yield Database(url, pool)


async def _skip_reset(connection: Any) -> None:
    """Do not reset connections: no query changes session state."""


@asynccontextmanager
async def exclusive_connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Open a separate connection for long operations, with default planning."""
    connection = await asyncpg.connect(url, server_settings=_SESSION_SETTINGS, timeout=10)
    try:
        yield connection
    finally:
        await connection.close()


async def prepare(url: str) -> None:
    """Migrate the database. Processes that start at the same time wait."""
    async with exclusive_connection(url) as connection:
        if connection.get_server_version().major < MIN_SERVER_VERSION:
            raise PostgresSchemaMismatch(f"Carrel needs PostgreSQL {MIN_SERVER_VERSION} or newer")
        if await connection.fetchval(STATEMENTS["database_encoding"]) != "UTF8":
            raise PostgresSchemaMismatch("the database encoding must be UTF8")
        async with connection.transaction():
            await connection.execute(STATEMENTS["lock_migrations"])
            await _migrate(connection)
            if await connection.fetchval(STATEMENTS["has_future_events"]):
                await connection.execute(STATEMENTS["reset_event_xids"])


async def _migrate(connection: asyncpg.Connection) -> None:
    await connection.execute(STATEMENTS["create_migration_table"])
    applied = {
        name: checksum for name, checksum in await connection.fetch(STATEMENTS["migrations"])
    }
    if unknown := sorted(applied.keys() - MIGRATIONS.keys()):
        raise PostgresSchemaMismatch(
            f"the database has unknown migration {unknown[-1]}; use a newer version of Carrel"
        )
    for name, text in MIGRATIONS.items():
        checksum = hashlib.sha256(text.encode()).hexdigest()
        if applied.get(name, checksum) != checksum:
            raise PostgresSchemaMismatch(
                f"migration {name} was applied to the database with different content"
            )
        if name not in applied:
            await connection.execute(text)
            await connection.execute(
                STATEMENTS["add_migration"], name, checksum, time.time_ns() // 10**6
            )
