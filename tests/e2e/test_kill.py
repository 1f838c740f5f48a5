"""A server that is killed under load, again and again, loses nothing that it had acknowledged."""

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
from tests.support.server_process import FILES, Live, carrel, serving

DEATHS = {1: 14, 2: 6}
"""How often it dies, by how many processes it is: twenty times in all."""
WRITERS = 8
LINES = 60
KEPT = 80
"""Of the hundred versions that history holds, one a death may never have been acknowledged."""


def text(writer: int, number: int) -> str:
    """A content whose every line says the same, so that a torn one would show."""
    return "\n".join([f"{writer}/{number}"] * LINES)


@dataclass
class Ledger:
    """What each writer was told: the version and number of every acknowledged write."""

    told: dict[int, dict[int, int]] = field(default_factory=lambda: {n: {} for n in range(WRITERS)})
    sent: int = 0
    seen: dict[int, int] = field(default_factory=dict)
    """How many of these were found after a death, so that the next asks for newer ones alone."""
    torn: list[str] = field(default_factory=list)

    def total(self) -> int:
        return sum(map(len, self.told.values()))


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
        assert file["version"] not in ledger.told[writer], "a version was used twice"
        ledger.told[writer][file["version"]] = number
        etag = file["etag"]


async def read(client: httpx.AsyncClient, ledger: Ledger) -> None:
    while True:
        for writer in range(WRITERS):
            answer = await client.get(f"{FILES}/writer-{writer}.md")
            lines = set(answer.json().get("content", "").split("\n"))
            if len(lines) > 1:
                ledger.torn.append(f"writer {writer}: {sorted(lines)}")


async def until_killed(live: Live, ledger: Ledger, acknowledged: int) -> None:
    """Load the server, and kill it once it has acknowledged so many writes."""
    enough = ledger.total() + acknowledged
    async with live.http() as client:
        works = [asyncio.create_task(write(client, ledger, n)) for n in range(WRITERS)]
        works.append(asyncio.create_task(read(client, ledger)))
        while ledger.total() < enough:
            done, _ = await asyncio.wait(works, timeout=0.002)
            assert not done, [task.exception() for task in done]
        live.kill()
        for work in works:
            work.cancel()
            with suppress(httpx.TransportError, asyncio.CancelledError):
                await work


async def check(live: Live, ledger: Ledger, *, again: bool = False) -> None:
    """Every acknowledged write that history still holds is there, under its own number.

    Those that were found once are looked for `again` where that is said: at the very end.
    """
    async with live.http() as client:
        for writer, told in ledger.told.items():
            if not told:
                continue
            known = 0 if again else ledger.seen.get(writer, 0)
            ledger.seen[writer] = len(told)
            head = (await client.get(f"{FILES}/writer-{writer}.md")).json()
            assert head["version"] >= max(told)
            for version in sorted(told)[known:][-KEPT:]:
                url = f"{FILES}/writer-{writer}.md"
                found = await client.get(url, params={"version": version})
                assert found.json()["content"] == text(writer, told[version])


@pytest.fixture
def connections_to_the_dead() -> Iterator[None]:
    """Those to a server that has gone are never closed properly: let them go here, not later."""
    yield
    gc.collect()


gone = pytest.mark.usefixtures("connections_to_the_dead")
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@gone
@pytest.mark.parametrize("workers", [1, 2])
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(
    tmp_path: File, workers: int
) -> None:
    ledger, chance = Ledger(), random.Random(workers)
    for _ in range(DEATHS[workers]):
        with serving(tmp_path, workers=workers) as live:
            asyncio.run(check(live, ledger)) if ledger.total() else None
            asyncio.run(until_killed(live, ledger, chance.randint(20, 120)))
    with serving(tmp_path) as live:
        asyncio.run(check(live, ledger, again=True))
    assert not ledger.torn
    report = carrel(tmp_path, "doctor")
    assert report.returncode == 0, report.stdout + report.stderr


@gone
def test_a_server_told_to_stop_finishes_what_it_began(tmp_path: File) -> None:
    async def story(live: Live) -> None:
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
        asyncio.run(story(live))
        assert live.process.returncode in (0, -15)
    assert carrel(tmp_path, "doctor").returncode == 0


def test_a_server_that_cannot_open_its_store_says_why_in_one_line(tmp_path: File) -> None:
    with serving(tmp_path):
        pass
    for key in ("too short", "a" * 64):
        refused = carrel(tmp_path, "serve", vault_key=key, port="0")
        assert refused.returncode == 1
        assert refused.stderr.startswith("Error: ")
        assert "key" in refused.stderr
        assert refused.stderr.count("\n") == 1
