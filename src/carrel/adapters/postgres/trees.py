"""Trees in PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import asyncpg

from carrel.adapters.postgres.commit_columns import CommitColumns
from carrel.adapters.postgres.database import Database
from carrel.adapters.postgres.event_notifier import EventNotifier
from carrel.adapters.postgres.read_batching import ReadBatcher
from carrel.adapters.postgres.rows import Row, columns, head_of, version_of
from carrel.core.identifiers import Path, Scope
from carrel.core.runs import SnapshotLayer
from carrel.core.store.tree import Applied, Commit, Head, Outcome, Tree, Version
from carrel.ports import CorruptContent

_MOST_COMMITS: Final = 64
_MOST_BYTES: Final = 8 * 2**20
_MOST_HEADS: Final = 256
_TRIES: Final = 5
_BREATH: Final = 1000
"""Rows of a long answer after which others get a turn."""

_Asked = tuple[Sequence[Scope | SnapshotLayer], Sequence[Path]]


@dataclass(slots=True)
class CommitCounters:
    """What has been committed since the start; read by whoever shows it."""

    transactions: int = 0
    commits: int = 0
    conflicts: int = 0


class PostgresTrees:
    def __init__(self, database: Database, bell: EventNotifier) -> None:
        self._database, self._bell = database, bell
        self._reads = ReadBatcher(self._read_together, _heads_weight)
        self._commits = ReadBatcher(self._commit_together, _commits_weight)
        self.counts = CommitCounters()

    @property
    def waiting(self) -> int:
        """Calls of commit that have not been sent yet."""
        return len(self._commits)

    async def close(self) -> None:
        await self._commits.close()
        await self._reads.close()

    async def read(
        self,
        layers: Sequence[Scope | SnapshotLayer],
        paths: Collection[Path] | None = None,
        *,
        prefix: str = "",
    ) -> tuple[Tree, ...]:
        if not layers:
            return ()
        if paths is None:
            return await self._read_all(layers, prefix)
        return await self._reads.ask((layers, tuple(paths)))

    async def revisions(self, scopes: Sequence[Scope]) -> tuple[int, ...]:
        rows = await self._database.rows("revisions", *_names(scopes))
        return tuple(row[0] for row in rows)

    async def versions(self, asks: Sequence[tuple[Scope, Path, int]]) -> tuple[Version | None, ...]:
        wanted = [(s.tenant, s.kind, s.name, p.text, n) for s, p, n in asks]
        rows = await self._database.rows("versions", *columns(wanted, 5))
        found = {row[0]: version_of(asks[row[0] - 1][1], row, 1) for row in rows}
        return tuple(found.get(n + 1) for n in range(len(asks)))

    async def history(
        self, scope: Scope, path: Path, *, before: int | None = None, limit: int = 100
    ) -> tuple[Version, ...]:
        below = 2**62 if before is None else before
        ask = (scope.tenant, scope.kind, scope.name, path.text, below, limit)
        return tuple(version_of(path, row, 0) for row in await self._database.rows("history", *ask))

    async def log(
        self, scope: Scope, *, after: tuple[int, str, int] = (0, "", 0), limit: int = 1000
    ) -> tuple[Version, ...]:
        ask = (scope.tenant, scope.kind, scope.name, *after, limit)
        rows = await self._database.rows("log", *ask)
        return tuple(version_of(Path(row[0]), row, 1) for row in rows)

    async def complete_since(self, scope: Scope) -> int:
        ask = (scope.tenant, scope.kind, scope.name)
        return int(await self._database.value("unbroken", *ask))

    async def commit(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        if not commits:
            return ()
        return await self._commits.ask(tuple(commits))

    async def _read_all(
        self, layers: Sequence[Scope | SnapshotLayer], prefix: str
    ) -> tuple[Tree, ...]:
        rows = await self._database.rows(
            "trees", *_names(layers), [_revision(layer) for layer in layers], prefix, _past(prefix)
        )
        revisions: dict[int, int] = {}
        heads: list[dict[Path, Head]] = [{} for _ in layers]
        for n, row in enumerate(rows):
            place, revision, text = row[0], row[1], row[2]
            revisions[place] = revision
            if text is not None:
                path = Path(text)
                heads[place - 1][path] = head_of(path, row, 3)
            if n % _BREATH == _BREATH - 1:
                await asyncio.sleep(0)
        return tuple(
            Tree(_scope(layer), revisions[n + 1], heads[n]) for n, layer in enumerate(layers)
        )

    async def _read_together(self, asks: Sequence[_Asked]) -> Sequence[tuple[Tree, ...]]:
        """One statement, so every ask sees one moment; a row for each path of each layer of each
        ask, and one without a path where none was asked for."""
        wanted = [
            (*_name(layer), path and path.text, _revision(layer))
            for layers, paths in asks
            for layer in layers
            for path in paths or (None,)
        ]
        *arrays, revisions = columns(wanted, 5)
        if any(revision is not None for revision in revisions):
            rows = iter(await self._database.rows("heads_then", *arrays, revisions))
        else:
            rows = iter(await self._database.rows("heads", *arrays))
        return [tuple(_tree(layer, paths, rows) for layer in layers) for layers, paths in asks]

    async def _commit_together(
        self, calls: Sequence[tuple[Commit, ...]]
    ) -> Sequence[tuple[Outcome, ...]]:
        parcel = CommitColumns([commit for call in calls for commit in call])
        outcomes = iter(parcel.outcomes(await self._sent(parcel)))
        answers = [tuple(next(outcomes) for _ in call) for call in calls]
        applied = sum(isinstance(outcome, Applied) for answer in answers for outcome in answer)
        self.counts.transactions += 1
        self.counts.commits += applied
        self.counts.conflicts += sum(map(len, answers)) - applied
        if applied:
            self._bell.ring()
        return answers

    async def _sent(self, parcel: CommitColumns) -> Row:
        for tries in range(_TRIES):
            try:
                answer = await self._database.row("apply_commits", *parcel.arguments())
            except (asyncpg.SerializationError, asyncpg.DeadlockDetectedError):
                if tries == _TRIES - 1:
                    raise
            except asyncpg.PostgresError as error:
                if error.sqlstate == "CA003":
                    raise CorruptContent(str(error)) from error
                raise
            else:
                return answer
        raise AssertionError


def _heads_weight(asked: _Asked) -> float:
    layers, paths = asked
    return len(layers) * (len(paths) or 1) / _MOST_HEADS


def _commits_weight(call: tuple[Commit, ...]) -> float:
    size = sum(w.entry.blob.size for commit in call for w in commit.writes if w.entry)
    return max(len(call) / _MOST_COMMITS, size / _MOST_BYTES)


def _tree(layer: Scope | SnapshotLayer, paths: Sequence[Path], rows: Iterator[Row]) -> Tree:
    """The tree of a layer from its rows, which come next."""
    heads: dict[Path, Head] = {}
    revision = 0
    for path in paths or (None,):
        row = next(rows)
        revision = row[0]
        if path is not None and row[1] is not None:
            heads[path] = head_of(path, row, 1)
    return Tree(_scope(layer), revision, heads)


def _scope(layer: Scope | SnapshotLayer) -> Scope:
    return layer.scope if isinstance(layer, SnapshotLayer) else layer


def _revision(layer: Scope | SnapshotLayer) -> int | None:
    return layer.revision if isinstance(layer, SnapshotLayer) else None


def _name(layer: Scope | SnapshotLayer) -> tuple[str, str, str]:
    scope = _scope(layer)
    return scope.tenant, scope.kind, scope.name


def _names(layers: Sequence[Scope | SnapshotLayer]) -> list[Row]:
    return columns([_name(layer) for layer in layers], 3)


def _past(prefix: str) -> str | None:
    """The first text past all that start with a prefix, or None if there is no such text."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    point = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if point == 0xD800 else point)
