"""Runs the dreams of all agents that are due, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from carrel.actions.memory.dreams import record_failure, sweep
from carrel.core.access import Actor
from carrel.core.agents.agent import DREAMING_INDEX, agent_config
from carrel.core.errors import Busy, NotFound
from carrel.core.identifiers import TimestampMs
from carrel.core.memory.dream_records import schedule_from_record
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

SERVER_AUTHOR: Final = "carrel"
"""Author of scheduled dreams in the history."""
MAX_DREAM_SECONDS: Final = 30 * 60.0
"""Timeout of one dream."""
_BATCH_SIZE: Final = 500


@dataclass(frozen=True, slots=True)
class DreamRun:
    tenant: str
    agent: str
    promoted: int
    problem: Exception | None = None


async def run_due_dreams(ports: Ports) -> AsyncIterator[DreamRun]:
    """Run every due dream and yield its result.

    Only agents with dreaming enabled are read. A failed dream does not stop the others and is
    retried later.
    """
    after = ""
    while agents := await ports.records.list(
        "", RecordType.AGENT, index_key=DREAMING_INDEX, after=after, limit=_BATCH_SIZE
    ):
        for agent in await _find_due(ports, agents, ports.clock.now()):
            yield await _run_dream(ports, agent)
        after = agents[-1].id


async def _find_due(ports: Ports, agents: Sequence[Record], now: TimestampMs) -> list[Record]:
    by_tenant: dict[str, list[Record]] = {}
    for agent in agents:
        by_tenant.setdefault(agent.tenant, []).append(agent)
    due: list[Record] = []
    for tenant, tenant_agents in by_tenant.items():
        schedules = await ports.records.get(
            tenant, RecordType.DREAM, [agent.id for agent in tenant_agents]
        )
        for agent, schedule in zip(tenant_agents, schedules, strict=True):
            settings = agent_config(agent).dreaming
            if (
                settings.enabled
                and schedule_from_record(schedule).next_due(settings.interval_secs) <= now
            ):
                due.append(agent)
    return due


async def _run_dream(ports: Ports, agent: Record) -> DreamRun:
    actor = Actor(agent.tenant, SERVER_AUTHOR)
    try:
        report = await asyncio.wait_for(sweep(ports, actor, agent.id), MAX_DREAM_SECONDS)
    except NotFound as problem:  # deleted meanwhile
        return DreamRun(agent.tenant, agent.id, 0, problem)
    except Exception as problem:
        with suppress(Busy):  # another process recorded a result
            await record_failure(ports, agent.tenant, agent.id)
        return DreamRun(agent.tenant, agent.id, 0, problem)
    return DreamRun(agent.tenant, agent.id, len(report.dream.promoted))
