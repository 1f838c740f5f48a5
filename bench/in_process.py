"""Reads by the client in process, beside the same reads by the actions that serve them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path as FilePath
from time import process_time
from typing import Final

import carrel
from bench.table import Book
from carrel import InProcessClient
from carrel.actions.accounts import tenants
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.core.access import Actor
from carrel.core.identifiers import Path, Stack
from carrel.ports import Ports
from carrel_client import File

READS: Final = 100
REPEATS: Final = 20
"""Of which the quickest counts, since other programs only slow a read down."""
CONTENT: Final = "x" * 2000
CASES: Final = ("workspace", "agent")

Read = Callable[[], Awaitable[File]]


def by_actions(case: str) -> str:
    return f"seconds a read of a file of {case}, by the actions"


def by_client(case: str) -> str:
    return f"seconds a read of a file of {case}, by the client in process"


async def measure(data: FilePath, book: Book) -> None:
    """Measure one round of every case, the two ways interleaved."""
    async with carrel.open(data) as client:
        await client.agents.create("ada")
        for case, reads in (await _cases(client)).items():
            await _read(reads, book, case)


async def _cases(client: InProcessClient) -> dict[str, tuple[Read, Read]]:
    ports = client._ports
    owner = await tenants.first_owner(ports, tenants.FIRST)
    actor = Actor(owner.tenant, "bench")
    workspace, agent = client.workspace(), client.agent("ada")
    for place in (workspace, agent):
        await place.put("a.md", CONTENT)

    async def workspace_by_actions() -> File:
        return await _find(ports, await stacks.default_stack(ports, actor))

    async def agent_by_actions() -> File:
        return await _find(ports, await stacks.agent_stack(ports, actor, "ada"))

    return {
        "workspace": (workspace_by_actions, lambda: workspace.get("a.md")),
        "agent": (agent_by_actions, lambda: agent.get("a.md")),
    }


async def _find(ports: Ports, stack: Stack) -> File:
    found = await files.find_file(ports, stack, Path("a.md"))
    content = await files.read_content(ports, found)
    return File(
        path=found.path.text,
        content_type=found.entry.type,
        version=found.head.version,
        etag=found.etag,
        updated_at=datetime.fromtimestamp(found.head.at / 1000, UTC),
        source=found.origin or found.source.kind,
        file_class=found.file_class,
        sha256=found.blob.digest,
        rendered_sha256=None,
        update_available=found.upstream is not None,
        content=content.decode(),
    )


async def _read(reads: tuple[Read, Read], book: Book, case: str) -> None:
    names = (by_actions(case), by_client(case))
    seconds = dict.fromkeys(names, float("inf"))
    for _ in range(REPEATS):
        for name, read in zip(names, reads, strict=True):
            assert (await read()).content == CONTENT
            started_at = process_time()
            for _ in range(READS):
                await read()
            seconds[name] = min(seconds[name], (process_time() - started_at) / READS)
    for name in names:
        book.note(name, seconds[name])


def rows(book: Book) -> None:
    for case in CASES:
        title = f"read in process, {case}: client / actions"
        book.ratio(title, by_client(case), by_actions(case), at_most=2.0)
