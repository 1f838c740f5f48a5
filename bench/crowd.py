"""A crowd of agents: what one of a million costs, beside one of a thousand."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path as File
from time import perf_counter

from bench.table import Book
from carrel.actions.accounts import tenants
from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.core.access import Actor, Role
from carrel.core.agents.agent import agent_change, agent_fields
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.record import Record
from carrel.core.store.tree import Commit, Entry, Write
from carrel.ports import Ports
from carrel.settings import load
from carrel.wiring.ports import open_ports

SIZES = tuple(map(int, os.environ.get("BENCH_AGENTS", "1000,1000000").split(",")))
TEMPLATES = 100
OVERRIDDEN = 100
"""One agent of so many has a file of its own."""
_ASKED = 300
_AT_ONCE = 500
_fresh = count()


@asynccontextmanager
async def opened(data: File) -> AsyncIterator[tuple[Ports, Actor]]:
    async with open_ports(load({"data": str(data)}, environ={})) as store:
        await tenants.bootstrap(store.ports)
        owner = await tenants.get_first_owner(store.ports, tenants.DEFAULT_TENANT_SLUG)
        yield store.ports, Actor(owner.tenant, "bench", role=Role.OWNER, person=owner.id)


async def fill(data: File, size: int, tell: Callable[[int], None]) -> None:
    """Agents as they are when made one by one, through the same write path, many at a time."""
    async with opened(data) as (ports, actor):
        firsts = [await _first(ports, actor, number) for number in range(TEMPLATES)]
        for start in range(0, size, _AT_ONCE):
            numbers = range(start, min(start + _AT_ONCE, size))
            await ports.trees.commit(
                [await _made(ports, firsts[n % TEMPLATES], n) for n in numbers]
            )
            tell(len(numbers))


async def _first(ports: Ports, actor: Actor, number: int) -> Record:
    """A template and the first agent to follow it, whom the others are like."""
    template = await templates.create(ports, actor, f"template-{number}", f"Template {number}")
    scope = await stacks.template_stack(ports, actor, template.id)
    await files.put(ports, scope, Path("SOUL.md"), f"soul {number}".encode(), actor)
    return await agents.create(
        ports, actor, NewAgent(f"first-{number}", "First", template=template.id)
    )


async def _made(ports: Ports, first: Record, number: int) -> Commit:
    id, at = ports.clock.new_id("agt"), ports.clock.now()
    body = {**agent_fields(first), "slug": slug_of(number), "name": f"Agent {number}"}
    change = agent_change(first.tenant, id, body, 0)
    writes: tuple[Write, ...] = ()
    if number % OVERRIDDEN == 0:
        [blob] = await ports.blobs.put([f"the soul of {number}".encode()])
        writes = (Write(Scope(first.tenant, ScopeKind.AGENT, id), Path("SOUL.md"), Entry(blob)),)
    return Commit(writes, "bench", "create an agent", at, changes=(change,))


def slug_of(number: int) -> str:
    return f"agent-{number:07}"


async def round(book: Book, data: File, size: int) -> None:
    async with opened(data) as (ports, actor):

        async def make() -> None:
            number = next(_fresh)
            new = NewAgent(f"new-{number}", f"New {number}", template="template-7")
            await agents.create(ports, actor, new)

        async def compose() -> None:
            stack = await stacks.agent_stack(ports, actor, slug_of(random.randrange(size)))
            contents = await files.read_contents(ports, await files.list_files(ports, stack))
            assert len(contents.contents) == 11

        cursors = [one.id for one in (await agents.list_agents(ports, actor, limit=500)).items]

        async def page() -> None:
            await agents.list_agents(ports, actor, cursor=random.choice(cursors), limit=100)

        for what, act in (("making", make), ("composing", compose), ("listing", page)):
            book.note(f"{what}, {size}", await _seconds(act))


async def _seconds(act: Callable[[], Awaitable[None]]) -> float:
    took = []
    for _ in range(_ASKED):
        began = perf_counter()
        await act()
        took.append(perf_counter() - began)
    return sorted(took)[_ASKED // 2]


def rows(book: Book, folder: File) -> None:
    least, most = SIZES[0], SIZES[-1]
    for what in ("making", "composing", "listing"):
        told = f"{what} one of {most:,} agents / of {least:,}"
        book.ratio(told, f"{what}, {most}", f"{what}, {least}", at_most=1.5)
    with closing(sqlite3.connect(folder / str(most) / "carrel.db")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    size = (folder / str(most) / "carrel.db").stat().st_size
    book.note("size", size / most)
    what = f"database, an agent of {most:,}, three pins and 1 % overrides included"
    book.figure(what, "size", "bytes", at_most=1024)
