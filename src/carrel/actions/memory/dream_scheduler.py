"""Dreams at their time: every agent that is set up to dream does so, one after the other."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from carrel.actions.memory.dreams import failed, sweep
from carrel.core.access import Actor
from carrel.core.agents.agent import DREAMING
from carrel.core.agents.config import config_of
from carrel.core.errors import Busy, NotFound
from carrel.core.identifiers import TimestampMs
from carrel.core.memory.dream_records import schedule_of
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

CARREL: Final = "carrel"
"""What history says did it."""
LONGEST: Final = 30 * 60.0
"""Seconds after which a dream is given up."""
_AT_ONCE: Final = 500


@dataclass(frozen=True, slots=True)
class DreamRun:
    tenant: str
    agent: str
    promoted: int
    problem: Exception | None = None


async def run_due_dreams(ports: Ports) -> AsyncIterator[DreamRun]:
    """Let each dream whose time has come, and tell of each.

    Agents that do not dream are not read. One that fails stops no other, and waits longer.
    """
    after = ""
    while found := await ports.records.list(
        "", RecordType.AGENT, link=DREAMING, after=after, limit=_AT_ONCE
    ):
        for agent in await _due(ports, found, ports.clock.now()):
            yield await _slept(ports, agent)
        after = found[-1].id


async def _due(ports: Ports, agents: Sequence[Record], now: TimestampMs) -> list[Record]:
    by_tenant: dict[str, list[Record]] = {}
    for agent in agents:
        by_tenant.setdefault(agent.tenant, []).append(agent)
    due: list[Record] = []
    for tenant, some in by_tenant.items():
        rests = await ports.records.get(tenant, RecordType.DREAM, [agent.id for agent in some])
        for agent, rest in zip(some, rests, strict=True):
            settings = config_of(agent.body.get("config") or {}).dreaming
            if settings.enabled and schedule_of(rest).due(settings.interval_secs) <= now:
                due.append(agent)
    return due


async def _slept(ports: Ports, agent: Record) -> DreamRun:
    actor = Actor(agent.tenant, CARREL)
    try:
        report = await asyncio.wait_for(sweep(ports, actor, agent.id), LONGEST)
    except NotFound as problem:  # it was deleted meanwhile
        return DreamRun(agent.tenant, agent.id, 0, problem)
    except Exception as problem:
        with suppress(Busy):  # then somebody else has noted how it went
            await failed(ports, agent.tenant, agent.id)
        return DreamRun(agent.tenant, agent.id, 0, problem)
    return DreamRun(agent.tenant, agent.id, len(report.dream.promoted))
