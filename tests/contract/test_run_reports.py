"""Contract of a run's reports: what counts as one, and when a run can become abandoned."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace
from tests.support.commits import ACME, AGENT, NOW, commit, list_events, new_run, write
from tests.support.contract_stores import Ports

from carrel.core.runs import Run, RunStatus
from carrel.core.store.event import EventDraft

pytestmark = pytest.mark.anyio


async def start(ports: Ports, id: str, reported_at: int = NOW) -> Run:
    [run] = await ports.runs.start([(new_run(id, reported_at=reported_at), (AGENT,))])
    return run


async def reload(ports: Ports, id: str) -> Run:
    [run] = await ports.runs.get(ACME, [id])
    assert run is not None
    return run


def abandoned(run: Run, at: int = NOW + 100) -> Run:
    return replace(run, status=RunStatus.ABANDONED, ended_at=at, abandoned_at=at)


async def test_silent_runs_are_listed_those_silent_longest_first(ports: Ports) -> None:
    for n, id in enumerate(("run_3", "run_1", "run_2", "run_4")):
        await start(ports, id, NOW + n)
    ended = await reload(ports, "run_1")
    assert await ports.runs.update(
        replace(ended, status=RunStatus.COMPLETED, ended_at=NOW + 9), ended
    )

    listed = await ports.runs.list_unreported(NOW + 3)

    assert [run.id for run in listed] == ["run_3", "run_2"]
    assert listed[0] == await reload(ports, "run_3")
    assert [run.id for run in await ports.runs.list_unreported(NOW + 3, limit=1)] == ["run_3"]
    assert await ports.runs.list_unreported(NOW) == ()


async def test_a_report_moves_forward_only_and_of_the_tenants_own_runs(ports: Ports) -> None:
    await start(ports, "run_1")
    await ports.runs.report("globex", ["run_1"], NOW + 50)
    assert (await reload(ports, "run_1")).reported_at == NOW
    await ports.runs.report(ACME, ["run_1", "run_none"], NOW + 20)
    await ports.runs.report(ACME, ["run_1"], NOW + 10)
    await ports.runs.report(ACME, [], NOW + 90)
    assert (await reload(ports, "run_1")).reported_at == NOW + 20


async def test_a_write_and_an_event_of_a_run_are_reports(ports: Ports) -> None:
    await start(ports, "run_1", NOW - 50)
    await ports.trees.commit([replace(commit(await write(ports, "kind")), run="run_1")])
    assert (await reload(ports, "run_1")).reported_at == NOW

    event = EventDraft(ACME, "tool.called", {"runId": "run_1", "tool": "recall"})
    logged = replace(commit(), writes=(), run="run_1", at=NOW + 30, events=(event,))
    await ports.trees.commit([logged])

    assert (await reload(ports, "run_1")).reported_at == NOW + 30
    events = await list_events(ports, run="run_1")
    assert [(event.type, event.sequence) for event in events] == [
        ("run.started", 1),
        ("workspace.updated", 2),
        ("tool.called", 3),
    ]
    assert events[-1].payload == event.payload


async def test_a_run_that_reported_meanwhile_does_not_become_abandoned(ports: Ports) -> None:
    silent = await start(ports, "run_1")
    await ports.runs.report(ACME, ["run_1"], NOW + 60)

    assert not await ports.runs.update(abandoned(silent), silent)
    assert (await reload(ports, "run_1")).status is RunStatus.RUNNING

    current = await reload(ports, "run_1")
    assert await ports.runs.update(abandoned(current), current)
    assert await reload(ports, "run_1") == abandoned(current)


async def test_an_end_does_not_depend_on_reports(ports: Ports) -> None:
    started = await start(ports, "run_1")
    await ports.runs.report(ACME, ["run_1"], NOW + 60)
    ended = replace(started, status=RunStatus.FAILED, ended_at=NOW + 70, reason="no such tool")
    assert await ports.runs.update(ended, started)
    assert await reload(ports, "run_1") == replace(ended, reported_at=NOW + 60)


async def test_a_late_end_keeps_when_the_run_was_abandoned(ports: Ports) -> None:
    run = await start(ports, "run_1")
    lost = abandoned(run)
    assert await ports.runs.update(lost, run)
    ended = replace(lost, status=RunStatus.COMPLETED, ended_at=NOW + 500)
    assert await ports.runs.update(ended, lost)

    assert await reload(ports, "run_1") == ended
    events = await list_events(ports, run="run_1")
    assert [(event.type, event.at) for event in events] == [
        ("run.started", NOW),
        ("run.abandoned", NOW + 100),
        ("run.completed", NOW + 500),
    ]


async def test_of_reports_and_an_abandonment_at_once_the_run_keeps_one_truth(
    ports: Ports,
) -> None:
    for n in range(8):
        id = f"run_{n}"
        run = await start(ports, id)
        _, was_abandoned = await asyncio.gather(
            ports.runs.report(ACME, [id], NOW + 60), ports.runs.update(abandoned(run), run)
        )
        final = await reload(ports, id)
        assert (final.status is RunStatus.ABANDONED) is was_abandoned
        assert final.reported_at == NOW + 60
