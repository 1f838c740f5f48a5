"""Erases scopes from PostgreSQL; VACUUM removes the bytes of deleted rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any, Final

import asyncpg

from carrel.adapters.postgres.advisory_locks import content_lock_name, lock_number, scope_lock_name
from carrel.adapters.postgres.database import STATEMENTS, Database, exclusive_connection
from carrel.adapters.postgres.row_rewriting import (
    apply_changes,
    erase_path,
    find_changes,
    record_with_keys_from_row,
    replace_versions,
    stored_version_from_row,
)
from carrel.core.identifiers import Digest, Path, Scope, TimestampMs
from carrel.core.maintenance.text_columns import RowBatch, RowRewrite
from carrel.ports import LargeBlobStore
from carrel.ports.erasure import (
    RecordWithKeys,
    StoredVersion,
    VersionReplacement,
    delete_affected_objects,
)

_BATCH_SIZE: Final = 500
_BODY_BATCH_SIZE: Final = 64
"""Contents in memory at once."""
_BEFORE_VERSIONS: Final = ("erase_run_events", "erase_run_layers", "erase_entries")


class PostgresErasure:
    def __init__(self, database: Database, objects: LargeBlobStore) -> None:
        self._database, self._objects = database, objects

    async def erase_scopes(self, scopes: Sequence[Scope], at: TimestampMs) -> int:
        async with exclusive_connection(self._database.url) as connection:
            return sum([await _erase_scope(connection, scope, at) for scope in scopes])

    async def erase_paths(self, paths: Sequence[tuple[Scope, Path]]) -> int:
        count, contents = 0, set[int]()
        async with exclusive_connection(self._database.url) as connection:
            for scope, path in paths:
                async with connection.transaction():
                    versions, ids = await erase_path(connection, scope, path)
                count, contents = count + versions, contents | ids
            await self._delete_old(connection, contents)
        return count

    async def replace_versions(
        self, replacements: Sequence[VersionReplacement], at: TimestampMs
    ) -> int:
        by_scope: dict[Scope, list[VersionReplacement]] = {}
        for item in replacements:
            by_scope.setdefault(item.scope, []).append(item)
        count, contents = 0, set[int]()
        async with exclusive_connection(self._database.url) as connection:
            for scope, items in by_scope.items():
                async with connection.transaction():
                    replaced, ids = await replace_versions(connection, scope, items, at)
                count, contents = count + replaced, contents | ids
            await self._delete_old(connection, contents)
        return count

    async def list_versions(
        self, tenant: str, *, after: tuple[int, str, int] | None = None, limit: int = 200
    ) -> tuple[StoredVersion, ...]:
        position = after or (0, "", 0)
        rows = await self._database.rows("stored_versions", tenant, *position, limit)
        return tuple(map(stored_version_from_row, rows))

    async def list_records(
        self, tenant: str, *, after: tuple[str, str] | None = None, limit: int = 500
    ) -> tuple[RecordWithKeys, ...]:
        rows = await self._database.rows("stored_records", tenant, *(after or ("", "")), limit)
        return tuple(map(record_with_keys_from_row, rows))

    async def rewrite_rows(
        self,
        tenant: str,
        table: str,
        rewrite: RowRewrite,
        *,
        after: tuple[Any, ...] | None = None,
        limit: int = 500,
        dry_run: bool = False,
    ) -> RowBatch:
        async with exclusive_connection(self._database.url) as connection:
            request = (tenant, table, rewrite, after, limit)
            position, count, changes = await find_changes(connection, *request)
            if changes and not dry_run:
                async with connection.transaction():
                    await connection.execute(STATEMENTS["acquire_global_lock"])
                    _, _, changes = await find_changes(connection, *request)
                    await apply_changes(connection, table, changes)
        return RowBatch(position, count, tuple(key for key, _ in changes))

    async def delete_unreferenced(
        self, is_affected: Callable[[bytes], bool], before: TimestampMs
    ) -> int:
        last, affected = 0, set[int]()
        async with exclusive_connection(self._database.url) as connection:
            while rows := await connection.fetch(
                STATEMENTS["unreferenced_bodies"], last, _BODY_BATCH_SIZE
            ):
                affected |= {id for id, body in rows if is_affected(body)}
                last = rows[-1][0]
            await self._delete_old(connection, affected)
        referenced = {row[0] for row in await self._database.rows("external_digests")}
        return len(affected) + await delete_affected_objects(
            self._objects, referenced, is_affected, before
        )

    async def _delete_old(self, connection: asyncpg.Connection, contents: Set[int]) -> None:
        """Delete contents that no version refers to, in rows and in the large blob store."""
        ids = sorted(contents)
        rows = await connection.fetch(STATEMENTS["external_contents"], ids)
        await _delete_contents(connection, ids)
        digests = {row[0] for row in rows}
        used = {row[0] for row in await connection.fetch(STATEMENTS["external_among"], digests)}
        unused = [Digest(f"sha256:{digest.hex()}") for digest in sorted(digests - used)]
        if unused:
            await self._objects.discard(unused)
            await self._objects.delete(unused)

    async def scrub(self, is_affected: Callable[[bytes], bool] | None = None) -> None:
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
    await _delete_contents(connection, [row[0] for row in rows])
    return versions


async def _delete_contents(connection: asyncpg.Connection, contents: Sequence[int]) -> None:
    for start in range(0, len(contents), _BATCH_SIZE):
        batch = contents[start : start + _BATCH_SIZE]
        locks = [lock_number(content_lock_name(content)) for content in batch]
        await connection.fetchval(STATEMENTS["delete_contents"], batch, locks)
