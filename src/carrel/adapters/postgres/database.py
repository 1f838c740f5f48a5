"""Connects to PostgreSQL: statements, pool, session settings and outages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from importlib.resources import files
from typing import Any, Final, cast
from urllib.parse import urlsplit

import asyncpg

from carrel.adapters.postgres.rows import Row
from carrel.core import sql_statements
from carrel.core.errors import ValidationError
from carrel.core.outages import CorruptContent, StorageFull, Unreachable

PACKAGE_FILES: Final = files("carrel.adapters.postgres")
STATEMENTS: Final = sql_statements.parse_statements(
    (PACKAGE_FILES / "statements.sql").read_text("utf-8")
)

_SESSION_SETTINGS: Final = {
    "application_name": "carrel",
    "default_transaction_isolation": "read committed",
    "synchronous_commit": "on",
    "jit": "off",
}
# Every pooled query is an index lookup. A plan is made once per connection, perhaps while a table
# is so small that a sequential scan looks cheaper, and would then be kept.
_SHORT_QUERY_SETTINGS: Final = {
    "statement_timeout": "30s",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_memoize": "off",
    "plan_cache_mode": "force_generic_plan",
}


_CONNECT_TIMEOUT_SECONDS: Final = 10.0
"""Time to get a connection, from the pool or a new one."""
_QUERY_TIMEOUT_SECONDS: Final = 30.0
"""A server that stopped answering without closing its connections is reported after this time."""
_RELEASE_TIMEOUT_SECONDS: Final = 5.0
_WRONG_SERVER_ERRORS: Final = (TimeoutError, asyncpg.ReadOnlySQLTransactionError)
"""Errors that other connections to the same server would cause too."""
_OUTAGES: Final = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.ReadOnlySQLTransactionError,
)
"""Errors of a server that is down, restarting, overloaded, misconfigured or a standby."""
_DAMAGE: Final = (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError)


class Database:
    """Connection pool and named statements."""

    def __init__(self, url: str, pool: asyncpg.Pool) -> None:
        self.url, self._pool = url, pool
        self.is_disk_full = False
        """Whether the last statement failed because the server's disk was full."""

    async def rows(self, name: str, *values: Any) -> Sequence[Row]:
        async with self._connection() as connection:
            return cast(Sequence[Row], await connection.fetch(STATEMENTS[name], *values))

    async def row(self, name: str, *values: Any) -> Row:
        """Return the only row of a query."""
        async with self._connection() as connection:
            return cast(Row, await connection.fetchrow(STATEMENTS[name], *values))

    async def value(self, name: str, *values: Any) -> Any:
        async with self._connection() as connection:
            return await connection.fetchval(STATEMENTS[name], *values)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[asyncpg.Connection]:
        """Begin a transaction, which is committed unless the block raises."""
        async with self._connection() as connection, connection.transaction():
            yield connection

    async def script(self, text: str) -> None:
        """Run statements in one round trip."""
        async with self._connection() as connection:
            await connection.execute(text)

    async def require_writable(self) -> None:
        """Raise Unreachable if the server answers, but as a standby or read-only."""
        async with self._connection() as connection:
            if await connection.fetchval(STATEMENTS["is_read_only"]):
                raise asyncpg.ReadOnlySQLTransactionError("the server is read-only")

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[Any]:
        """Lend a connection; after a time-out or from a standby, none is used again.

        New connections go to the server that then takes writes, for example after a failover.
        """
        with self._translate_errors():
            with _translate_refusals():
                connection = await self._pool.acquire(timeout=_CONNECT_TIMEOUT_SECONDS)
            try:
                yield connection
            except _WRONG_SERVER_ERRORS:
                await self._pool.expire_connections()
                connection.terminate()
                raise
            finally:
                await self._pool.release(connection, timeout=_RELEASE_TIMEOUT_SECONDS)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            with translate_driver_errors():
                yield
        except StorageFull:
            self.is_disk_full = True
            raise


@contextmanager
def translate_driver_errors() -> Iterator[None]:
    """Raise outages and damage as such, ValidationError for text that cannot be stored."""
    try:
        yield
    except (asyncpg.CharacterNotInRepertoireError, asyncpg.UntranslatableCharacterError) as error:
        raise ValidationError("text contains a character that cannot be stored") from error
    except asyncpg.DiskFullError as error:
        raise StorageFull("database") from error
    except _DAMAGE as error:
        raise CorruptContent("the database: a page is damaged") from error
    except (Unreachable, StorageFull):
        raise
    except asyncpg.DataError:
        raise  # an InterfaceError, but of an argument
    except _OUTAGES as error:
        raise Unreachable("database", type(error).__name__) from error


@contextmanager
def _translate_refusals() -> Iterator[None]:
    """Raise Unreachable if the server refuses a connection, for whatever reason."""
    try:
        yield
    except asyncpg.DiskFullError:
        raise
    except asyncpg.PostgresError as error:
        raise Unreachable("database", type(error).__name__) from error


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
        timeout=_CONNECT_TIMEOUT_SECONDS,
        command_timeout=_QUERY_TIMEOUT_SECONDS,
        target_session_attrs=_required_session(url),
    )
    async with pool:
        yield Database(url, pool)


def _required_session(url: str) -> Any:
    """Session attribute that selects one of several hosts: the one that takes writes."""
    parts = urlsplit(url)
    is_chosen = "," not in parts.netloc + parts.query or "target_session_attrs" in parts.query
    return None if is_chosen else "read-write"


async def _skip_reset(connection: Any) -> None:
    """Do not reset connections: no query changes session state."""


@asynccontextmanager
async def exclusive_connection(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Open a separate connection for long operations, with default planning."""
    with translate_driver_errors():
        with _translate_refusals():
            connection = await asyncpg.connect(
                url,
                server_settings=_SESSION_SETTINGS,
                timeout=_CONNECT_TIMEOUT_SECONDS,
                target_session_attrs=_required_session(url),
            )
        try:
            yield connection
        finally:
            await connection.close()
