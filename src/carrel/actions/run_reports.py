"""Reports of running runs: heartbeats, and what ends without them.

Everything that a run writes is a report, and an open approval stands for reports. A run whose last
report is older than the lease becomes abandoned; it can still report, write and end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby
from typing import Final

from msgspec.structs import replace

from carrel.core.access import Actor
from carrel.core.approvals import open_run_index_key
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Run, RunStatus
from carrel.core.store.commit import Commit
from carrel.core.store.event import TOOL_CALLED, EventDraft
from carrel.core.store.record import RecordType
from carrel.ports import Ports

REPORT_INTERVAL_MS: Final = 30_000
"""Reports within this time after the last stored one are not stored."""
_BATCH_SIZE: Final = 500


async def heartbeat(ports: Ports, run: Run) -> Run:
    """Store that a run still runs, and return it; an ended run stays as it is."""
    now = ports.clock.now()
    if run.has_ended or not _is_due(run, now):
        return run
    await ports.runs.report(run.tenant, [run.id], now)
    return replace(run, reported_at=now)


async def report_runs(ports: Ports, tenant: str, ids: Collection[str]) -> None:
    """Store that these runs reported, unless their last report is recent."""
    if not ids:
        return
    now = ports.clock.now()
    loaded = await ports.runs.get(tenant, sorted(ids))
    silent = [run.id for run in loaded if run and not run.has_ended and _is_due(run, now)]
    if silent:
        await ports.runs.report(tenant, silent, now)


async def log_tool_call(
    ports: Ports, actor: Actor, run: Run, tool: str, *, is_error: bool, duration_ms: int
) -> None:
    """Log a call in the run's log, without its arguments and result."""
    payload = {
        **{"runId": run.id, "agentId": run.agent, "tool": tool},
        **{"isError": is_error, "durationMs": duration_ms},
    }
    event = EventDraft(run.tenant, TOOL_CALLED, payload)
    now = ports.clock.now()
    await ports.trees.commit([Commit((), actor.name, "", now, run=run.id, events=(event,))])


def lease_end(ports: Ports, run: Run) -> TimestampMs | None:
    """Return when a running run becomes abandoned without a report; None for never."""
    return None if run.has_ended or not ports.run_lease_ms else run.reported_at + ports.run_lease_ms


async def abandon_silent_runs(ports: Ports) -> int:
    """Make running runs abandoned whose last report is older than the lease; return how many.

    Of all tenants. A run that reports meanwhile stays running, and one with an open approval gets
    another lease.
    """
    count, now = 0, ports.clock.now()
    if not ports.run_lease_ms:
        return count
    while silent := await ports.runs.list_unreported(now - ports.run_lease_ms, limit=_BATCH_SIZE):
        waiting = await _extend_waiting(ports, silent, now)
        abandoned = [await _abandon(ports, run, now) for run in silent if run.id not in waiting]
        count += sum(abandoned)
        if len(silent) < _BATCH_SIZE or not (waiting or any(abandoned)):
            break
    return count


async def _extend_waiting(ports: Ports, silent: Sequence[Run], now: TimestampMs) -> Collection[str]:
    """Extend the lease of runs with an open approval; return their ids."""
    waiting: set[str] = set()
    for tenant, runs in groupby(sorted(silent, key=_tenant_of), key=_tenant_of):
        ids = [run.id for run in runs]
        keys = [open_run_index_key(id) for id in ids]
        counts = await ports.records.count(tenant, RecordType.APPROVAL, keys)
        extended = [id for id, count in zip(ids, counts, strict=True) if count]
        await ports.runs.report(tenant, extended, now)
        waiting.update(extended)
    return waiting


def _tenant_of(run: Run) -> str:
    return run.tenant


def _is_due(run: Run, now: TimestampMs) -> bool:
    return now - run.reported_at >= REPORT_INTERVAL_MS


async def _abandon(ports: Ports, run: Run, now: TimestampMs) -> bool:
    abandoned = replace(run, status=RunStatus.ABANDONED, ended_at=now, abandoned_at=now)
    return await ports.runs.update(abandoned, run)
