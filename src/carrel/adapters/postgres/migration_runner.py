"""Creates or migrates the tables in PostgreSQL when the store is opened."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import asyncpg

from carrel.adapters.postgres.database import PACKAGE_FILES, STATEMENTS, exclusive_connection

MIGRATIONS: Final[Mapping[str, str]] = {
    file.name: file.read_text("utf-8")
    for file in sorted((PACKAGE_FILES / "migrations").iterdir(), key=lambda file: file.name)
    if file.name.endswith(".sql")
}
REINDEXING_MIGRATIONS: frozenset[str] = frozenset()
"""Migrations that clear the full-text indexes."""
RebuildIndexes = Callable[[asyncpg.Connection], Awaitable[object]]
MIN_SERVER_VERSION: Final = 15


class PostgresSchemaMismatch(Exception):
    """The database cannot be served by this version of Carrel."""


async def prepare(url: str, rebuild_indexes: RebuildIndexes | None = None) -> None:
    """Migrate the database. Processes that start at the same time wait.

    `rebuild_indexes` runs after a migration that clears the full-text indexes, in its transaction.
    """
    async with exclusive_connection(url) as connection:
        if connection.get_server_version().major < MIN_SERVER_VERSION:
            raise PostgresSchemaMismatch(f"Carrel needs PostgreSQL {MIN_SERVER_VERSION} or newer")
        if await connection.fetchval(STATEMENTS["database_encoding"]) != "UTF8":
            raise PostgresSchemaMismatch("the database encoding must be UTF8")
        async with connection.transaction():
            await connection.execute(STATEMENTS["lock_migrations"])
            applied = set(await _migrate(connection))
            if rebuild_indexes and REINDEXING_MIGRATIONS & applied:
                await rebuild_indexes(connection)
            if await connection.fetchval(STATEMENTS["has_future_events"]):
                await connection.execute(STATEMENTS["reset_event_xids"])


async def _migrate(connection: asyncpg.Connection) -> list[str]:
    """Apply the missing migrations and return their names."""
    await connection.execute(STATEMENTS["create_migration_table"])
    applied = {
        name: checksum for name, checksum in await connection.fetch(STATEMENTS["migrations"])
    }
    if unknown := sorted(applied.keys() - MIGRATIONS.keys()):
        raise PostgresSchemaMismatch(
            f"the database has unknown migration {unknown[-1]}; use a newer version of Carrel"
        )
    missing = [name for name in MIGRATIONS if name not in applied]
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
    return missing
