"""A dream over very many memories and recalls: how long it takes."""

from __future__ import annotations

from pathlib import Path as File
from time import perf_counter

from bench.table import Book
from carrel.actions.agents.agents import NewAgent, create
from carrel.actions.memory import dreams
from carrel.adapters.system_clock import SystemClock
from carrel.core.access import Actor
from carrel.core.memory.memory import memory_change, new_memory
from carrel.core.memory.recall import Recall
from carrel.core.runs import Audience
from carrel.core.store.tree import Commit
from carrel.ports import Ports
from carrel.settings import load
from carrel.wiring.ports import open_ports

MEMORIES, RECALLS = 10_000, 100_000
WHAT = f"a dream over {MEMORIES:,} memories and {RECALLS:,} recalls"
_OWNER = Actor("acme", "bench")


async def measure(data: File, book: Book, rounds: int) -> None:
    """Each time a dry run over all of it, and in the end one that lands."""
    async with open_ports(load({"data": str(data)})) as opened:
        ports = opened.ports
        agent = (await create(ports, _OWNER, NewAgent("marco", "Marco"))).id
        await _fill(ports, agent)
        for number in range(rounds):
            began = perf_counter()
            dry = number < rounds - 1
            report = await dreams.sweep(ports, _OWNER, agent, dry_run=dry)
            assert report.dream.candidates == MEMORIES
            book.note(WHAT, perf_counter() - began)


async def _fill(ports: Ports, agent: str) -> None:
    at, clock = ports.clock.now(), SystemClock()
    each = RECALLS // MEMORIES
    for start in range(0, MEMORIES, 500):
        some = [
            new_memory(
                clock.new_id("mem"), agent, f"fact {n} of many that were told", Audience.MAIN, at
            )
            for n in range(start, start + 500)
        ]
        changes = tuple(memory_change(_OWNER.tenant, one, 0) for one in some)
        await ports.trees.commit([Commit((), "bench", "", at, changes=changes)])
        recalls = [
            Recall(clock.new_id("rcl"), agent, one.id, f"question {k}", 1 / (k + 1), at - k * 10**7)
            for one in some
            for k in range(each)
        ]
        await ports.recalls.record(_OWNER.tenant, recalls)
