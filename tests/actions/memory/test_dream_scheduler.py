"""Dreams at their time: whose turn it is, how long they rest, and what a failure costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.memory_agents import DAY, MemoryAgent, create_memory_agent

from carrel.actions.agents import agents
from carrel.actions.memory.dream_scheduler import DreamRun, run_due_dreams
from carrel.core.memory.dream_records import DreamSchedule, schedule_from_record
from carrel.core.memory.promoted_lines import MEMORY_PATH
from carrel.core.store.record import RecordType
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
HOUR = 3_600_000


@pytest.fixture
async def marco(ports: Ports) -> MemoryAgent:
    return await create_memory_agent(ports)


async def slept(ports: Ports) -> list[DreamRun]:
    return [one async for one in run_due_dreams(ports)]


async def test_only_those_who_are_set_up_to_dream_do(marco: MemoryAgent) -> None:
    polo = await marco.tenant.create_agent("polo", "Polo")
    assert await slept(marco.ports) == []
    await agents.patch(
        marco.ports, marco.owner, "polo", {"config": {"dreaming": {"enabled": True}}}
    )
    assert [one.agent for one in await slept(marco.ports)] == [polo.id]
    await agents.patch(marco.ports, marco.owner, "polo", {"config": {}})
    marco.advance()
    assert await slept(marco.ports) == []


async def test_dreams_are_as_far_apart_as_they_are_set_to_be(marco: MemoryAgent) -> None:
    await marco.set(enabled=True, intervalSecs=3600)
    await marco.learn("Ada likes tea")
    [first] = await slept(marco.ports)
    assert (first.promoted, first.problem) == (1, None)
    assert await slept(marco.ports) == []
    marco.advance(HOUR - 60_000)
    assert await slept(marco.ports) == []
    marco.advance(61_000)
    assert len(await slept(marco.ports)) == 1


async def test_a_dream_by_hand_counts_as_one(marco: MemoryAgent) -> None:
    await marco.set(enabled=True)
    await marco.dreams()
    assert await slept(marco.ports) == []
    marco.advance(DAY)
    assert len(await slept(marco.ports)) == 1


async def test_one_that_fails_waits_longer_and_stops_no_other(marco: MemoryAgent) -> None:
    await marco.tenant.create_agent("polo", "Polo")
    polo = MemoryAgent(marco.ports, marco.tenant, "polo")
    for one in (marco, polo):
        await one.set(enabled=True, intervalSecs=3600)
    stack = await marco.tenant.agent_stack()
    await marco.tenant.write(stack, MEMORY_PATH, b"\xff\xfe")
    found = await slept(marco.ports)
    assert [one.problem is None for one in found] == [False, True]
    marco.advance(HOUR + 60_000)
    assert [one.agent for one in await slept(marco.ports)] == [found[1].agent]
    marco.advance(HOUR)
    assert {one.agent for one in await slept(marco.ports)} == {one.agent for one in found}
    [rest] = await marco.ports.records.get(marco.owner.tenant, RecordType.DREAM, [found[0].agent])
    assert schedule_from_record(rest).failures == 2
    await marco.write("mine\n")
    marco.advance(DAY)
    assert all(one.problem is None for one in await slept(marco.ports))
    [rest] = await marco.ports.records.get(marco.owner.tenant, RecordType.DREAM, [found[0].agent])
    assert schedule_from_record(rest).failures == 0


@given(st.integers(60, 10**7), st.integers(0, 100), st.integers(1, 2 * 10**12))
def test_after_a_failure_nobody_is_sooner_than_after_a_success(
    interval: int, failures: int, at: int
) -> None:
    good = DreamSchedule(last=at).next_due(interval)
    bad = DreamSchedule(tried=at, failures=failures).next_due(interval)
    more = DreamSchedule(tried=at, failures=failures + 1).next_due(interval)
    assert good == at + 1000 * interval <= bad <= more <= at + 1000 * max(interval, 7 * 86_400)
    assert DreamSchedule().next_due(interval) == 0
