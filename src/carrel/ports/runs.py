"""Runs and their snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from carrel.core.identifiers import Scope, TimestampMs
from carrel.core.runs import EVERY_RUN, Run, RunFilter, SnapshotLayer
from carrel.core.store.idempotency import IdempotencyKey


class Runs(Protocol):
    """Runs and their snapshots."""

    async def start(
        self,
        runs: Sequence[tuple[Run, Sequence[Scope | SnapshotLayer]]],
        idempotency_key: IdempotencyKey | None = None,
    ) -> tuple[Run, ...]:
        """Store each run with its layers; a Scope is frozen at its current revision.

        The cost is independent of the number of files. Logs an event `run.started`.
        Marks the key with the numbers of the runs' ids.
        """

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Run | None, ...]: ...

    async def list(
        self,
        tenant: str,
        filter: RunFilter = EVERY_RUN,
        *,
        before: str = "",
        limit: int = 100,
    ) -> tuple[Run, ...]:
        """Return runs that meet every condition by id descending, before `before` if given."""

    async def count(self, tenant: str, filter: RunFilter) -> int:
        """Return the number of runs that meet every condition."""

    async def list_with_layer(
        self,
        layer: Scope,
        revisions: tuple[int, int | None],
        *,
        scope: Scope | None = None,
        before: str = "",
        limit: int = 100,
    ) -> tuple[Run, ...]:
        """Return runs by id descending whose snapshot has a layer at one of these revisions.

        From the first revision up to the second, which is not included; None has no end. `scope`
        is the workspace of the runs.
        """

    async def newest_by_scope(self, tenant: str, scopes: Sequence[Scope]) -> tuple[Run | None, ...]:
        """Return the newest run of each scope (by id), None if it has none."""

    async def record_prompts(self, sizes: Sequence[tuple[Run, Mapping[str, int]]]) -> None:
        """Store the sizes of each run's prompt, unless they are known.

        They are counted in the tallies of the run's day under their names.
        """

    async def update(self, run: Run, expected: Run) -> bool:
        """Store status, times, reason and snapshot_kept if the run still equals `expected`.

        Else return False. Logs an event if the status changes. Releasing a run deletes its
        snapshot. A run becomes abandoned only if it did not report since `expected` was read.
        """

    async def report(self, tenant: str, ids: Sequence[str], at: TimestampMs) -> None:
        """Store that the runs reported at this time, unless they did later.

        Events in a run's log are reports too.
        """

    async def list_unreported(self, before: TimestampMs, *, limit: int = 100) -> tuple[Run, ...]:
        """Return running runs whose last report is before a time, those silent longest first.

        Of all tenants: only for maintenance.
        """
