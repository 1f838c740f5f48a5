"""Erases scopes from PostgreSQL; VACUUM removes the bytes of deleted rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import asyncpg

from carrel.adapters.postgres.advisory_locks import content_lock_name, lock_number, scope_lock_name
from carrel.adapters.postgres.database import STATEMENTS, Database, exclusive_connection
from carrel.core.identifiers import Scope, TimestampMs

_BATCH_SIZE: Final = 500
_BEFORE_VERSIONS: Final = ("erase_run_events", "erase_run_layers", "erase_entries")


class PostgresErasure:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def erase_scopes(self, scopes: Sequence[Scope], at: TimestampMs) -> int:
        async with exclusive_connection(self._database.url) as connection:
            return sum([await _erase_scope(connection, scope, at) for scope in scopes])

    async def scrub(self) -> None:
        """Do nothing: autovacuum removes dead rows."""

    async def find_orphans(self) -> tuple[tuple[str, str], ...]:
        return tuple((row[0], row[1]) for row in await self._database.rows("orphans"))


async def _erase_scope(connection: asyncpg.Connection, scope: Scope, at: TimestampMs) -> int:
    """Delete the rows of a scope; return the number of versions."""
    id = await connection.fetchval(STATEMENTS["scope_id"], scope.tenant, scope.kind, scope.name)
    if id is None:
        return 0
    async with connection.transaction():
        await connection.execute(STATEMENTS["lock_scope"], lock_number(scope_lock_name(scope)))
        rows = await connection.fetch(STATEMENTS["contents_of_scope"], id)
        for name in _BEFORE_VERSIONS:
            await connection.execute(STATEMENTS[name], id)
        await connection.execute(STATEMENTS["release_runs"], id, at)
        versions = int(await connection.fetchval(STATEMENTS["erase_versions"], id))
        await connection.execute(STATEMENTS["empty_scope"], id)
    contents = [row[0] for row in rows]
    for start in range(0, len(contents), _BATCH_SIZE):
        batch = contents[start : start + _BATCH_SIZE]
        locks = [lock_number(content_lock_name(content)) for content in batch]
        await connection.fetchval(STATEMENTS["delete_contents"], batch, locks)
    return versions
