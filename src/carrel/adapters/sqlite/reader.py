"""Reads on the event loop: a query takes about 10 µs, a thread hop about 100 µs."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as File
from typing import Any, Final, TypeVar

from carrel.adapters.sqlite.damage import DamagedPage, name_damage
from carrel.adapters.sqlite.database import STATEMENTS, connect, transaction
from carrel.adapters.sqlite.rows import RECORDS_REVISION_KEY, HeadKey, head_from_row
from carrel.adapters.sqlite.wal_index import WalIndex
from carrel.core.identifiers import Path, Scope
from carrel.core.store.entry import Head
from carrel.core.store.tree import Tree
from carrel.ports.blobs import THREAD_THRESHOLD_BYTES

Result = TypeVar("Result")
_MAX_CACHED: Final = 20_000
_MAX_CACHED_BODIES: Final = 32


class Reader:
    """One connection for short reads, and one per thread for long ones."""

    def __init__(self, file: File) -> None:
        self.db = connect(file)
        self.db.execute("PRAGMA query_only = ON")
        self._file = file
        self._local = threading.local()
        self._thread_connections: list[sqlite3.Connection] = []
        self._results: dict[Any, Any] = {}
        self._heads: dict[HeadKey, Head | None] = {}
        self._bodies: dict[int, bytes | None] = {}
        """Contents read together with heads, since callers mostly read them next."""
        self._revisions: dict[Scope, int] = {}
        self.scope_rows: dict[Scope, tuple[int, int, int] | None] = {}
        """Id, revision and number of files by scope; None if it has no row."""
        self._version = b""
        self.index = WalIndex(file, self.db)
        self.hits = 0
        self.misses = 0

    def get_or_query(self, key: Any, find: Callable[..., Result], *arguments: Any) -> Result:
        """Return the result of ``find``, cached until the next commit of any process."""
        self._refresh()
        result: Result | None = self._results.get(key)
        if result is None:
            self.misses += 1
            result = self._results[key] = find(self.db, *arguments)
        else:
            self.hits += 1
        return result

    def read_path(self, scope: Scope, path: Path) -> Tree:
        """Return a tree with one path, cached until another process commits."""
        self._refresh()
        key = (scope, path)
        revision = self._revisions.get(scope)
        if revision is None or key not in self._heads:
            self.misses += 1
            with name_damage(path.text):
                revision, head = self._query_path(scope, path)
            self._revisions[scope], self._heads[key] = revision, head
        else:
            self.hits += 1
            head = self._heads[key]
        return Tree(scope, revision, {path: head} if head else {})

    def find_paths(self, scopes: Sequence[Scope], paths: Sequence[Path]) -> tuple[Tree, ...] | None:
        """Return trees with these paths if the head of each is cached, else None."""
        self._refresh()
        trees = []
        for scope in scopes:
            revision, heads = self._revisions.get(scope), {}
            if revision is None:
                return None
            for path in paths:
                try:
                    head = self._heads[scope, path]
                except KeyError:
                    return None
                if head is not None:
                    heads[path] = head
            trees.append(Tree(scope, revision, heads))
        self.hits += 1
        return tuple(trees)

    def cache_paths(self, trees: Sequence[Tree], paths: Sequence[Path]) -> None:
        """Cache the heads of trees that were read by path since the last refresh."""
        for tree in trees:
            self._revisions[tree.scope] = tree.revision
            self._heads.update(((tree.scope, path), tree.heads.get(path)) for path in paths)

    def read_body(self, id: int) -> tuple[int, bytes | None] | None:
        """Return id and content of one row, cached or read now."""
        self._refresh()
        if id in self._bodies:
            return id, self._bodies.pop(id)
        row: tuple[int, bytes | None] | None = self.db.execute(
            STATEMENTS["blob_body"], (id,)
        ).fetchone()
        return row

    def _query_path(self, scope: Scope, path: Path) -> tuple[int, Head | None]:
        """Return the scope's revision (0 if unknown) and the path's head.

        A file with damaged content has a head still, so that it can be replaced or deleted.
        """
        parameters = (path.text, scope.tenant, scope.kind, scope.name)
        try:
            row = self.db.execute(STATEMENTS["head_with_body"], parameters).fetchone()
        except DamagedPage:
            row = self.db.execute(STATEMENTS["head_without_body"], parameters).fetchone()
            return (row[0], head_from_row(row[1:17])) if row and row[1] else (0, None)
        if row is None:
            return 0, None
        if row[1] is None:
            return row[0], None
        if len(self._bodies) >= _MAX_CACHED_BODIES:
            self._bodies.clear()
        if row[5] is not None and row[7] <= THREAD_THRESHOLD_BYTES:
            self._bodies[row[5]] = row[17]
        return row[0], head_from_row(row[1:17])

    def current_heads(self) -> Mapping[HeadKey, Head | None]:
        """Return cached heads if they are current; valid while the caller holds the lock.

        A caller in another thread copies them, since reads on the loop add more.
        """
        return self._heads if self.index.version() == self._version else {}

    def apply_commit(
        self,
        before: bytes,
        after: bytes,
        heads: Mapping[HeadKey, Head],
        revisions: Mapping[Scope, int],
        *,
        records_changed: bool,
    ) -> None:
        """Update the caches with our own commit, unless another process committed since."""
        if self._version == before:
            records = None if records_changed else self._results.get(RECORDS_REVISION_KEY)
            self._results.clear()
            self.scope_rows.clear()
            if records is not None:
                self._results[RECORDS_REVISION_KEY] = records
            self._version = after
        if self._version == after:
            self._heads.update(heads)
            self._revisions.update(revisions)

    def _refresh(self) -> None:
        version = self.index.version()
        if version != self._version or len(self._results) + len(self._heads) > _MAX_CACHED:
            self._results.clear()
            self.scope_rows.clear()
            self._heads.clear()
            self._revisions.clear()
            self._bodies.clear()
            self._version = version

    async def scan(self, find: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run a long read in a thread, on one consistent snapshot."""
        return await asyncio.to_thread(self._scan, find)

    def _scan(self, find: Callable[[sqlite3.Connection], Result]) -> Result:
        db = getattr(self._local, "db", None)
        if db is None:
            db = self._local.db = connect(self._file)
            db.execute("PRAGMA query_only = ON")
            self._thread_connections.append(db)
        with transaction(db, "DEFERRED"):
            return find(db)

    def close(self) -> None:
        for db in (self.db, *self._thread_connections):
            db.close()
        self.index.close()
