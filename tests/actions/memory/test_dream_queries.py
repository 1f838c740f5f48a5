"""A dream over very much asks no more questions than one over little."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.memory_agents import MemoryAgent, create_memory_agent

from carrel.actions.memory import dreams
from carrel.core.memory.memory import memory_change, new_memory
from carrel.core.memory.recall import Recall
from carrel.core.runs import Audience
from carrel.core.store.tree import Commit
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
PORTS = ("trees", "blobs", "records", "recalls")


class Counting:
    """A port that counts what it is asked."""

    def __init__(self, port: Any, counts: list[str]) -> None:
        self._port, self._counts = port, counts

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._port, name)

        def ask(*args: Any, **more: Any) -> Any:
            if name != "revision":  # which every store knows without asking
                self._counts.append(name)
            return verb(*args, **more)

        return ask


def counting(ports: Ports) -> tuple[Ports, list[str]]:
    counts: list[str] = []
    replaced: dict[str, Any] = {name: Counting(getattr(ports, name), counts) for name in PORTS}
    return replace(ports, **replaced), counts


async def fill(marco: MemoryAgent, memories: int, each: int) -> None:
    """So many memories, that each came up so often."""
    agent, tenant, at = marco.tenant.agent.id, marco.owner.tenant, marco.ports.clock.now()
    made = [
        new_memory(f"mem_{n:06}", agent, f"fact {n} x", Audience.MAIN, at) for n in range(memories)
    ]
    for start in range(0, memories, 500):
        some = made[start : start + 500]
        changes = tuple(memory_change(tenant, one, 0) for one in some)
        await marco.ports.trees.commit([Commit((), "ada", "", at, changes=changes)])
        recalls = [
            Recall(f"{one.id}.{k}", agent, one.id, f"q{k}", 0.01, at)
            for one in some
            for k in range(each)
        ]
        await marco.ports.recalls.record(tenant, recalls)


@pytest.mark.parametrize("ports", ["sqlite"], indirect=True)
async def test_the_number_of_questions_is_bounded(ports: Ports) -> None:
    marco = await create_memory_agent(ports)
    await fill(marco, 3, 4)
    few, counts = counting(ports)
    await dreams.sweep(few, marco.owner, "marco", dry_run=True)
    little = len(counts)
    await fill_more(marco)
    many, counts = counting(ports)
    report = await dreams.sweep(many, marco.owner, "marco")
    assert report.dream.candidates == 2_500
    assert len(report.dream.promoted) == 20
    assert len(report.dream.rejected) == 2_480
    assert little <= 15
    assert len(counts) <= little + 4 + 8, counts


async def fill_more(marco: MemoryAgent) -> None:
    agent, tenant = marco.tenant.agent.id, marco.owner.tenant
    await marco.ports.recalls.prune(tenant, agent, 2**62)
    for n in range(3):
        await marco.forget(f"mem_{n:06}")
    await fill(marco, 2_500, 4)
