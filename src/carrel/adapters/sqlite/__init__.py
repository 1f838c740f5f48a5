"""The whole store in one SQLite file: readers on the event loop, one writer that groups commits."""

from __future__ import annotations

from carrel.adapters.sqlite.store import SqliteStore, open_store

__all__ = ["SqliteStore", "open_store"]
