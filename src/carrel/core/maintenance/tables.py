"""Tables and columns of a store, as archived in a backup and checked by doctor.

Every store reads and writes these rows alike: booleans are 0 or 1, JSON is text, and the delivery
cursor is the id of the last event that was turned into deliveries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_ENTRY_COLUMNS: Final[Mapping[str, Any]] = {
    "scope": int,
    "path": str,
    "version": int,
    "revision": int,
    "at": int,
    "content": int | None,
    "digest": bytes | None,
    "size": int | None,
    "base": int | None,
    "type": str | None,
}

_ATTRIBUTE_COLUMNS: Final[Mapping[str, Any]] = {"mode": int | None, "mtime_ns": int | None}
_FILE_STATE: Final[Mapping[str, Any]] = {"file_id": str | None, "reviewed": str | None}

COLUMNS: Final[Mapping[str, Mapping[str, Any]]] = {
    "counter": {"name": str, "value": int},
    "scope": {
        **{"id": int, "tenant": str, "kind": str, "name": str},
        **{"revision": int, "files": int, "size": int},
    },
    "content": {"id": int, "digest": bytes, "size": int, "created_at": int, "body": bytes | None},
    "entry": {**_ENTRY_COLUMNS, "version_offset": int, **_ATTRIBUTE_COLUMNS, **_FILE_STATE},
    "version": {
        **_ENTRY_COLUMNS,
        **{"author": str, "reason": str, "run": str | None, "version_offset": int},
        **_ATTRIBUTE_COLUMNS,
        **{"redacted": int, **_FILE_STATE, "source": str | None},
    },
    "run": {
        **{"id": str, "tenant": str, "scope": int, "workflow": str, "mode": str, "status": str},
        **{"author": str, "started_at": int, "ended_at": int | None, "parent": str | None},
        **{"replay_of": str | None, "snapshot_kept": int, "variables": str, "event_count": int},
        **{"session": str | None, "reported_at": int, "abandoned_at": int | None},
        **{"reason": str | None, "prompt": str | None},
    },
    "run_layer": {"run": str, "position": int, "scope": int, "revision": int},
    "event": {
        **{"id": int, "tenant": str, "scope": int | None, "run": str | None},
        **{"sequence": int | None, "type": str, "payload": str, "at": int},
    },
    "record": {
        **{"tenant": str, "type": str, "id": str},
        **{"revision": int, "body": str, "created_at": int, "updated_at": int},
    },
    "unique_key": {"name": str, "tenant": str, "type": str, "id": str},
    "index_key": {"tenant": str, "type": str, "name": str, "id": str},
    "collection_revision": {"tenant": str, "type": str, "revision": int},
    "audit": {
        **{"id": int, "tenant": str, "at": int, "author": str, "reason": str, "subjects": str},
        **{"key_id": str, "key_name": str, "action": str},
    },
    "audit_key": {"tenant": str, "name": str, "at": int, "audit": int},
    "key_usage": {"id": str, "last_used_at": int},
    "idempotency_key": {
        **{"tenant": str, "endpoint": str, "key": str, "fingerprint": str, "claimed_at": int},
        **{"versions": str | None, "status": int | None, "sealed": str | None},
        "revision": int | None,
    },
    "delivery": {
        **{"id": str, "tenant": str, "webhook": str, "type": str, "body": bytes},
        **{"state": str, "created_at": int, "due_at": int, "attempts": int},
    },
    "attempt": {
        **{"delivery": str, "position": int, "at": int},
        **{"status": int | None, "problem": str, "elapsed_ms": int},
    },
    "delivery_cursor": {"name": str, "cursor": str},
    "session": {
        **{"tenant": str, "agent": str, "id": str, "mode": str, "plugin": str},
        **{"started_at": int, "ended_at": int | None, "entry_count": int, "last_sequence": int},
        **{"last_entry_at": int, "run": str | None},
    },
    "session_entry": {
        **{"tenant": str, "agent": str, "session": str, "sequence": int, "at": int, "role": str},
        **{"content": bytes, "message": str | None, "plugin": str, "sender": str | None},
        **{"item": str | None, "run": str | None},
    },
    "recall": {
        **{"tenant": str, "agent": str, "memory": str, "id": str},
        **{"query": str, "score": float, "at": int},
    },
}
"""Columns with their types by table; referenced tables come first."""

OPTIONAL_TABLES: Final = frozenset({"session", "session_entry", "recall"})
"""Tables added in later versions; older backups lack them."""

ADDED_COLUMNS: Final[Mapping[str, Mapping[str, Any]]] = {
    "entry": {
        **{"version_offset": 0, "mode": None, "mtime_ns": None},
        **{"file_id": None, "reviewed": None},
    },
    "version": {
        **{"version_offset": 0, "mode": None, "mtime_ns": None, "redacted": 0},
        **{"file_id": None, "reviewed": None, "source": None},
    },
    "audit": {"key_id": "", "key_name": "", "action": ""},
    "idempotency_key": {"revision": None},
    "run": {
        **{"session": None, "reported_at": 0, "abandoned_at": None, "reason": None},
        "prompt": None,
    },
}
"""Last columns of a table that were added later, with their values in older backups."""

TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    table: tuple(columns) for table, columns in COLUMNS.items()
}

DERIVED_TABLES: Final = frozenset(
    {"search_term", "tally", "tally_change", "agent_group", "agent_file", "count_everything"}
)
"""Tables and views made of the others, also by a restore."""

LARGE_BLOB_TABLES: Final = frozenset({"large_content", "content_part"})
"""Tables of PostgreSQL whose contents a backup holds as objects, like those of a bucket."""

KEY_LENGTHS: Final[Mapping[str, int]] = {
    **dict.fromkeys(TABLES, 1),
    **{"entry": 2, "version": 3, "run_layer": 2, "record": 3, "index_key": 4},
    **{"collection_revision": 2, "idempotency_key": 3, "attempt": 2},
    **{"session": 3, "session_entry": 4, "recall": 4, "audit_key": 4},
}
"""Number of leading columns that form the unique, ordered key of a table."""


def key_columns(table: str) -> str:
    """Key of a table as an SQL column list."""
    return ", ".join(TABLES[table][: KEY_LENGTHS[table]])
