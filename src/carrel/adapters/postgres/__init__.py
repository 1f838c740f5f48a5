"""The whole store in a PostgreSQL database, for any number of processes at a time."""

from __future__ import annotations

from carrel.adapters.postgres.database import Incompatible, prepare
from carrel.adapters.postgres.store import PostgresStore, open_store

__all__ = ["Incompatible", "PostgresStore", "open_store", "prepare"]
