"""Store in one SQLite file: reads on the event loop, one writer groups commits."""

from __future__ import annotations

from carrel.adapters.sqlite.store import SqliteStore, open_store

__all__ = ["SqliteStore", "open_store"]
