"""Ports of one request, which asks the store for the records revision once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.runs import Run, SnapshotLayer
from carrel.core.store.commit import Commit, Outcome
from carrel.core.store.tree import Tree
from carrel.ports import Ports
from carrel.ports.clock import Clock
from carrel.ports.records import Records
from carrel.ports.runs import Runs
from carrel.ports.trees import Trees

MAX_AGE_MS: Final = 1000
"""A request that waits longer, such as for a command, asks for the revision again."""


class RequestView:
    """Ports over a store for one request.

    Values derived from records are looked up at the revision that was asked for first, which
    authenticated the caller. Every read of trees brings the revision of its own snapshot, so trees
    and records of a request agree. A commit or a started run ends the revision's use, since the
    caller may check then whether its decision still holds.
    """

    __slots__ = ("_records", "ports")

    def __init__(self, ports: Ports) -> None:
        self._records = records = _RequestRecords(ports.records, ports.clock)
        self.ports = object.__new__(Ports)
        self.ports.__dict__.update(
            ports.__dict__,
            records=records,
            trees=_RequestTrees(ports.trees, records),
            runs=_RequestRuns(ports.runs, records),
        )

    def end(self) -> None:
        """Ask for the revision every time from now on, as a stream must."""
        self._records.max_age_ms = -1


class _RequestRecords:
    """Records that remember their revision."""

    __slots__ = ("_asked_at", "_clock", "_records", "_revision", "commits", "max_age_ms")

    def __init__(self, records: Records, clock: Clock) -> None:
        self._records, self._clock = records, clock
        self._revision = 0
        self._asked_at: TimestampMs | None = None
        self.commits = 0
        self.max_age_ms = MAX_AGE_MS

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    async def revision(self) -> int:
        now, asked_at = self._clock.now(), self._asked_at
        if asked_at is not None and 0 <= now - asked_at <= self.max_age_ms:
            return self._revision
        commits = self.commits
        revision = await self._records.revision()
        if commits == self.commits:
            self._revision, self._asked_at = revision, now
        return revision

    def set_revision(self, revision: int, commits: int) -> None:
        """Remember the revision of a read that began after this number of commits."""
        if commits != self.commits or (self._asked_at is not None and revision == self._revision):
            return
        self._revision, self._asked_at = revision, self._clock.now()

    def end_revision(self) -> None:
        self.commits += 1
        self._asked_at = None


class _RequestTrees:
    """Trees whose reads and commits update the remembered revision."""

    __slots__ = ("_records", "_trees")

    def __init__(self, trees: Trees, records: _RequestRecords) -> None:
        self._trees, self._records = trees, records

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trees, name)

    async def read(
        self,
        layers: Sequence[Scope | SnapshotLayer],
        paths: Collection[Path] | None = None,
        *,
        prefix: str = "",
    ) -> tuple[Tree, ...]:
        commits = self._records.commits
        trees, revision = await self._trees.read_with_revision(layers, paths, prefix=prefix)
        self._records.set_revision(revision, commits)
        return trees

    async def commit(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        try:
            return await self._trees.commit(commits)
        finally:
            self._records.end_revision()


class _RequestRuns:
    """Runs whose start, which freezes trees, ends the remembered revision."""

    __slots__ = ("_records", "_runs")

    def __init__(self, runs: Runs, records: _RequestRecords) -> None:
        self._runs, self._records = runs, records

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runs, name)

    async def start(
        self, runs: Sequence[tuple[Run, Sequence[Scope | SnapshotLayer]]]
    ) -> tuple[Run, ...]:
        try:
            return await self._runs.start(runs)
        finally:
            self._records.end_revision()
