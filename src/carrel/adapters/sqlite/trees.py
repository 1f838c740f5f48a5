"""Trees in SQLite, with a cache of whole trees."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from carrel.adapters.sqlite.commit_batch import CommitBatch
from carrel.adapters.sqlite.database import STATEMENTS, transaction
from carrel.adapters.sqlite.listing_checks import list_occupants
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.rows import (
    AFTER_ANY_PATH,
    Row,
    head_from_row,
    scopes_to_json,
    version_from_row,
)
from carrel.adapters.sqlite.writer import Writer
from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.lru_cache import LruCache
from carrel.core.runs import SnapshotLayer
from carrel.core.store.commit import (
    Applied,
    Commit,
    ExpectPathFree,
    Outcome,
    PathOccupant,
    only_deletes,
)
from carrel.core.store.entry import Head, Version
from carrel.core.store.tree import ScopeMoment, Tree, build_tree

_MAX_LOOP_WRITES: Final = 32
"""Calls with more writes run in a thread."""
_MIN_PRELOADED_WRITES: Final = 4
"""A commit with more writes reads all heads that it needs in one query."""
_MAX_LOOP_LISTINGS: Final = 8
"""Calls that read at least so many listings, or those of all followers, run in a thread."""
_MAX_CACHED_HEADS: Final = 50_000
"""Limit of heads in cached trees."""
_MAX_LOOP_FILES: Final = 500
"""Reads of more files or layers run in a thread."""


class SqliteTrees:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer
        self._cached_trees: LruCache[Scope, Tree] = LruCache(_MAX_CACHED_HEADS)
        """Whole trees of up to 500 files, valid while the scope's revision is unchanged."""

    async def read(
        self,
        layers: Sequence[Scope | SnapshotLayer],
        paths: Collection[Path] | None = None,
        *,
        prefix: str = "",
    ) -> tuple[Tree, ...]:
        layers = tuple(layers)
        if paths is not None and len(layers) == len(paths) == 1:
            [scope], [path] = layers, paths
            if isinstance(scope, Scope):
                return (self._reader.read_path(scope, path),)
        requested = None if paths is None else tuple(paths)
        if self._is_large_read(layers, requested):
            return await self._reader.scan(lambda db: _read(db, layers, requested, prefix))
        key = (layers, requested, prefix)
        if cached := self._find_cached(layers, requested, prefix):
            return cached
        return self._reader.get_or_query(
            key, lambda db: self._read_and_cache(db, layers, requested, prefix)
        )

    async def revisions(self, scopes: Sequence[Scope]) -> tuple[int, ...]:
        requested = tuple(scopes)
        return self._reader.get_or_query(requested, lambda _: self._revisions(requested))

    async def versions(
        self, requests: Sequence[tuple[Scope, Path, int]]
    ) -> tuple[Version | None, ...]:
        requested = json.dumps([[s.tenant, s.kind, s.name, p.text, n] for s, p, n in requests])
        rows = self._reader.db.execute(STATEMENTS["versions"], (requested,)).fetchall()
        versions_by_index = {row[0]: version_from_row(row[1:]) for row in rows}
        return tuple(versions_by_index.get(index) for index in range(len(requests)))

    async def history(
        self, scope: Scope, path: Path, *, before: int | None = None, limit: int = 100
    ) -> tuple[Version, ...]:
        before_version = 2**62 if before is None else before
        parameters = (path.text, before_version, scope.tenant, scope.kind, scope.name, limit)
        return self._reader.get_or_query(("history", *parameters), _query_history, parameters)

    async def log(
        self, scope: Scope, *, after: tuple[int, str, int] = (0, "", 0), limit: int = 1000
    ) -> tuple[Version, ...]:
        parameters = (scope.tenant, scope.kind, scope.name, *after, limit)
        rows = await self._reader.scan(
            lambda db: db.execute(STATEMENTS["version_log"], parameters).fetchall()
        )
        return tuple(map(version_from_row, rows))

    async def latest_versions(
        self, scope: Scope, *, before: tuple[int, str, int] | None = None, limit: int = 1000
    ) -> tuple[Version, ...]:
        position = before or (2**62, "", 0)
        parameters = (scope.tenant, scope.kind, scope.name, *position, limit)
        rows = await self._reader.scan(
            lambda db: db.execute(STATEMENTS["latest_versions"], parameters).fetchall()
        )
        return tuple(map(version_from_row, rows))

    async def complete_since(self, scope: Scope) -> int:
        parameters = (scope.tenant, scope.kind, scope.name)
        [row] = await self._reader.scan(
            lambda db: db.execute(STATEMENTS["complete_since"], parameters).fetchall()
        )
        return int(row[0])

    async def moments(self, scopes: Sequence[Scope], at: TimestampMs) -> tuple[ScopeMoment, ...]:
        return await self._reader.scan(
            lambda db: tuple(_read_moment(db, scope, at) for scope in scopes)
        )

    async def find_occupants(self, check: ExpectPathFree) -> tuple[PathOccupant, ...]:
        if not check.reads_listing:
            return ()
        return tuple(await self._reader.scan(lambda db: list_occupants(db, check)))

    async def commit(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        if not commits:
            return ()
        writes = listings = 0
        for commit in commits:
            writes += len(commit.writes) + len(commit.changes)
            if commit.unchanged_paths is not None:
                listings += _MAX_LOOP_LISTINGS
            for check in commit.path_checks:
                if check.reads_listing:
                    listings += 1 if check.followers is None else _MAX_LOOP_LISTINGS
        work = partial(self._apply, commits)
        return await self._writer.submit(
            work,
            is_long=writes > _MAX_LOOP_WRITES or listings >= _MAX_LOOP_LISTINGS,
            commits=commits,
            frees_space=all(map(only_deletes, commits)),
        )

    def _apply(
        self, commits: Sequence[Commit], _: sqlite3.Connection, batch: CommitBatch
    ) -> tuple[Outcome, ...]:
        if len(commits) > 1 or len(commits[0].writes) > _MIN_PRELOADED_WRITES:
            batch.preload(commits)
        outcomes, counts = [], self._writer.counts
        for commit in commits:
            outcome = batch.apply(commit)
            outcomes.append(outcome)
            if type(outcome) is Applied:
                counts.commits += 1
            else:
                counts.conflicts += 1
        return tuple(outcomes)

    def _revisions(self, scopes: tuple[Scope, ...]) -> tuple[int, ...]:
        rows = self._scope_rows(scopes)
        return tuple(rows[index][1] if index in rows else 0 for index in range(len(scopes)))

    def _scope_rows(self, scopes: tuple[Scope, ...]) -> Mapping[int, tuple[int, int, int]]:
        """Return (id, revision, files) by index, cached; scopes without a row are absent."""
        return self._reader.get_or_query(
            ("scope_rows", scopes), lambda db: self._load_scope_rows(db, scopes)
        )

    def _load_scope_rows(
        self, db: sqlite3.Connection, scopes: tuple[Scope, ...]
    ) -> Mapping[int, tuple[int, int, int]]:
        cached = self._reader.scope_rows
        missing = [scope for scope in scopes if scope not in cached]
        if len(missing) == 1:
            [scope] = missing
            row = db.execute(STATEMENTS["scope"], (scope.tenant, scope.kind, scope.name)).fetchone()
            cached[scope] = row and row[:3]
        elif missing:
            loaded = _query_scopes(db, missing)
            cached.update((scope, loaded.get(index)) for index, scope in enumerate(missing))
        return {
            index: scope_row for index, scope in enumerate(scopes) if (scope_row := cached[scope])
        }

    def _find_cached(
        self,
        layers: tuple[Scope | SnapshotLayer, ...],
        paths: tuple[Path, ...] | None,
        prefix: str,
    ) -> tuple[Tree, ...] | None:
        """Return trees of cached heads, or cached whole trees, if all are current, else None."""
        scopes = tuple(layer for layer in layers if isinstance(layer, Scope))
        if len(scopes) < len(layers) or prefix:
            return None
        if paths is not None:
            return self._reader.find_paths(scopes, paths)
        rows = self._scope_rows(scopes)
        trees = []
        for index, scope in enumerate(scopes):
            revision = rows[index][1] if index in rows else 0
            tree = Tree(scope, 0, {}) if not revision else self._cached_trees.get(scope)
            if tree is None or tree.revision != revision:
                return None
            trees.append(tree)
        return tuple(trees)

    def _read_and_cache(
        self,
        db: sqlite3.Connection,
        layers: tuple[Scope | SnapshotLayer, ...],
        paths: tuple[Path, ...] | None,
        prefix: str,
    ) -> tuple[Tree, ...]:
        trees = _read_in_transaction(db, layers, paths, prefix)
        if paths is not None:
            if all(isinstance(layer, Scope) for layer in layers):
                self._reader.cache_paths(trees, paths)
        elif not prefix:
            for tree, layer in zip(trees, layers, strict=True):
                if tree.scope == layer and tree.revision:
                    self._cached_trees.put(
                        tree.scope, tree, len(tree.heads) + len(tree.tombstones) + 1
                    )
        return trees

    def _is_large_read(
        self, layers: tuple[Scope | SnapshotLayer, ...], paths: tuple[Path, ...] | None
    ) -> bool:
        """Whether a read runs in a thread."""
        if len(layers) > _MAX_LOOP_FILES:
            return True
        if paths is None:
            return self._needs_thread(layers)
        return len(layers) * len(paths) > _MAX_LOOP_FILES

    def _needs_thread(self, layers: tuple[Scope | SnapshotLayer, ...]) -> bool:
        scopes = tuple(_scope(layer) for layer in layers)
        scope_rows = self._scope_rows(scopes)
        return sum(files for _, _, files in scope_rows.values()) > _MAX_LOOP_FILES


def _query_history(db: sqlite3.Connection, parameters: Row) -> tuple[Version, ...]:
    return tuple(map(version_from_row, db.execute(STATEMENTS["history"], parameters).fetchall()))


def _scope(layer: Scope | SnapshotLayer) -> Scope:
    return layer.scope if isinstance(layer, SnapshotLayer) else layer


def _read_in_transaction(
    db: sqlite3.Connection,
    layers: Sequence[Scope | SnapshotLayer],
    paths: Sequence[Path] | None,
    prefix: str,
) -> tuple[Tree, ...]:
    with transaction(db, "DEFERRED"):
        return _read(db, layers, paths, prefix)


def _query_scopes(
    db: sqlite3.Connection, scopes: Sequence[Scope]
) -> Mapping[int, tuple[int, int, int]]:
    """Return (id, revision, files) by index in `scopes`, for scopes with a row."""
    rows = db.execute(STATEMENTS["scopes"], (scopes_to_json(scopes),)).fetchall()
    return {index: (id, revision, files) for index, id, revision, files, _ in rows}


def _read(
    db: sqlite3.Connection,
    layers: Sequence[Scope | SnapshotLayer],
    paths: Sequence[Path] | None,
    prefix: str,
) -> tuple[Tree, ...]:
    scopes = [_scope(layer) for layer in layers]
    scope_rows = _query_scopes(db, scopes)
    current = {
        scope_rows[index][0]
        for index, layer_at in enumerate(layers)
        if index in scope_rows and isinstance(layer_at, Scope)
    }
    heads = _current_heads(db, current, paths, prefix) if current else {}
    trees = []
    for index, layer in enumerate(layers):
        id, revision, _ = scope_rows.get(index, (0, 0, 0))
        if isinstance(layer, SnapshotLayer):
            heads_then = _heads_at_revision(db, id, layer.revision, paths, prefix) if id else ()
            trees.append(build_tree(layer.scope, layer.revision, heads_then, paths))
        else:
            trees.append(build_tree(layer, revision, heads.get(id, ()), paths))
    return tuple(trees)


def _current_heads(
    db: sqlite3.Connection, ids: Collection[int], paths: Sequence[Path] | None, prefix: str
) -> dict[int, list[Head]]:
    scope_ids = json.dumps(sorted(ids))
    if paths is None:
        rows = db.execute(
            STATEMENTS["heads_by_prefix"], (scope_ids, prefix, prefix + AFTER_ANY_PATH)
        )
    else:
        rows = db.execute(
            STATEMENTS["heads_by_path"], (scope_ids, json.dumps([path.text for path in paths]))
        )
    heads: dict[int, list[Head]] = {}
    for row in rows.fetchall():
        heads.setdefault(row[0], []).append(head_from_row(row[1:]))
    return heads


def _heads_at_revision(
    db: sqlite3.Connection, id: int, revision: int, paths: Sequence[Path] | None, prefix: str
) -> list[Head]:
    if paths is None:
        rows = db.execute(
            STATEMENTS["heads_by_prefix_at_revision"],
            (id, revision, prefix, prefix + AFTER_ANY_PATH),
        )
    else:
        rows = db.execute(
            STATEMENTS["heads_by_path_at_revision"],
            (id, revision, json.dumps([p.text for p in paths])),
        )
    return list(map(head_from_row, rows.fetchall()))


def _read_moment(db: sqlite3.Connection, scope: Scope, at: TimestampMs) -> ScopeMoment:
    name = (scope.tenant, scope.kind, scope.name)
    [revision] = db.execute(STATEMENTS["revision_at"], (*name, at)).fetchone()
    rows = db.execute(STATEMENTS["pruned_paths"], (*name, revision)).fetchall()
    return ScopeMoment(revision, frozenset(Path(text) for (text,) in rows))
