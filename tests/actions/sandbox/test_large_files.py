"""Large files of a command: read, stored and searched in parts, off the event loop."""

from __future__ import annotations

import asyncio
import threading
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path as File

import pytest
from msgspec import structs
from tests.support.contract_stores import LARGE_BLOB_STORES, StoreLocation
from tests.support.stores import ports_over
from tests.support.tool_fixture import ToolTenant, create_tool_tenant
from tests.support.unsandboxed_provider import CommandOutcome

from carrel.actions.accounts import secrets
from carrel.actions.policy import policies
from carrel.actions.sandbox import grep, workspace_files, write_back
from carrel.actions.sandbox.command_inputs import load_inputs
from carrel.core.errors import NotFound, ValidationError, WorkspaceTooLarge
from carrel.core.identifiers import Path
from carrel.core.sandbox.grep import GrepOutput, GrepQuery, GrepRow
from carrel.ports.sandbox import ChangedFile, FileKind

pytestmark = pytest.mark.anyio
MIB = 2**20
LINES = b"a line of text\n" * (MIB // 15)
"""A part of about 1 MiB."""
COUNT = 32


@dataclass
class GeneratedFiles(CommandOutcome):
    """Changed files that are generated while they are read, never from memory."""

    parts: list[bytes] = field(default_factory=list)
    read_on_loop: bool = False

    def add(self, name: str, size: int) -> None:
        self.changed = {**self.changed, Path(name): ChangedFile(FileKind.FILE, size)}

    async def content(self, path: Path) -> bytes:
        raise AssertionError("a large file was read whole")

    def read_parts(self, path: Path) -> Iterator[bytes]:
        self.read_on_loop |= threading.current_thread() is threading.main_thread()
        yield from self.parts


@pytest.fixture(params=["sqlite", "postgres-alone"])
async def fixture(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[ToolTenant]:
    place = StoreLocation(tmp_path, lambda: str(request.getfixturevalue("postgres_url")))
    async with LARGE_BLOB_STORES[request.param](place) as opened:
        yield await create_tool_tenant(ports_over(opened.store))


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    peak: list[int] = []
    tracemalloc.start()
    try:
        yield peak
        peak.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


async def commit_files(fixture: ToolTenant, result: CommandOutcome) -> write_back.WriteBackResult:
    start = await load_inputs(fixture.workspace_files())
    return await write_back.commit_changes(
        fixture.workspace_files(call="call", name="call"), start, result, "call", "bash"
    )


async def test_a_large_file_is_stored_read_and_searched_without_being_held_whole(
    fixture: ToolTenant,
) -> None:
    last = b"the needle\n"
    result = GeneratedFiles(parts=[LINES] * COUNT + [last])
    size = COUNT * len(LINES) + len(last)
    for name in ("one.txt", "two.txt"):
        result.add(name, size)
    with peak_memory() as peak:
        await commit_files(fixture, result)
        workspace = fixture.workspace_files()
        query = GrepQuery("needle", mode=GrepOutput.CONTENT, line_numbers=True)
        matches = await grep.search(workspace, query, 1000)
        number = size // 15 + 1
        lines = await workspace_files.read_lines(workspace, Path("one.txt"), number, 5, 1000)
    names = ("one.txt", "two.txt")
    assert matches.rows == tuple(GrepRow(name, number, b"the needle") for name in names)
    assert lines.visible is not None
    assert lines.visible.text == f"{number:6d}\tthe needle\n"
    assert peak[0] < size / 2
    assert not result.read_on_loop


async def test_secrets_in_a_large_file_are_redacted_wherever_they_lie(fixture: ToolTenant) -> None:
    await secrets.put(fixture.ports, fixture.owner, "deploy", "s3cret-value")
    result = GeneratedFiles(parts=[LINES + b"before s3cre", b"t-value after\n", LINES])
    result.add("one.txt", 2 * len(LINES) + 27)
    assert (await commit_files(fixture, result)).notes == ("[redacted in one.txt: deploy]",)
    content = (await fixture.files())["one.txt"]
    assert content == LINES + b"before [REDACTED:deploy] after\n" + LINES


async def test_quotas_are_checked_before_a_byte_is_read(fixture: ToolTenant) -> None:
    policy = await policies.get(fixture.ports, fixture.owner)
    shared = structs.replace(policy.shared_limits, max_bytes=5 * MIB)
    await policies.put(fixture.ports, fixture.owner, structs.replace(policy, shared_limits=shared))
    await workspace_files.write(fixture.workspace_files(), Path("kept"), b"x" * MIB)
    result = GeneratedFiles()
    for number in range(5):
        result.add(f"{number}", MIB)
    with pytest.raises(WorkspaceTooLarge, match="the workspace may have 5242880 bytes"):
        await commit_files(fixture, result)


async def test_an_edit_of_a_large_file_does_not_hold_it_nor_the_loop(fixture: ToolTenant) -> None:
    result = GeneratedFiles(parts=[LINES] * COUNT + [b"the needle\n"])
    result.add("a.txt", COUNT * len(LINES) + 11)
    await commit_files(fixture, result)
    turns = 0
    editing = asyncio.create_task(
        fixture.call("edit", file_path="a.txt", old_string="needle", new_string="thread")
    )
    with peak_memory() as peak:
        while not editing.done():
            await asyncio.sleep(0)
            turns += 1
    assert await editing == "Edited a.txt (1 replacement)"
    assert turns > COUNT, "the loop runs between the parts"
    assert peak[0] < COUNT * MIB / 2
    workspace = fixture.workspace_files()
    matches = await grep.search(workspace, GrepQuery("thread", mode=GrepOutput.CONTENT), 1000)
    assert [row.text for row in matches.rows] == [b"the thread"]


async def test_matches_across_the_parts_of_a_large_file_are_replaced(fixture: ToolTenant) -> None:
    before = b"ab" * 3 * MIB
    result = GeneratedFiles(parts=[before])
    result.add("a.txt", len(before))
    await commit_files(fixture, result)
    with pytest.raises(ValidationError, match=r"not unique \(\d+ matches\)"):
        await fixture.call("edit", file_path="a.txt", old_string="bab", new_string="c")
    await fixture.call(
        "edit", file_path="a.txt", old_string="bab", new_string="c", replace_all=True
    )
    assert (await fixture.files())["a.txt"] == before.replace(b"bab", b"c")
    with pytest.raises(NotFound, match="old_string not found"):
        await fixture.call("edit", file_path="a.txt", old_string="bab", new_string="c")
