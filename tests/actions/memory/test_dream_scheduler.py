"""Scheduled dreams: which agents are due, intervals, and backoff after failures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.memory_agents import DAY, MemoryAgent, create_memory_agent

from carrel.actions.agents import agents
from carrel.actions.memory.dream_scheduler import DreamRun, run_due_dreams
from carrel.core.errors import Conflict
from carrel.core.memory.dream_records import DreamSchedule, schedule_from_record
from carrel.core.memory.promoted_lines import MEMORY_PATH
from carrel.core.sessions.session import format_timestamp
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
HOUR = 3_600_000


@pytest.fixture
async def marco(ports: Ports) -> MemoryAgent:
    return await create_memory_agent(ports)


async def run_dreams(ports: Ports) -> list[DreamRun]:
    return [run async for run in run_due_dreams(ports)]


async def test_only_agents_with_dreaming_enabled_dream(marco: MemoryAgent) -> None:
    polo = await marco.tenant.create_agent("polo", "Polo")
    assert await run_dreams(marco.ports) == []
    await agents.patch(
        marco.ports, marco.owner, "polo", {"config": {"dreaming": {"enabled": True}}}
    )
    assert [run.agent for run in await run_dreams(marco.ports)] == [polo.id]
    await agents.patch(marco.ports, marco.owner, "polo", {"config": {}})
    marco.advance()
    assert await run_dreams(marco.ports) == []


async def test_dreams_keep_the_configured_interval(marco: MemoryAgent) -> None:
    await marco.set(enabled=True, intervalSecs=3600)
    await marco.learn("Ada likes tea")
    [first] = await run_dreams(marco.ports)
    assert (first.promoted, first.problem) == (1, None)
    assert await run_dreams(marco.ports) == []
    marco.advance(HOUR - 60_000)
    assert await run_dreams(marco.ports) == []
    marco.advance(61_000)
    assert len(await run_dreams(marco.ports)) == 1


async def test_a_manual_dream_counts_for_the_interval(marco: MemoryAgent) -> None:
    await marco.set(enabled=True)
    await marco.dreams()
    assert await run_dreams(marco.ports) == []
    marco.advance(DAY)
    assert len(await run_dreams(marco.ports)) == 1


async def test_a_manual_dream_keeps_the_interval_unless_forced(marco: MemoryAgent) -> None:
    await marco.dreams()
    last = (await marco.dreams()).dream.started  # without a schedule there is no interval
    await marco.set(enabled=True, intervalSecs=3600)
    with pytest.raises(Conflict) as refused:
        await marco.dreams()
    assert refused.value.details["nextDreamAt"] == format_timestamp(last + HOUR)
    await marco.dreams(dry_run=True)
    await marco.dreams(force=True)
    marco.advance(HOUR)
    await marco.dreams()


async def test_a_failing_agent_backs_off_and_delays_no_other(marco: MemoryAgent) -> None:
    await marco.tenant.create_agent("polo", "Polo")
    polo = MemoryAgent(marco.ports, marco.tenant, "polo")
    for item in (marco, polo):
        await item.set(enabled=True, intervalSecs=3600)
    stack = await marco.tenant.agent_stack()
    await marco.tenant.write(stack, MEMORY_PATH, b"\xff\xfe")
    dream_runs = await run_dreams(marco.ports)
    assert [item.problem is None for item in dream_runs] == [False, True]
    marco.advance(HOUR + 60_000)
    assert [item.agent for item in await run_dreams(marco.ports)] == [dream_runs[1].agent]
    marco.advance(HOUR)
    assert {item.agent for item in await run_dreams(marco.ports)} == {
        item.agent for item in dream_runs
    }
    [schedule] = await marco.ports.records.get(
        marco.owner.tenant, RecordType.DREAM, [dream_runs[0].agent]
    )
    assert schedule_from_record(schedule).failures == 2
    await marco.write("mine\n")
    marco.advance(DAY)
    assert all(item.problem is None for item in await run_dreams(marco.ports))
    [schedule] = await marco.ports.records.get(
        marco.owner.tenant, RecordType.DREAM, [dream_runs[0].agent]
    )
    assert schedule_from_record(schedule).failures == 0


@given(st.integers(60, 10**7), st.integers(0, 100), st.integers(1, 2 * 10**12))
def test_after_a_failure_no_dream_is_due_sooner_than_after_a_success(
    interval: int, failures: int, now: int
) -> None:
    after_success = DreamSchedule(last=now).next_due(interval)
    after_failure = DreamSchedule(tried=now, failures=failures).next_due(interval)
    after_next_failure = DreamSchedule(tried=now, failures=failures + 1).next_due(interval)
    assert (
        after_success
        == now + 1000 * interval
        <= after_failure
        <= after_next_failure
        <= now + 1000 * max(interval, 7 * 86_400)
    )
    assert DreamSchedule().next_due(interval) == 0
