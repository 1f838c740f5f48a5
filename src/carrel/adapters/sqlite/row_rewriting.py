"""Rewrites text columns and old versions in the SQLite file."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.rows import (
    digest_bytes,
    record_from_row,
    scope_from_row,
    version_from_row,
)
from carrel.adapters.sqlite.session_search import owner_term
from carrel.adapters.sqlite.sessions import add_terms
from carrel.core.identifiers import TimestampMs
from carrel.core.maintenance.tables import KEY_LENGTHS, TABLES
from carrel.core.maintenance.text_columns import TEXT_COLUMNS, RowRewrite
from carrel.core.search.full_text import distinct_terms
from carrel.core.store.blob import Blob
from carrel.ports.erasure import RecordWithKeys, StoredVersion, VersionReplacement

Key = tuple[Any, ...]
Changes = list[tuple[Key, Sequence[Any] | None]]

_TENANT_CONDITIONS: Final = {
    "version": "scope IN (SELECT id FROM scope WHERE tenant = ?)",
    "attempt": "delivery IN (SELECT id FROM delivery WHERE tenant = ?)",
}


def list_versions(db: sqlite3.Connection, *parameters: Any) -> tuple[StoredVersion, ...]:
    rows = db.execute(STATEMENTS["stored_versions"], parameters).fetchall()
    return tuple(
        StoredVersion(
            scope_from_row(*row[:3]), version_from_row(row[5:]), bool(row[3]), tuple(row[4:7])
        )
        for row in rows
    )


def list_records(db: sqlite3.Connection, *parameters: Any) -> tuple[RecordWithKeys, ...]:
    rows = db.execute(STATEMENTS["stored_records"], parameters).fetchall()
    return tuple(
        RecordWithKeys(record_from_row(row[:7]), *(tuple(json.loads(keys)) for keys in row[7:]))
        for row in rows
    )


def find_changes(
    db: sqlite3.Connection,
    tenant: str,
    table: str,
    rewrite: RowRewrite,
    after: Key | None,
    limit: int,
) -> tuple[Key | None, int, Changes]:
    """Read rows past a key; return the last key, the number of rows and the changes."""
    keys, texts = TABLES[table][: KEY_LENGTHS[table]], TEXT_COLUMNS[table]
    condition = _TENANT_CONDITIONS.get(table, "tenant = ?")
    if after is not None:
        condition += f" AND ({', '.join(keys)}) > ({', '.join('?' for _ in keys)})"
    rows = db.execute(
        f"SELECT {', '.join((*keys, *texts))} FROM {table} WHERE {condition}"
        f" ORDER BY {', '.join(keys)} LIMIT ?",
        (tenant, *(after or ()), limit),
    ).fetchall()
    changes: Changes = []
    for row in rows:
        values = rewrite(row[len(keys) :])
        if values is None or tuple(values) != row[len(keys) :]:
            changes.append((row[: len(keys)], values))
    last = rows[-1][: len(keys)] if len(rows) == limit else None
    return last, len(rows), changes


def apply_changes(db: sqlite3.Connection, table: str, changes: Changes) -> None:
    keys, texts = TABLES[table][: KEY_LENGTHS[table]], TEXT_COLUMNS[table]
    condition = " AND ".join(f"{name} = ?" for name in keys)
    assignments = ", ".join(f"{name} = ?" for name in texts)
    for key, values in changes:
        if values is None:
            db.execute(f"DELETE FROM {table} WHERE {condition}", key)
            continue
        if table == "session_entry":
            _index_again(db, key, values[0])
        if table == "session" and values[0] != key[2]:
            for name in ("rename_session_in_entries", "rename_session_in_runs"):
                db.execute(STATEMENTS[name], (*key, values[0]))
        db.execute(f"UPDATE {table} SET {assignments} WHERE {condition}", (*values, *key))


def _index_again(db: sqlite3.Connection, key: Key, content: bytes) -> None:
    """Replace the terms of an entry; the index deletes them only if given again."""
    id, old, is_indexed = db.execute(STATEMENTS["indexed_entry"], key).fetchone()
    if not is_indexed:
        return
    owner = owner_term(key[0], key[1])
    terms = " ".join(distinct_terms(old.decode()))
    db.execute(STATEMENTS["delete_session_entry_terms"], (id, owner, terms))
    add_terms(db, id, owner, distinct_terms(content.decode()))


def replace_versions(
    db: sqlite3.Connection,
    replacements: Sequence[VersionReplacement],
    at: TimestampMs,
) -> tuple[int, list[int]]:
    """Replace contents; return how many, and the ids of the old contents."""
    next_id = _next_content_id(db)
    replaced, old_contents, scopes = 0, set[int](), set[int]()
    for item in replacements:
        scope = item.scope
        row = db.execute(STATEMENTS["scope"], (scope.tenant, scope.kind, scope.name)).fetchone()
        key = (row[0], item.path.text, item.version) if row else None
        old = key and db.execute(STATEMENTS["version_contents"], key).fetchone()
        if not key or not old or old[0] is None:
            continue
        entry = item.entry
        content = _store(db, entry.blob, at, next_id)
        base = entry.base and _store(db, entry.base, at, next_id)
        columns = (content, digest_bytes(entry.blob.digest), entry.blob.size, base, entry.type)
        db.execute(STATEMENTS["replace_version"], (*key, *columns, int(item.redacted)))
        old_contents |= {id for id in (old[0], old[2]) if id is not None}
        scopes.add(key[0])
        replaced += 1
    db.executemany(STATEMENTS["raise_scope_revision"], [(id,) for id in sorted(scopes)])
    return replaced, sorted(old_contents)


def _next_content_id(db: sqlite3.Connection) -> Callable[[], int]:
    counters = dict(db.execute(STATEMENTS["counters"]).fetchall())
    ids = iter(range(counters.get("content", 0) + 1, 2**62))
    return lambda: next(ids)


def _store(db: sqlite3.Connection, blob: Blob, at: TimestampMs, next_id: Callable[[], int]) -> int:
    """Return the row id of a content, new if it has none."""
    if isinstance(blob.storage_ref, int):
        return blob.storage_ref
    id = next_id()
    row = (id, digest_bytes(blob.digest), blob.size, at, blob.storage_ref)
    db.execute(STATEMENTS["add_content"], row)
    return id


def erase_path(db: sqlite3.Connection, scope: int, path: str) -> tuple[int, list[int]]:
    """Delete a deleted path; return its versions and the ids of their contents."""
    rows = db.execute(STATEMENTS["contents_of_deleted_path"], (scope, path)).fetchall()
    if rows:
        db.execute(STATEMENTS["erase_path_versions"], (scope, path))
        db.execute(STATEMENTS["erase_path_entry"], (scope, path))
        db.execute(STATEMENTS["erase_source_path"], (scope, path))
        db.execute(STATEMENTS["raise_scope_revision"], (scope,))
    return len(rows), [id for row in rows for id in row if id is not None]
