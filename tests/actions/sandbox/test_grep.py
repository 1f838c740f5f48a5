"""Search in many files: in batches and in a thread, with the same output."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.support.tool_fixture import ToolTenant, create_tool_tenant

from carrel.actions.sandbox import grep, workspace_files
from carrel.core.identifiers import Path
from carrel.core.sandbox.grep import GrepOutput, GrepQuery
from carrel.ports import Ports
from carrel.ports.blobs import THREAD_THRESHOLD_BYTES

pytestmark = pytest.mark.anyio


@pytest.fixture
async def fixture(ports: Ports) -> ToolTenant:
    fixture = await create_tool_tenant(ports)
    for n in range(12):
        body = b"".join(b"line %d of %d\n" % (line, n) for line in range(40))
        await workspace_files.write(fixture.workspace_files(), Path(f"f{n:02}"), body)
    return fixture


@pytest.mark.parametrize("mode", GrepOutput)
async def test_batches_and_threads_do_not_change_the_output(
    fixture: ToolTenant, monkeypatch: pytest.MonkeyPatch, mode: GrepOutput
) -> None:
    query = GrepQuery(r"1\d of [37]$", mode=mode, line_numbers=True)
    expected = await grep.search(fixture.workspace_files(), query, 10**6)
    assert any(row.path == "f03" for row in expected.rows)
    monkeypatch.setattr(grep, "BATCH_BYTES", 1500)
    assert await grep.search(fixture.workspace_files(), query, 10**6) == expected
    monkeypatch.setattr(grep, "THREAD_THRESHOLD_BYTES", 0)
    assert await grep.search(fixture.workspace_files(), query, 10**6) == expected
    monkeypatch.setattr(grep, "LARGE_FILE_BYTES", 0)
    assert await grep.search(fixture.workspace_files(), query, 10**6) == expected


async def test_search_stops_after_the_batch_that_fills_the_output(
    fixture: ToolTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grep, "BATCH_BYTES", 1)
    batches: list[int] = []
    search_texts = grep._search_texts

    async def count_batches(*args: object) -> None:
        batches.append(1)
        await search_texts(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(grep, "_search_texts", count_batches)
    output = await grep.search(
        fixture.workspace_files(), GrepQuery("line", mode=GrepOutput.CONTENT), 100
    )
    size = sum(len(row.path) + len(row.text) + 1 for row in output.rows)
    assert (size > 100, len(batches)) == (True, 1)


async def test_more_than_256_kib_are_searched_outside_the_event_loop(
    fixture: ToolTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[object] = []
    to_thread = asyncio.to_thread

    async def count_threads(function: Callable[..., object], *args: object) -> object:
        threads.append(function)
        return await to_thread(function, *args)

    monkeypatch.setattr("asyncio.to_thread", count_threads)
    await grep.search(fixture.workspace_files(), GrepQuery("line"), 100)
    assert grep._feed_all not in threads
    await workspace_files.write(
        fixture.workspace_files(), Path("large"), b"x" * (THREAD_THRESHOLD_BYTES + 1)
    )
    await grep.search(fixture.workspace_files(), GrepQuery("line"), 100)
    assert threads.count(grep._feed_all) == 1
