"""Files of scopes: trees, versions and commits."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from carrel.core.identifiers import Path, Scope, TimestampMs
from carrel.core.runs import SnapshotLayer
from carrel.core.store.commit import Commit, ExpectPathFree, Outcome, PathOccupant
from carrel.core.store.entry import Version
from carrel.core.store.tree import ScopeMoment, Tree


class Trees(Protocol):
    """Versioned trees of all scopes. Change only by commit."""

    async def read(
        self,
        layers: Sequence[Scope | SnapshotLayer],
        paths: Collection[Path] | None = None,
        *,
        prefix: str = "",
    ) -> tuple[Tree, ...]:
        """Return one tree per layer, in order, from one consistent snapshot.

        An unknown scope is empty. A Scope is read at its current revision, a SnapshotLayer at its
        own. With `paths`, only those are returned, tombstones included; otherwise every live path
        that starts with `prefix`. A SnapshotLayer that no kept run holds may lack pruned versions.
        """

    async def revisions(self, scopes: Sequence[Scope]) -> tuple[int, ...]:
        """Return each scope's revision, 0 for an unknown one."""

    async def versions(
        self, requests: Sequence[tuple[Scope, Path, int]]
    ) -> tuple[Version | None, ...]:
        """Return each version by its number; None if it never existed or was pruned."""

    async def history(
        self, scope: Scope, path: Path, *, before: int | None = None, limit: int = 100
    ) -> tuple[Version, ...]:
        """Return the versions of a path, newest first, tombstones included."""

    async def log(
        self, scope: Scope, *, after: tuple[int, str, int] = (0, "", 0), limit: int = 1000
    ) -> tuple[Version, ...]:
        """Return a scope's versions past a (revision, path, version), in that order.

        Tombstones are included; pruned versions are missing.
        """

    async def latest_versions(
        self, scope: Scope, *, before: tuple[int, str, int] | None = None, limit: int = 1000
    ) -> tuple[Version, ...]:
        """Return a scope's versions before a (revision, path, version), newest first."""

    async def complete_since(self, scope: Scope) -> int:
        """Return the revision since which no version of a scope was pruned, 0 if none was."""

    async def moments(self, scopes: Sequence[Scope], at: TimestampMs) -> tuple[ScopeMoment, ...]:
        """Return the last revision of each scope up to a time, and what was pruned of it."""

    async def find_occupants(self, check: ExpectPathFree) -> tuple[PathOccupant, ...]:
        """Return what a commit with this check would find in its scopes and their followers.

        A check that lists nothing returns nothing.
        """

    async def commit(self, commits: Sequence[Commit]) -> tuple[Outcome, ...]:
        """Try to apply each commit atomically; return one outcome per commit, in order.

        A commit is refused if an expectation fails, a new path is not free or a quota is exceeded;
        this does not affect the others. Later commits of one call see earlier ones. What was
        applied is durable when this returns. If it raises, nothing of this call was applied.

        Every write adds a version and an event `workspace.updated` in the same transaction;
        `events` are added there too. Versions beyond `max_versions` that no kept run can see are
        pruned, except those of an agent whose config enables git.
        """
