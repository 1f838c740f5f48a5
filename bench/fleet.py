"""Cost of agent operations in a store of 1,000,000 agents compared with 1,000."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path as File
from time import perf_counter

from msgspec.structs import replace

from bench.report import Results
from carrel.actions.accounts import tenants
from carrel.actions.agents import agents, overview, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.core.access import Actor, Role
from carrel.core.agents.agent import agent_change, agent_from_record
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.commit import Commit, Write
from carrel.core.store.entry import Entry
from carrel.core.store.record import Record
from carrel.ports import Ports
from carrel.settings import load
from carrel.wiring.ports import open_ports

SIZES = tuple(map(int, os.environ.get("BENCH_AGENTS", "1000,1000000").split(",")))
TEMPLATES = 100
AGENTS_PER_OVERRIDE = 100
"""One of this many agents overrides a file."""
_CALLS_PER_ROUND = 300
_BATCH_SIZE = 500
_agent_numbers = count()


@asynccontextmanager
async def open_tenant(data: File) -> AsyncIterator[tuple[Ports, Actor]]:
    async with open_ports(load({"data": str(data)}, environ={})) as store:
        await tenants.bootstrap(store.ports)
        owner = await tenants.get_first_owner(store.ports, tenants.DEFAULT_TENANT_SLUG)
        yield store.ports, Actor(owner.tenant, "bench", role=Role.OWNER, person=owner.id)


async def fill(data: File, size: int, on_progress: Callable[[int], None]) -> None:
    """Create agents as the API would, through the same write path, in batches."""
    async with open_tenant(data) as (ports, actor):
        first_agents = [await _create_template(ports, actor, number) for number in range(TEMPLATES)]
        for start in range(0, size, _BATCH_SIZE):
            numbers = range(start, min(start + _BATCH_SIZE, size))
            await ports.trees.commit(
                [await _agent_commit(ports, first_agents[n % TEMPLATES], n) for n in numbers]
            )
            on_progress(len(numbers))


async def _create_template(ports: Ports, actor: Actor, number: int) -> Record:
    """Create a template and its first agent, whose fields the other agents copy."""
    template = await templates.create(ports, actor, f"template-{number}", f"Template {number}")
    scope = await stacks.template_stack(ports, actor, template.id)
    await files.put(ports, scope, Path("SOUL.md"), f"soul {number}".encode(), actor)
    return await agents.create(
        ports, actor, NewAgent(f"first-{number}", "First", template=template.id)
    )


async def _agent_commit(ports: Ports, first: Record, number: int) -> Commit:
    id, timestamp = ports.clock.new_id("agt"), ports.clock.now()
    agent = replace(agent_from_record(first), slug=slug_of(number), name=f"Agent {number}")
    change = agent_change(first.tenant, id, agent)
    writes: tuple[Write, ...] = ()
    if number % AGENTS_PER_OVERRIDE == 0:
        [blob] = await ports.blobs.put([f"the soul of {number}".encode()])
        writes = (Write(Scope(first.tenant, ScopeKind.AGENT, id), Path("SOUL.md"), Entry(blob)),)
    return Commit(writes, "bench", "create an agent", timestamp, changes=(change,))


def slug_of(number: int) -> str:
    return f"agent-{number:07}"


async def measure_round(results: Results, data: File, size: int) -> None:
    async with open_tenant(data) as (ports, actor):

        async def make() -> None:
            number = next(_agent_numbers)
            new = NewAgent(f"new-{number}", f"New {number}", template="template-7")
            await agents.create(ports, actor, new)

        async def compose() -> None:
            stack = await stacks.agent_stack(ports, actor, slug_of(random.randrange(size)))
            contents = await files.read_contents(ports, await files.list_files(ports, stack))
            assert len(contents.contents) == 11

        cursors = [
            agent.id for agent in (await overview.list_agents(ports, actor, limit=500)).items
        ]

        async def page() -> None:
            await overview.list_agents(ports, actor, cursor=random.choice(cursors), limit=100)

        for label, operation in (("making", make), ("composing", compose), ("listing", page)):
            results.record(f"{label}, {size}", await _median_seconds(operation))


async def _median_seconds(operation: Callable[[], Awaitable[None]]) -> float:
    durations = []
    for _ in range(_CALLS_PER_ROUND):
        began = perf_counter()
        await operation()
        durations.append(perf_counter() - began)
    return sorted(durations)[_CALLS_PER_ROUND // 2]


def add_rows(results: Results, folder: File) -> None:
    smallest, largest = SIZES[0], SIZES[-1]
    for label in ("making", "composing", "listing"):
        title = f"{label} one of {largest:,} agents / of {smallest:,}"
        results.ratio(title, f"{label}, {largest}", f"{label}, {smallest}", at_most=1.5)
    with closing(sqlite3.connect(folder / str(largest) / "carrel.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = (folder / str(largest) / "carrel.db").stat().st_size
    results.record("size", size / largest)
    label = f"database, an agent of {largest:,}, three pins and 1 % overrides included"
    results.figure(label, "size", "bytes", at_most=1024)
