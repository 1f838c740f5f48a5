"""Duration of a dream (memory consolidation) over many memories and recalls."""

from __future__ import annotations

from pathlib import Path as File
from time import perf_counter

from bench.report import Results
from carrel.actions.agents.agents import NewAgent, create
from carrel.actions.memory import dreams
from carrel.adapters.system_clock import SystemClock
from carrel.core.access import Actor
from carrel.core.memory.memory import memory_change, new_memory
from carrel.core.memory.recall_records import Recall
from carrel.core.runs import Audience
from carrel.core.store.commit import Commit
from carrel.ports import Ports
from carrel.settings import load
from carrel.wiring.ports import open_ports

MEMORIES, RECALLS = 10_000, 100_000
LABEL = f"a dream over {MEMORIES:,} memories and {RECALLS:,} recalls"
_OWNER = Actor("acme", "bench")


async def measure(data: File, results: Results, rounds: int) -> None:
    """Measure dry runs over all memories, and one dream that commits at the end."""
    async with open_ports(load({"data": str(data)})) as store:
        ports = store.ports
        agent = (await create(ports, _OWNER, NewAgent("marco", "Marco"))).id
        await _fill(ports, agent)
        for number in range(rounds):
            began = perf_counter()
            dry = number < rounds - 1
            report = await dreams.sweep(ports, _OWNER, agent, dry_run=dry)
            assert report.dream.candidates == MEMORIES
            results.record(LABEL, perf_counter() - began)


async def _fill(ports: Ports, agent: str) -> None:
    now, clock = ports.clock.now(), SystemClock()
    recalls_per_memory = RECALLS // MEMORIES
    for start in range(0, MEMORIES, 500):
        memories = [
            new_memory(clock.new_id("mem"), agent, f"fact {n} of many", Audience.MAIN, now)
            for n in range(start, start + 500)
        ]
        changes = tuple(memory_change(_OWNER.tenant, memory, 0) for memory in memories)
        await ports.trees.commit([Commit((), "bench", "", now, changes=changes)])
        recalls = [
            Recall(
                clock.new_id("rcl"), agent, memory.id, f"question {k}", 1 / (k + 1), now - k * 10**7
            )
            for memory in memories
            for k in range(recalls_per_memory)
        ]
        await ports.recalls.record(_OWNER.tenant, recalls)
