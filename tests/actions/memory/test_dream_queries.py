"""The number of queries of a dream does not grow with the number of memories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.support.memory_agents import MemoryAgent, create_memory_agent

from carrel.actions.memory import dreams
from carrel.core.memory.memory import memory_change, new_memory
from carrel.core.memory.recall_records import Recall
from carrel.core.runs import Audience
from carrel.core.store.commit import Commit
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
PORTS = ("trees", "blobs", "records", "recalls")


class CountingPort:
    """A port that records the names of the called methods."""

    def __init__(self, port: Any, counts: list[str]) -> None:
        self._port, self._counts = port, counts

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        def call(*args: Any, **options: Any) -> Any:
            if name != "revision":  # which every store answers from memory
                self._counts.append(name)
            return method(*args, **options)

        return call


def count_calls(ports: Ports) -> tuple[Ports, list[str]]:
    counts: list[str] = []
    replaced: dict[str, Any] = {name: CountingPort(getattr(ports, name), counts) for name in PORTS}
    return replace(ports, **replaced), counts


async def fill(marco: MemoryAgent, memories: int, recalls_per_memory: int) -> None:
    """Store memories, each with a number of recalls."""
    agent, tenant, now = marco.tenant.agent.id, marco.owner.tenant, marco.ports.clock.now()
    all_memories = [
        new_memory(f"mem_{n:06}", agent, f"fact {n} x", Audience.MAIN, now) for n in range(memories)
    ]
    for start in range(0, memories, 500):
        batch = all_memories[start : start + 500]
        changes = tuple(memory_change(tenant, memory, 0) for memory in batch)
        await marco.ports.trees.commit([Commit((), "ada", "", now, changes=changes)])
        recalls = [
            Recall(f"{memory.id}.{k}", agent, memory.id, f"q{k}", 0.05, now)
            for memory in batch
            for k in range(recalls_per_memory)
        ]
        await marco.ports.recalls.record(tenant, recalls)


@pytest.mark.parametrize("ports", ["sqlite"], indirect=True)
async def test_the_number_of_queries_is_bounded(ports: Ports) -> None:
    marco = await create_memory_agent(ports)
    await fill(marco, 3, 4)
    few_ports, counts = count_calls(ports)
    await dreams.sweep(few_ports, marco.owner, "marco", dry_run=True)
    base_count = len(counts)
    await fill_more(marco)
    many_ports, counts = count_calls(ports)
    report = await dreams.sweep(many_ports, marco.owner, "marco")
    assert report.dream.candidates == 2_500
    assert len(report.dream.promoted) == 20
    assert len(report.dream.rejected) == 2_480
    assert base_count <= 15
    assert len(counts) <= base_count + 4 + 8, counts


async def fill_more(marco: MemoryAgent) -> None:
    agent, tenant = marco.tenant.agent.id, marco.owner.tenant
    await marco.ports.recalls.prune(tenant, agent, 2**62)
    for n in range(3):
        await marco.forget(f"mem_{n:06}")
    await fill(marco, 2_500, 4)
