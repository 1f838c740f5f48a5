"""Rewrites text columns and old versions in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import asyncpg

from carrel.adapters.postgres.advisory_locks import lock_number, scope_lock_name
from carrel.adapters.postgres.database import STATEMENTS
from carrel.adapters.postgres.rows import (
    digest_bytes,
    record_from_row,
    scope_from_row,
    version_from_row,
)
from carrel.adapters.postgres.sessions import owner_term, tsvector
from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.maintenance.tables import KEY_LENGTHS, TABLES
from carrel.core.maintenance.text_columns import TEXT_COLUMNS, RowRewrite
from carrel.core.search.full_text import distinct_terms
from carrel.core.store.blob import Blob
from carrel.ports.erasure import RecordWithKeys, StoredVersion, VersionReplacement

Key = tuple[Any, ...]
Changes = list[tuple[Key, Sequence[Any] | None]]

_TENANT_CONDITIONS: Final = {
    "version": "scope IN (SELECT id FROM scope WHERE tenant = $1)",
    "attempt": "delivery IN (SELECT id FROM delivery WHERE tenant = $1)",
}
_EVENT_KEY: Final = ("xid", "id")


def stored_version_from_row(row: Sequence[Any]) -> StoredVersion:
    version = version_from_row(Path(row[5]), row, 6)
    return StoredVersion(scope_from_row(*row[:3]), version, bool(row[3]), tuple(row[4:7]))


def record_with_keys_from_row(row: Sequence[Any]) -> RecordWithKeys:
    return RecordWithKeys(record_from_row(row), tuple(row[7]), tuple(row[8]))


async def find_changes(
    connection: asyncpg.Connection,
    tenant: str,
    table: str,
    rewrite: RowRewrite,
    after: Key | None,
    limit: int,
) -> tuple[Key | None, int, Changes]:
    """Read rows past a key; return the last key, the number of rows and the changes."""
    keys, texts = _key_columns(table), tuple(TEXT_COLUMNS[table])
    condition = _TENANT_CONDITIONS.get(table, "tenant = $1")
    if after is not None:
        condition += f" AND ({', '.join(keys)}) > ({_placeholders(table, keys, 3)})"
    selected = ", ".join((*(_select_expression(table, name) for name in keys), *texts))
    rows = await connection.fetch(
        f"SELECT {selected} FROM {table} WHERE {condition} ORDER BY {', '.join(keys)} LIMIT $2",
        *(tenant, limit, *(after or ())),
    )
    changes: Changes = []
    for row in map(tuple, rows):
        values = rewrite(row[len(keys) :])
        if values is None or tuple(values) != row[len(keys) :]:
            changes.append((row[: len(keys)], values))
    last = tuple(rows[-1])[: len(keys)] if len(rows) == limit else None
    return last, len(rows), changes


async def apply_changes(connection: asyncpg.Connection, table: str, changes: Changes) -> None:
    keys, texts = _key_columns(table), tuple(TEXT_COLUMNS[table])
    condition = f"({', '.join(keys)}) = ({_placeholders(table, keys, 1)})"
    first = len(keys) + 1
    assignments = ", ".join(f"{name} = ${first + n}" for n, name in enumerate(texts))
    for key, values in changes:
        if values is None:
            await connection.execute(f"DELETE FROM {table} WHERE {condition}", *key)
            continue
        await connection.execute(
            f"UPDATE {table} SET {assignments} WHERE {condition}", *key, *values
        )
        if table == "session" and values[0] != key[2]:
            await connection.execute(STATEMENTS["rename_session"], *key, values[0])
        if table == "session_entry":
            terms = tsvector(owner_term(key[0], key[1]), distinct_terms(values[0].decode()))
            await connection.execute(STATEMENTS["replace_session_entry_terms"], *key, terms)


def _key_columns(table: str) -> tuple[str, ...]:
    return _EVENT_KEY if table == "event" else TABLES[table][: KEY_LENGTHS[table]]


def _select_expression(table: str, column: str) -> str:
    """Transaction numbers are read and compared as text; the driver has no such type."""
    return "xid::text" if (table, column) == ("event", "xid") else column


def _placeholders(table: str, keys: Sequence[str], first: int) -> str:
    casts = {"xid": "::text::xid8"} if table == "event" else {}
    return ", ".join(f"${first + n}{casts.get(name, '')}" for n, name in enumerate(keys))


async def lock_scope(connection: asyncpg.Connection, scope: Scope) -> int | None:
    """Lock a scope for the transaction and return its row id; None if it has none."""
    id = await connection.fetchval(STATEMENTS["scope_id"], scope.tenant, scope.kind, scope.name)
    if id is not None:
        await connection.execute(STATEMENTS["lock_scope"], lock_number(scope_lock_name(scope)))
    return None if id is None else int(id)


async def replace_versions(
    connection: asyncpg.Connection,
    scope: Scope,
    replacements: Sequence[VersionReplacement],
    at: TimestampMs,
) -> tuple[int, set[int]]:
    """Replace contents of a scope; return how many, and the ids of the old contents."""
    replaced, old_contents = 0, set[int]()
    id = await lock_scope(connection, scope)
    for item in replacements if id is not None else ():
        key = (id, item.path.text, item.version)
        old = await connection.fetchrow(STATEMENTS["version_contents"], *key)
        if old is None or old[0] is None:
            continue
        entry = item.entry
        content = await _store(connection, entry.blob, at)
        base = await _store(connection, entry.base, at) if entry.base else None
        columns = (content, digest_bytes(entry.blob.digest), entry.blob.size, base, entry.type)
        await connection.execute(STATEMENTS["replace_version"], *key, *columns, int(item.redacted))
        old_contents |= {content for content in (old[0], old[2]) if content is not None}
        replaced += 1
    if replaced:
        await connection.execute(STATEMENTS["raise_scope_revision"], id)
    return replaced, old_contents


async def _store(connection: asyncpg.Connection, blob: Blob, at: TimestampMs) -> int:
    """Return the row id of a content, new if it has none."""
    if isinstance(blob.storage_ref, int):
        return blob.storage_ref
    row = (digest_bytes(blob.digest), blob.size, at, blob.storage_ref)
    return int(await connection.fetchval(STATEMENTS["add_content"], *row))


async def erase_path(
    connection: asyncpg.Connection, scope: Scope, path: Path
) -> tuple[int, set[int]]:
    """Delete a deleted path; return its versions and the ids of their contents."""
    id = await lock_scope(connection, scope)
    key = (id, path.text)
    rows = await connection.fetch(STATEMENTS["contents_of_deleted_path"], *key) if id else ()
    if rows:
        await connection.execute(STATEMENTS["begin_path_erasure"])
        await connection.execute(STATEMENTS["erase_path_versions"], *key)
        await connection.execute(STATEMENTS["erase_path_entry"], *key)
        await connection.execute(STATEMENTS["erase_source_path"], *key)
        await connection.execute(STATEMENTS["raise_scope_revision"], id)
    return len(rows), {content for row in rows for content in row if content is not None}
