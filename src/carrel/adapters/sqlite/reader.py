"""Reading on the event loop: a query takes some ten microseconds, a hop to a thread a hundred."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Mapping
from pathlib import Path as File
from typing import Any, Final, TypeVar

from carrel.adapters.sqlite.database import SQL, connect, transaction
from carrel.adapters.sqlite.rows import RECORDS, Key, head_of
from carrel.adapters.sqlite.wal_index import WalIndex
from carrel.core.identifiers import Path, Scope
from carrel.core.store.tree import Head, Tree

Found = TypeVar("Found")
_MOST: Final = 20_000
_BODIES: Final = 32


class Reader:
    """One connection for short reads, others in threads for long ones."""

    def __init__(self, file: File) -> None:
        self.db = connect(file)
        self.db.execute("PRAGMA query_only = ON")
        self._file = file
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._memo: dict[Any, Any] = {}
        self._heads: dict[Key, Head | None] = {}
        self._bodies: dict[int, bytes | None] = {}
        """What looks have brought along: whoever looks at a file mostly wants its bytes next."""
        self._revisions: dict[Scope, int] = {}
        self.places: dict[Scope, tuple[int, int, int] | None] = {}
        """Id, revision and number of files of scopes, None where there is none."""
        self._seen = b""
        self.index = WalIndex(file, self.db)
        self.hits = 0
        self.misses = 0

    def cached(self, key: Any, find: Callable[..., Found], *about: Any) -> Found:
        """What ``find`` gives, asked once for as long as nobody commits anything."""
        self._refresh()
        found: Found | None = self._memo.get(key)
        if found is None:
            self.misses += 1
            found = self._memo[key] = find(self.db, *about)
        else:
            self.hits += 1
        return found

    def look(self, scope: Scope, path: Path) -> Tree:
        """What one scope says of one path, known for as long as we see all that is committed."""
        self._refresh()
        key = (scope, path)
        revision = self._revisions.get(scope)
        if revision is None or key not in self._heads:
            self.misses += 1
            revision, head = self._looked_up(scope, path)
            self._revisions[scope], self._heads[key] = revision, head
        else:
            self.hits += 1
            head = self._heads[key]
        return Tree(scope, revision, {path: head} if head else {})

    def body(self, id: int) -> tuple[int, bytes | None] | None:
        """The bytes of one row, with its id: those that came with a look, or asked for now."""
        self._refresh()
        if id in self._bodies:
            return id, self._bodies.pop(id)
        found: tuple[int, bytes | None] | None = self.db.execute(SQL["body"], (id,)).fetchone()
        return found

    def _looked_up(self, scope: Scope, path: Path) -> tuple[int, Head | None]:
        """The scope's revision, 0 for one that is not there, and what it says of the path."""
        ask = (path.text, scope.tenant, scope.kind, scope.name)
        row = self.db.execute(SQL["one"], ask).fetchone()
        if row is None:
            return 0, None
        if row[1] is None:
            return row[0], None
        if len(self._bodies) >= _BODIES:
            self._bodies.clear()
        self._bodies[row[5]] = row[12]
        return row[0], head_of(row[1:12])

    def known_heads(self) -> Mapping[Key, Head | None]:
        """Heads that are sure to be current: for a writer, whom nobody can overtake."""
        return self._heads if self.index.version() == self._seen else {}

    def apply_commit(
        self,
        before: bytes,
        after: bytes,
        heads: Mapping[Key, Head],
        revisions: Mapping[Scope, int],
        *,
        records_changed: bool,
    ) -> None:
        """Go on from what a commit of ours has made true, unless another has come since."""
        if self._seen == before:
            records = None if records_changed else self._memo.get(RECORDS)
            self._memo.clear()
            self.places.clear()
            if records is not None:
                self._memo[RECORDS] = records
            self._seen = after
        if self._seen == after:
            self._heads.update(heads)
            self._revisions.update(revisions)

    def _refresh(self) -> None:
        version = self.index.version()
        if version != self._seen or len(self._memo) + len(self._heads) > _MOST:
            self._memo.clear()
            self.places.clear()
            self._heads.clear()
            self._revisions.clear()
            self._bodies.clear()
            self._seen = version

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
