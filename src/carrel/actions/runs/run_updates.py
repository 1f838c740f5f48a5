"""Changes of a run's status and snapshot, repeated on conflicts."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from carrel.actions.retry import MAX_ATTEMPTS, retry_on_conflict
from carrel.actions.runs.snapshots import SNAPSHOT_DELETED
from carrel.core.errors import Busy, Conflict, NotFound
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Run, RunStatus, next_status
from carrel.ports import Ports


@dataclass(frozen=True, slots=True)
class RunChange:
    """What to change of a run; None leaves it."""

    status: RunStatus | None = None
    keep_snapshot: bool | None = None
    reason: str | None = None


async def apply_update(ports: Ports, run: Run, change: RunChange) -> Run:
    """Apply a change. A run ends no earlier than its last report and entry, if a clock steps back.

    Raises Conflict, NotFound and Busy.
    """
    updated = _updated_run(run, change, await _end_time(ports, run, change))
    if updated == run or await ports.runs.update(updated, run):
        return updated
    return await _reload_and_update(ports, run, change)


@retry_on_conflict(MAX_ATTEMPTS - 1)
async def _reload_and_update(ports: Ports, run: Run, change: RunChange) -> Run:
    [current] = await ports.runs.get(run.tenant, [run.id])
    if current is None:
        raise NotFound(f"no such run: {run.id}")
    updated = _updated_run(current, change, await _end_time(ports, current, change))
    if updated == current or await ports.runs.update(updated, current):
        return updated
    raise Busy.with_conflicts(f"run {run.id}")


async def _end_time(ports: Ports, run: Run, change: RunChange) -> TimestampMs:
    now = max(ports.clock.now(), run.reported_at)
    if change.status is None or run.session is None:
        return now
    [session] = await ports.sessions.get(run.tenant, run.scope.name, [run.session])
    return now if session is None else max(now, session.last_entry_at)


def _updated_run(run: Run, change: RunChange, end: TimestampMs) -> Run:
    new_status = next_status(run, run.status if change.status is None else change.status)
    if change.keep_snapshot and not run.snapshot_kept:
        raise Conflict(f"run {run.id} cannot be kept again: {SNAPSHOT_DELETED}")
    snapshot_kept = run.snapshot_kept if change.keep_snapshot is None else change.keep_snapshot
    if not snapshot_kept and new_status is RunStatus.RUNNING:
        raise Conflict("a run that has not ended needs its snapshot", status=run.status)
    ended = run.ended_at if new_status is run.status else end
    snapshot = run.snapshot if snapshot_kept else ()
    return replace(
        run,
        status=new_status,
        reason=run.reason if change.reason is None else change.reason,
        ended_at=ended,
        snapshot_kept=snapshot_kept,
        snapshot=snapshot,
    )
