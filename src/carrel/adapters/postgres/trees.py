"""Trees in PostgreSQL. Concurrent reads and commits are sent in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import asyncpg

from carrel.adapters.postgres.commit_columns import CommitColumns
from carrel.adapters.postgres.database import Database
from carrel.adapters.postgres.event_notifier import EventNotifier
from carrel.adapters.postgres.listing_checks import apply_with_listing, occupants_query
from carrel.adapters.postgres.read_batching import RequestBatcher
from carrel.adapters.postgres.rows import (
    Row,
    head_from_row,
    scope_columns,
    transpose,
    version_from_row,
)
from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.runs import SnapshotLayer
from carrel.core.store.commit import Applied, Commit, ExpectPathFree, Outcome, PathOccupant
from carrel.core.store.entry import Head, Version
from carrel.core.store.tree import ScopeMoment, Tree, build_tree
from carrel.ports import CorruptContent, request_scope

_MAX_BATCH_COMMITS: Final = 64
_MAX_BATCH_BYTES: Final = 8 * 2**20
_MAX_BATCH_HEADS: Final = 256
_MAX_ATTEMPTS: Final = 5
_YIELD_ROWS: Final = 1000
"""Rows of a long result after which the event loop may run other tasks."""

Result = TypeVar("Result")
_ReadRequest = tuple[Sequence[Scope | SnapshotLayer], Sequence[Path]]


@dataclass(slots=True)
class CommitCounters:
    """Counters since start, exposed as metrics."""

    transactions: int = 0
    commits: int = 0
    conflicts: int = 0


class PostgresTrees:
    def __init__(self, database: Database, notifier: EventNotifier) -> None:
        self._database, self._notifier = database, notifier
        self._reads = RequestBatcher(self._read_batch, _heads_weight)
        self._commits = RequestBatcher(self._commit_batch, _commits_weight)
        self.counts = CommitCounters()

    @property
    def waiting_count(self) -> int:
        """Number of commit calls that are not sent yet."""
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
        scope = request_scope.current()
        commits = scope.commits if scope else 0
        if paths is None:
            trees, records_revision = await self._read_all(layers, prefix)
        else:
            trees, records_revision = await self._reads.submit((layers, tuple(paths)))
        if scope:  # so that the trees and records of a request agree
            scope.set(records_revision, commits)
        return trees

    async def revisions(self, scopes: Sequence[Scope]) -> tuple[int, ...]:
        rows = await self._database.rows("revisions", *scope_columns(scopes))
        return tuple(row[0] for row in rows)

    async def versions(
        self, requests: Sequence[tuple[Scope, Path, int]]
    ) -> tuple[Version | None, ...]:
        requested = [(s.tenant, s.kind, s.name, p.text, n) for s, p, n in requests]
        rows = await self._database.rows("versions", *transpose(requested, 5))
        by_position = {row[0]: version_from_row(requests[row[0] - 1][1], row, 1) for row in rows}
        return tuple(by_position.get(n + 1) for n in range(len(requests)))

    async def history(
        self, scope: Scope, path: Path, *, before: int | None = None, limit: int = 100
    ) -> tuple[Version, ...]:
        before_version = 2**62 if before is None else before
        parameters = (scope.tenant, scope.kind, scope.name, path.text, before_version, limit)
        return tuple(
            version_from_row(path, row, 0)
            for row in await self._database.rows("history", *parameters)
        )

    async def log(
        self, scope: Scope, *, after: tuple[int, str, int] = (0, "", 0), limit: int = 1000
    ) -> tuple[Version, ...]:
        parameters = (scope.tenant, scope.kind, scope.name, *after, limit)
        rows = await self._database.rows("version_log", *parameters)
        return tuple(version_from_row(Path(row[0]), row, 1) for row in rows)

    async def latest_versions(
        self, scope: Scope, *, before: tuple[int, str, int] | None = None, limit: int = 1000
    ) -> tuple[Version, ...]:
        position = before or (2**62, "", 0)
        parameters = (scope.tenant, scope.kind, scope.name, *position, limit)
        rows = await self._database.rows("latest_versions", *parameters)
        return tuple(version_from_row(Path(row[0]), row, 1) for row in rows)

    async def complete_since(self, scope: Scope) -> int:
        parameters = (scope.tenant, scope.kind, scope.name)
        return int(await self._database.value("complete_since", *parameters))

    async def moments(self, scopes: Sequence[Scope], at: TimestampMs) -> tuple[ScopeMoment, ...]:
        return tuple([await self._read_moment(scope, at) for scope in scopes])

    async def _read_moment(self, scope: Scope, at: TimestampMs) -> ScopeMoment:
        name = (scope.tenant, scope.kind, scope.name)
        revision = int(await self._database.value("revision_at", *name, at))
        rows = await self._database.rows("pruned_paths", *name, revision)
        return ScopeMoment(revision, frozenset(Path(row[0]) for row in rows))

    async def find_occupants(self, check: ExpectPathFree) -> tuple[PathOccupant, ...]:
        if not check.reads_listing:
            return ()
        rows = await self._database.rows("occupying_paths", *occupants_query(check))
        return tuple(check.find_occupants(rows))

    async def commit(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        if not commits:
            return ()
        try:
            if any(commit.reads_listing for commit in commits):
                return await self._commit_with_listings(commits)
            return await self._commits.submit(tuple(commits))
        finally:
            if scope := request_scope.current():
                scope.end_revision()

    async def _read_all(
        self, layers: Sequence[Scope | SnapshotLayer], prefix: str
    ) -> tuple[tuple[Tree, ...], int]:
        rows = await self._database.rows(
            "heads_by_prefix",
            *scope_columns([_scope(layer) for layer in layers]),
            [_revision(layer) for layer in layers],
            prefix,
            _prefix_end(prefix),
        )
        revisions: dict[int, int] = {}
        heads: list[list[Head]] = [[] for _ in layers]
        for index, row in enumerate(rows):
            position, revision, text = row[0], row[1], row[2]
            revisions[position] = revision
            if text is not None:
                heads[position - 1].append(head_from_row(Path(text), row, 3))
            if index % _YIELD_ROWS == _YIELD_ROWS - 1:
                await asyncio.sleep(0)
        trees = tuple(
            build_tree(_scope(layer), revisions[index + 1], heads[index], None)
            for index, layer in enumerate(layers)
        )
        return trees, rows[0][-1]

    async def _read_batch(
        self, requests: Sequence[_ReadRequest]
    ) -> Sequence[tuple[tuple[Tree, ...], int]]:
        """Read many requests in one statement, so that each sees one snapshot.

        Returns one row per path of each layer, or one without a path if none was requested.
        """
        rows_requested = [
            (*_scope_names(layer), path and path.text, _revision(layer))
            for layers, paths in requests
            for layer in layers
            for path in paths or (None,)
        ]
        *arrays, revisions = transpose(rows_requested, 5)
        if any(revision is not None for revision in revisions):
            rows = await self._database.rows("heads_by_path_at_revision", *arrays, revisions)
        else:
            rows = await self._database.rows("heads_by_path", *arrays)
        remaining, records_revision = iter(rows), rows[0][-1]
        return [
            (tuple(_tree(layer, paths, remaining) for layer in layers), records_revision)
            for layers, paths in requests
        ]

    async def _commit_batch(
        self, calls: Sequence[tuple[Commit, ...]]
    ) -> Sequence[tuple[Outcome, ...]]:
        commit_columns = CommitColumns([commit for call in calls for commit in call])
        answer = await _retry_deadlocks(
            lambda: self._database.row("apply_commits", *commit_columns.arguments())
        )
        outcomes = iter(commit_columns.outcomes(answer))
        responses = [tuple(next(outcomes) for _ in call) for call in calls]
        self._count_outcomes(responses)
        return responses

    async def _commit_with_listings(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        """Apply commits whose checks read whole scopes, in one transaction."""
        outcomes = await _retry_deadlocks(lambda: self._apply_with_listings(commits))
        self._count_outcomes([outcomes])
        return outcomes

    async def _apply_with_listings(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        async with self._database.transaction() as connection:
            return tuple([await apply_with_listing(connection, commit) for commit in commits])

    def _count_outcomes(self, responses: Sequence[tuple[Outcome, ...]]) -> None:
        applied = sum(
            isinstance(outcome, Applied) for response in responses for outcome in response
        )
        self.counts.transactions += 1
        self.counts.commits += applied
        self.counts.conflicts += sum(map(len, responses)) - applied
        if applied:
            self._notifier.notify()


async def _retry_deadlocks(send: Callable[[], Awaitable[Result]]) -> Result:
    for attempt in range(_MAX_ATTEMPTS):
        try:
            return await send()
        except (asyncpg.SerializationError, asyncpg.DeadlockDetectedError):
            if attempt == _MAX_ATTEMPTS - 1:
                raise
        except asyncpg.PostgresError as error:
            if error.sqlstate == "CA003":
                raise CorruptContent(str(error)) from error
            raise
    raise AssertionError


def _heads_weight(request: _ReadRequest) -> float:
    layers, paths = request
    return len(layers) * (len(paths) or 1) / _MAX_BATCH_HEADS


def _commits_weight(call: tuple[Commit, ...]) -> float:
    size = sum(write.entry.blob.size for commit in call for write in commit.writes if write.entry)
    return max(len(call) / _MAX_BATCH_COMMITS, size / _MAX_BATCH_BYTES)


def _tree(layer: Scope | SnapshotLayer, paths: Sequence[Path], rows: Iterator[Row]) -> Tree:
    """Build a layer's tree from its next rows."""
    heads: dict[Path, Head] = {}
    revision = 0
    for path in paths or (None,):
        row = next(rows)
        revision = row[0]
        if path is not None and row[1] is not None:
            heads[path] = head_from_row(path, row, 1)
    return Tree(_scope(layer), revision, heads)


def _scope(layer: Scope | SnapshotLayer) -> Scope:
    return layer.scope if isinstance(layer, SnapshotLayer) else layer


def _revision(layer: Scope | SnapshotLayer) -> int | None:
    return layer.revision if isinstance(layer, SnapshotLayer) else None


def _scope_names(layer: Scope | SnapshotLayer) -> tuple[str, str, str]:
    scope = _scope(layer)
    return scope.tenant, scope.kind, scope.name


def _prefix_end(prefix: str) -> str | None:
    """Return the first text after all that start with `prefix`, or None."""
    stem = prefix.rstrip("\U0010ffff")
    if not stem:
        return None
    code_point = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if code_point == 0xD800 else code_point)
