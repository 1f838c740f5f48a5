"""Trees in SQLite."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from carrel.adapters.sqlite.commit_batch import CommitBatch
from carrel.adapters.sqlite.database import SQL, transaction
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.rows import AFTER_ANY, Row, head_of, names, version_of
from carrel.adapters.sqlite.writer import Writer
from carrel.core.identifiers import Path, Scope
from carrel.core.runs import SnapshotLayer
from carrel.core.store.tree import Applied, Commit, Head, Outcome, Tree, Version

_MANY: Final = 32
"""Writes in one call from which on they are done in a thread."""
_KEPT: Final = 50_000
"""Files whose heads are kept with their trees."""
_LONG: Final = 500
"""Files, or layers, from which on they are read in a thread."""


class SqliteTrees:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer
        self._trees: dict[Scope, Tree] = {}
        """Whole trees of up to some hundred files, each good for as long as its revision is."""
        self._kept = 0

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
                return (self._reader.look(scope, path),)
        wanted = None if paths is None else tuple(paths)
        if len(layers) > _LONG or (wanted is None and self._is_long(layers)):
            return await self._reader.scan(lambda db: _read(db, layers, wanted, prefix))
        key = (layers, wanted, prefix)
        if wanted is None and not prefix and (known := self._known(layers)):
            return known
        return self._reader.cached(key, lambda db: self._whole(db, layers, wanted, prefix))

    async def revisions(self, scopes: Sequence[Scope]) -> tuple[int, ...]:
        wanted = tuple(scopes)
        return self._reader.cached(wanted, lambda _: self._revisions(wanted))

    async def versions(self, asks: Sequence[tuple[Scope, Path, int]]) -> tuple[Version | None, ...]:
        wanted = json.dumps([[s.tenant, s.kind, s.name, p.text, n] for s, p, n in asks])
        rows = self._reader.db.execute(SQL["versions"], (wanted,)).fetchall()
        found = {row[0]: version_of(row[1:]) for row in rows}
        return tuple(found.get(place) for place in range(len(asks)))

    async def history(
        self, scope: Scope, path: Path, *, before: int | None = None, limit: int = 100
    ) -> tuple[Version, ...]:
        below = 2**62 if before is None else before
        ask = (path.text, below, scope.tenant, scope.kind, scope.name, limit)
        return self._reader.cached(("history", *ask), _history, ask)

    async def log(
        self, scope: Scope, *, after: tuple[int, str, int] = (0, "", 0), limit: int = 1000
    ) -> tuple[Version, ...]:
        ask = (scope.tenant, scope.kind, scope.name, *after, limit)
        rows = await self._reader.scan(lambda db: db.execute(SQL["log"], ask).fetchall())
        return tuple(map(version_of, rows))

    async def complete_since(self, scope: Scope) -> int:
        ask = (scope.tenant, scope.kind, scope.name)
        [row] = await self._reader.scan(lambda db: db.execute(SQL["unbroken"], ask).fetchall())
        return int(row[0])

    async def commit(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        if not commits:
            return ()
        writes = 0
        for commit in commits:
            writes += len(commit.writes) + len(commit.changes)
        work = partial(self._apply, commits)
        return await self._writer.submit(work, long=writes > _MANY, commits=commits)

    def _apply(
        self, commits: Sequence[Commit], _: sqlite3.Connection, batch: CommitBatch
    ) -> tuple[Outcome, ...]:
        if len(commits) > 1:
            batch.look_ahead(commits)
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
        places = self._places(scopes)
        return tuple(places[n][1] if n in places else 0 for n in range(len(scopes)))

    def _places(self, scopes: tuple[Scope, ...]) -> Mapping[int, tuple[int, int, int]]:
        """The same as `_places`, of which most are known where a template has many followers."""
        return self._reader.cached(("places", scopes), lambda db: self._found(db, scopes))

    def _found(
        self, db: sqlite3.Connection, scopes: tuple[Scope, ...]
    ) -> Mapping[int, tuple[int, int, int]]:
        known = self._reader.places
        unknown = [scope for scope in scopes if scope not in known]
        if len(unknown) == 1:
            [scope] = unknown
            row = db.execute(SQL["scope"], (scope.tenant, scope.kind, scope.name)).fetchone()
            known[scope] = row and row[:3]
        elif unknown:
            found = _places(db, unknown)
            known.update((scope, found.get(n)) for n, scope in enumerate(unknown))
        return {n: place for n, scope in enumerate(scopes) if (place := known[scope])}

    def _known(self, layers: tuple[Scope | SnapshotLayer, ...]) -> tuple[Tree, ...] | None:
        """Trees that were read before and have not changed since, if all of these are."""
        scopes = tuple(layer for layer in layers if isinstance(layer, Scope))
        if len(scopes) < len(layers):
            return None
        places = self._places(scopes)
        found = []
        for n, scope in enumerate(scopes):
            revision = places[n][1] if n in places else 0
            tree = Tree(scope, 0, {}) if not revision else self._trees.get(scope)
            if tree is None or tree.revision != revision:
                return None
            found.append(tree)
        return tuple(found)

    def _whole(
        self,
        db: sqlite3.Connection,
        layers: tuple[Scope | SnapshotLayer, ...],
        paths: tuple[Path, ...] | None,
        prefix: str,
    ) -> tuple[Tree, ...]:
        trees = _at_once(db, layers, paths, prefix)
        if paths is None and not prefix:
            now = [tree for tree, layer in zip(trees, layers, strict=True) if tree.scope == layer]
            self._keep([tree for tree in now if tree.revision])
        return trees

    def _keep(self, trees: Sequence[Tree]) -> None:
        self._kept += sum(len(tree.heads) + 1 for tree in trees)
        if self._kept > _KEPT:
            self._trees.clear()
            self._kept = 0
        self._trees.update((tree.scope, tree) for tree in trees)

    def _is_long(self, layers: tuple[Scope | SnapshotLayer, ...]) -> bool:
        scopes = tuple(_scope(layer) for layer in layers)
        places = self._places(scopes)
        return sum(files for _, _, files in places.values()) > _LONG


def _history(db: sqlite3.Connection, ask: Row) -> tuple[Version, ...]:
    return tuple(map(version_of, db.execute(SQL["history"], ask).fetchall()))


def _scope(layer: Scope | SnapshotLayer) -> Scope:
    return layer.scope if isinstance(layer, SnapshotLayer) else layer


def _at_once(
    db: sqlite3.Connection,
    layers: Sequence[Scope | SnapshotLayer],
    paths: Sequence[Path] | None,
    prefix: str,
) -> tuple[Tree, ...]:
    with transaction(db, "DEFERRED"):
        return _read(db, layers, paths, prefix)


def _places(db: sqlite3.Connection, scopes: Sequence[Scope]) -> Mapping[int, tuple[int, int, int]]:
    """By place in the question: id, revision and number of files of each scope there is."""
    rows = db.execute(SQL["scopes"], (names(scopes),)).fetchall()
    return {place: (id, revision, files) for place, id, revision, files, _ in rows}


def _read(
    db: sqlite3.Connection,
    layers: Sequence[Scope | SnapshotLayer],
    paths: Sequence[Path] | None,
    prefix: str,
) -> tuple[Tree, ...]:
    scopes = [_scope(layer) for layer in layers]
    places = _places(db, scopes)
    current = {places[n][0] for n, x in enumerate(layers) if n in places and isinstance(x, Scope)}
    heads = _now(db, current, paths, prefix) if current else {}
    trees = []
    for n, layer in enumerate(layers):
        id, revision, _ = places.get(n, (0, 0, 0))
        if isinstance(layer, SnapshotLayer):
            then = _then(db, id, layer.revision, paths, prefix) if id else {}
            trees.append(Tree(layer.scope, layer.revision, then))
        else:
            trees.append(Tree(layer, revision, heads.get(id, {})))
    return tuple(trees)


def _now(
    db: sqlite3.Connection, ids: Collection[int], paths: Sequence[Path] | None, prefix: str
) -> dict[int, dict[Path, Head]]:
    wanted = json.dumps(sorted(ids))
    if paths is None:
        rows = db.execute(SQL["all"], (wanted, prefix, prefix + AFTER_ANY))
    else:
        rows = db.execute(SQL["some"], (wanted, json.dumps([path.text for path in paths])))
    heads: dict[int, dict[Path, Head]] = {}
    for row in rows.fetchall():
        head = head_of(row[1:])
        heads.setdefault(row[0], {})[head.path] = head
    return heads


def _then(
    db: sqlite3.Connection, id: int, revision: int, paths: Sequence[Path] | None, prefix: str
) -> dict[Path, Head]:
    if paths is None:
        rows = db.execute(SQL["all_at"], (id, revision, prefix, prefix + AFTER_ANY))
    else:
        rows = db.execute(SQL["some_at"], (id, revision, json.dumps([p.text for p in paths])))
    heads = map(head_of, rows.fetchall())
    return {head.path: head for head in heads}
