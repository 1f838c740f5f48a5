"""Reading on the event loop: a query takes some ten microseconds, a hop to a thread a hundred."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Mapping
from pathlib import Path as File
from typing import Any, Final, TypeVar

from carrel.adapters.sqlite.database import connect, transaction
from carrel.adapters.sqlite.index import WalIndex

Found = TypeVar("Found")
_MOST: Final = 20_000


class Reader:
    """One connection for short reads, others in threads for long ones."""

    def __init__(self, file: File) -> None:
        self.db = connect(file)
        self.db.execute("PRAGMA query_only = ON")
        self._file = file
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._memo: dict[Any, Any] = {}
        self._seen = b""
        self.index = WalIndex(file, self.db)
        self.hits = 0
        self.misses = 0

    def remember(self, key: Any, find: Callable[..., Found], *about: Any) -> Found:
        """What ``find`` gives, asked once for as long as nobody commits anything."""
        version = self.index.version()
        if version != self._seen or len(self._memo) > _MOST:
            self._memo.clear()
            self._seen = version
        found: Found | None = self._memo.get(key)
        if found is None:
            self.misses += 1
            found = self._memo[key] = find(self.db, *about)
        else:
            self.hits += 1
        return found

    def current(self) -> Mapping[Any, Any]:
        """All that is remembered, if it still holds: for a writer, whom nobody can overtake."""
        return self._memo if self.index.version() == self._seen else {}

    def adopt(self, before: bytes, after: bytes, learnt: Mapping[Any, Any]) -> None:
        """Remember what a commit of ours has made true, unless another has come since."""
        if self._seen == before:
            self._memo.clear()
            self._seen = after
        if self._seen == after:
            self._memo.update(learnt)

    async def scan(self, find: Callable[[sqlite3.Connection], Found]) -> Found:
        """Run a long read in a thread, on one consistent view."""
        return await asyncio.to_thread(self._scan, find)

    def _scan(self, find: Callable[[sqlite3.Connection], Found]) -> Found:
        db = getattr(self._local, "db", None)
        if db is None:
            db = self._local.db = connect(self._file)
            db.execute("PRAGMA query_only = ON")
            self._opened.append(db)
        with transaction(db, "DEFERRED"):
            return find(db)

    def close(self) -> None:
        for db in (self.db, *self._opened):
            db.close()
        self.index.close()
