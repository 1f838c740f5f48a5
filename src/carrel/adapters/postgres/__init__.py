"""Store in a PostgreSQL database, for any number of server processes."""

from __future__ import annotations

from carrel.adapters.postgres.migration_runner import PostgresSchemaMismatch, prepare
from carrel.adapters.postgres.store import PostgresStore, open_store

__all__ = ["PostgresSchemaMismatch", "PostgresStore", "open_store", "prepare"]
