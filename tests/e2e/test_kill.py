"""A server that is killed repeatedly under load loses no acknowledged write."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path as File

import httpx
import pytest
from tests.support.server_process import FILES, ServerProcess, carrel, serving

KILLS = {1: 8, 2: 4}
"""Number of kills by number of worker processes: twenty in all."""
WRITERS = 8
LINES = 60
CHECKED_VERSIONS = 80
"""Below the hundred versions of a history, since each kill may leave an unacknowledged one."""


def text(writer: int, number: int) -> str:
    """A content of equal lines, in which a torn write is visible."""
    return "\n".join([f"{writer}/{number}"] * LINES)


@dataclass
class Ledger:
    """Version and number of every acknowledged write, by writer."""

    acknowledged: dict[int, dict[int, int]] = field(
        default_factory=lambda: {n: {} for n in range(WRITERS)}
    )
    sent: int = 0
    checked_counts: dict[int, int] = field(default_factory=dict)
    """Number of writes checked so far, so that the next check reads only newer ones."""
    torn: list[str] = field(default_factory=list)

    def total(self) -> int:
        return sum(map(len, self.acknowledged.values()))


async def write(client: httpx.AsyncClient, ledger: Ledger, writer: int) -> None:
    url, etag = f"{FILES}/writer-{writer}.md", None
    current = await client.get(url)
    if current.status_code == 200:
        etag = current.json()["etag"]
    while True:
        ledger.sent += 1
        number = ledger.sent
        head = {"If-Match": etag} if etag else {"If-None-Match": "*"}
        answer = await client.put(url, json={"content": text(writer, number)}, headers=head)
        file = answer.raise_for_status().json()
        assert file["version"] not in ledger.acknowledged[writer], "a version was used twice"
        ledger.acknowledged[writer][file["version"]] = number
        etag = file["etag"]


async def read(client: httpx.AsyncClient, ledger: Ledger) -> None:
    while True:
        for writer in range(WRITERS):
            answer = await client.get(f"{FILES}/writer-{writer}.md")
            lines = set(answer.json().get("content", "").split("\n"))
            if len(lines) > 1:
                ledger.torn.append(f"writer {writer}: {sorted(lines)}")


async def load_and_kill(live: ServerProcess, ledger: Ledger, count: int) -> None:
    """Load the server, and kill it once it has acknowledged this many writes."""
    target = ledger.total() + count
    async with live.http() as client:
        tasks = [asyncio.create_task(write(client, ledger, n)) for n in range(WRITERS)]
        tasks.append(asyncio.create_task(read(client, ledger)))
        while ledger.total() < target:
            done, _ = await asyncio.wait(tasks, timeout=0.002)
            assert not done, [task.exception() for task in done]
        live.kill()
        for task in tasks:
            task.cancel()
            with suppress(httpx.TransportError, asyncio.CancelledError):
                await task


async def check(live: ServerProcess, ledger: Ledger, *, again: bool = False) -> None:
    """Check that every acknowledged write in the history has its content.

    ``again`` repeats the checks that were done before.
    """
    async with live.http() as client:
        for writer, numbers in ledger.acknowledged.items():
            if not numbers:
                continue
            skipped = 0 if again else ledger.checked_counts.get(writer, 0)
            ledger.checked_counts[writer] = len(numbers)
            head = (await client.get(f"{FILES}/writer-{writer}.md")).json()
            assert head["version"] >= max(numbers)
            for version in sorted(numbers)[skipped:][-CHECKED_VERSIONS:]:
                url = f"{FILES}/writer-{writer}.md"
                response = await client.get(url, params={"version": version})
                assert response.json()["content"] == text(writer, numbers[version])


@pytest.fixture
def closed_connections() -> Iterator[None]:
    """Connections to a killed server are not closed properly; collect them here."""
    yield
    gc.collect()


closes_connections = pytest.mark.usefixtures("closed_connections")
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@closes_connections
@pytest.mark.parametrize("workers", [1, 2])
def test_killed_server_loses_no_acknowledged_write(tmp_path: File, workers: int) -> None:
    ledger, chance = Ledger(), random.Random(workers)
    for _ in range(KILLS[workers]):
        with serving(tmp_path, workers=workers) as live:
            asyncio.run(check(live, ledger)) if ledger.total() else None
            asyncio.run(load_and_kill(live, ledger, chance.randint(20, 120)))
    with serving(tmp_path) as live:
        asyncio.run(check(live, ledger, again=True))
    assert not ledger.torn
    report = carrel(tmp_path, "doctor")
    assert report.returncode == 0, report.stdout + report.stderr


@closes_connections
def test_terminated_server_completes_requests_in_flight(tmp_path: File) -> None:
    async def scenario(live: ServerProcess) -> None:
        async with live.http() as client:
            writes = [
                asyncio.create_task(client.put(f"{FILES}/{n}.md", json={"content": "x" * 4000}))
                for n in range(50)
            ]
            await asyncio.wait(writes, return_when=asyncio.FIRST_COMPLETED)
            live.process.terminate()
            answers = await asyncio.gather(*writes, return_exceptions=True)
            assert any(isinstance(a, httpx.Response) and a.status_code == 200 for a in answers)
            refused = [
                a for a in answers if not isinstance(a, httpx.TransportError | httpx.Response)
            ]
            assert not refused
        live.process.wait(timeout=60)

    with serving(tmp_path) as live:
        asyncio.run(scenario(live))
        assert live.process.returncode in (0, -15)
    assert carrel(tmp_path, "doctor").returncode == 0


def test_store_that_cannot_be_opened_is_reported_in_one_line(tmp_path: File) -> None:
    with serving(tmp_path):
        pass
    for key in ("too short", "a" * 64):
        refused = carrel(tmp_path, "serve", vault_key=key, port="0")
        assert refused.returncode == 1
        assert refused.stderr.startswith("Error: ")
        assert "key" in refused.stderr
        assert refused.stderr.count("\n") == 1
