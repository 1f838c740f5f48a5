"""A run that stops reporting becomes abandoned, and can still end; times are simulated."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.stores import advance_clock

from carrel.actions import run_reports
from carrel.actions.approvals import approvals, transitions
from carrel.actions.approvals.approvals import ApprovalRequest
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.runs import runs
from carrel.actions.runs.run_request import RunRequest
from carrel.core.access import Actor
from carrel.core.errors import Conflict, ValidationError
from carrel.core.identifiers import Path
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.store.event import EventFilter
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
ADA = Actor("acme", "ada")
MINUTE = 60_000


@pytest.fixture
def short(ports: Ports) -> Ports:
    """Ports with a lease of ten minutes."""
    return replace(ports, run_lease_ms=10 * MINUTE)


async def start(ports: Ports) -> Run:
    return await runs.start(ports, ADA, RunRequest("work"))


async def reload(ports: Ports, run: Run) -> Run:
    return await runs.get(ports, ADA, run.id)


async def event_types(ports: Ports, run: Run) -> list[str]:
    events = await ports.events.read_after(None, EventFilter(run.tenant, run=run.id))
    return [event.type for event in events]


async def test_a_run_without_reports_becomes_abandoned_after_its_lease(short: Ports) -> None:
    run = await start(short)
    advance_clock(short, 10 * MINUTE - 1000)
    assert await run_reports.abandon_silent_runs(short) == 0
    advance_clock(short, 2000)
    assert await run_reports.abandon_silent_runs(short) == 1

    lost = await reload(short, run)
    assert lost.status is RunStatus.ABANDONED
    assert lost.abandoned_at == lost.ended_at is not None
    assert await event_types(short, run) == ["run.started", "run.abandoned"]
    assert await run_reports.abandon_silent_runs(short) == 0


async def test_without_a_lease_no_run_becomes_abandoned(ports: Ports) -> None:
    forever = replace(ports, run_lease_ms=0)
    run = await start(forever)
    advance_clock(forever, 10**9)
    assert await run_reports.abandon_silent_runs(forever) == 0
    assert run_reports.lease_end(forever, run) is None


async def test_a_heartbeat_extends_the_lease(short: Ports) -> None:
    run = await start(short)
    for _ in range(3):
        advance_clock(short, 9 * MINUTE)
        run = await run_reports.heartbeat(short, run)
        assert await run_reports.abandon_silent_runs(short) == 0
    assert run == await reload(short, run)
    assert run_reports.lease_end(short, run) == run.reported_at + 10 * MINUTE


async def test_frequent_heartbeats_are_stored_once(short: Ports) -> None:
    run = await start(short)
    advance_clock(short, run_reports.REPORT_INTERVAL_MS - 5000)
    assert await run_reports.heartbeat(short, run) == run == await reload(short, run)
    advance_clock(short, 6000)
    assert (await run_reports.heartbeat(short, run)).reported_at > run.reported_at


async def test_a_write_extends_the_lease(short: Ports) -> None:
    run = await start(short)
    advance_clock(short, 9 * MINUTE)
    options = WriteOptions(run=run.id)
    await files.put(short, (ADA.scope,), Path("SOUL.md"), b"kind", ADA, options)
    advance_clock(short, 9 * MINUTE)
    assert await run_reports.abandon_silent_runs(short) == 0


async def test_a_run_that_waits_for_an_approval_keeps_its_lease_until_it_is_closed(
    anywhere: Ports,
) -> None:
    short = replace(anywhere, run_lease_ms=10 * MINUTE)
    waiting, silent = await start(short), await start(short)
    call = ApprovalRequest(
        agent="agt_1", tool="bash", arguments={}, mode=Audience.MAIN, run=waiting.id
    )
    approval = await approvals.request_approval(short, ADA, call)
    for expected in (1, 0, 0):
        advance_clock(short, 11 * MINUTE)
        assert await run_reports.abandon_silent_runs(short) == expected
    assert (await reload(short, silent)).status is RunStatus.ABANDONED
    assert (await reload(short, waiting)).status is RunStatus.RUNNING

    [record] = await short.records.get(ADA.tenant, RecordType.APPROVAL, [approval.id])
    assert record is not None
    await transitions.cancel(short, record, "superseded")
    advance_clock(short, 9 * MINUTE)
    assert await run_reports.abandon_silent_runs(short) == 0
    advance_clock(short, 2 * MINUTE)
    assert await run_reports.abandon_silent_runs(short) == 1


async def test_an_abandoned_run_still_writes_and_ends_and_remembers_that_it_was_lost(
    short: Ports,
) -> None:
    run = await start(short)
    advance_clock(short, 11 * MINUTE)
    assert await run_reports.abandon_silent_runs(short) == 1
    lost = await reload(short, run)

    assert await run_reports.heartbeat(short, lost) == lost
    options = WriteOptions(run=run.id)
    await files.put(short, (ADA.scope,), Path("SOUL.md"), b"kind", ADA, options)
    with pytest.raises(Conflict):
        await runs.update(short, ADA, run.id, status=RunStatus.RUNNING)

    ended = await runs.update(short, ADA, run.id, status=RunStatus.COMPLETED)
    assert (ended.status, ended.abandoned_at) == (RunStatus.COMPLETED, lost.abandoned_at)
    with pytest.raises(Conflict):
        await runs.update(short, ADA, run.id, status=RunStatus.FAILED)
    assert (await event_types(short, run))[-1] == "run.completed"


async def test_all_silent_runs_become_abandoned_also_more_than_a_batch(
    short: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_reports, "_BATCH_SIZE", 2)
    started = [await start(short) for _ in range(5)]
    await runs.update(short, ADA, started[0].id, status=RunStatus.COMPLETED)
    advance_clock(short, 11 * MINUTE)
    assert await run_reports.abandon_silent_runs(short) == 4


async def test_only_the_server_makes_a_run_abandoned(ports: Ports) -> None:
    run = await start(ports)
    with pytest.raises(ValidationError):
        await runs.update(ports, ADA, run.id, status=RunStatus.ABANDONED)


async def test_a_run_ends_with_a_reason(ports: Ports) -> None:
    run = await start(ports)
    with pytest.raises(ValidationError):
        await runs.update(ports, ADA, run.id, reason="why")
    failed = await runs.update(
        ports, ADA, run.id, status=RunStatus.FAILED, reason="no answer from the model"
    )
    assert failed.reason == "no answer from the model"
    assert await reload(ports, run) == failed
    again = await runs.update(ports, ADA, run.id, status=RunStatus.FAILED)
    assert again.reason == failed.reason
