"""The store as tables of plain rows: what a backup holds and what the doctor examines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "counter": ("name", "value"),
    "scope": ("id", "tenant", "kind", "name", "revision", "files", "size"),
    "content": ("id", "digest", "size", "at", "body"),
    "entry": (
        *("scope", "path", "version", "revision", "at"),
        *("content", "digest", "size", "base", "type"),
    ),
    "version": (
        *("scope", "path", "version", "revision", "at"),
        *("content", "digest", "size", "base", "type", "by", "why", "run"),
    ),
    "run": (
        *("id", "tenant", "scope", "workflow", "mode", "status", "by", "started", "ended"),
        *("parent", "replay_of", "kept", "variables", "events"),
    ),
    "run_layer": ("run", "place", "scope", "revision"),
    "event": ("id", "tenant", "scope", "run", "sequence", "type", "payload", "at"),
    "record": ("tenant", "noun", "id", "revision", "body", "created", "changed"),
    "handle": ("name", "tenant", "noun", "id"),
    "link": ("tenant", "noun", "name", "id"),
    "shelf": ("tenant", "noun", "revision"),
    "audit": ("id", "tenant", "at", "by", "why", "subjects"),
    "usage": ("id", "at"),
    "receipt": (
        *("tenant", "endpoint", "key", "fingerprint", "claimed"),
        *("versions", "status", "sealed"),
    ),
    "delivery": ("id", "tenant", "webhook", "type", "body", "state", "created", "due", "tries"),
    "attempt": ("delivery", "place", "at", "status", "problem", "took"),
    "mark": ("name", "cursor"),
}
"""Table → its columns, in an order in which what is referred to comes first."""
