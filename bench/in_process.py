"""Reads by the in-process client compared with the same reads by the actions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path as FilePath
from time import process_time
from typing import Final

import carrel
from bench.report import Results
from carrel import InProcessClient
from carrel.actions.accounts import tenants
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.core.access import Actor
from carrel.core.identifiers import Path, Stack
from carrel.ports import Ports
from carrel_client import Files
from carrel_client.drivers import AsyncDriver

READS: Final = 100
REPEATS: Final = 20
"""Rounds; the fastest counts, since other programs only slow a read down."""
CONTENT: Final = "x" * 2000
EARLIER_RATIOS: Final = {"workspace": 3.3, "agent": 2.05}
"""The same ratios before `carrel.open` returned the client."""

Read = Callable[[], Awaitable[str]]


def by_actions(case: str) -> str:
    return f"seconds a read of a file of {case}, by the actions"


def by_client(case: str) -> str:
    return f"seconds a read of a file of {case}, by the client in process"


async def measure(data: FilePath, results: Results) -> None:
    """Measure one round of every case, the two ways interleaved."""
    async with carrel.open(data) as client:
        await client.agents.create("ada")
        for case, reads in (await _cases(client)).items():
            await _read(reads, results, case)


async def _cases(client: InProcessClient) -> dict[str, tuple[Read, Read]]:
    ports = client._ports
    owner = await tenants.get_first_owner(ports, tenants.DEFAULT_TENANT_SLUG)
    actor = Actor(owner.tenant, "bench")
    workspace, agent = client.workspace(), client.agent("ada")
    for place in (workspace, agent):
        await place.put("a.md", CONTENT)

    workspace_stack = await stacks.default_stack(ports, actor)
    agent_stack = await stacks.agent_stack(ports, actor, "ada")
    return {
        "workspace": (
            lambda: _read_content(ports, workspace_stack),
            lambda: _get_content(workspace),
        ),
        "agent": (
            lambda: _read_content(ports, agent_stack),
            lambda: _get_content(agent),
        ),
    }


async def _read_content(ports: Ports, stack: Stack) -> str:
    file = await files.get_file(ports, stack, Path("a.md"))
    return (await files.read_content(ports, file)).decode()


async def _get_content(place: Files[AsyncDriver]) -> str:
    return (await place.get("a.md")).content


async def _read(reads: tuple[Read, Read], results: Results, case: str) -> None:
    names = (by_actions(case), by_client(case))
    seconds = dict.fromkeys(names, float("inf"))
    for _ in range(REPEATS):
        for name, read in zip(names, reads, strict=True):
            assert await read() == CONTENT
            started_at = process_time()
            for _ in range(READS):
                await read()
            seconds[name] = min(seconds[name], (process_time() - started_at) / READS)
    for name in names:
        results.record(name, seconds[name])


def rows(results: Results) -> None:
    for case, earlier in EARLIER_RATIOS.items():
        title = f"read in process, {case}: client / actions"
        results.ratio(title, by_client(case), by_actions(case), at_most=2 * earlier)
