"""``carrel reindex`` and what ``carrel gc`` does to sessions, as an operator runs them."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path as File
from typing import Any

from tests.support.server_process import carrel

import carrel as library
from carrel.wiring.inprocess import settings_for
from carrel.wiring.ports import open_ports


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


async def _fill(data: File) -> None:
    async with library.open(data) as desk:
        await desk.agents.create("kate", "Kate", config={"transcriptsDir": "kate"})
        session = await desk.agent("kate").sessions.start()
        for n in range(3):
            await session.append("user", f"needle {n}")


async def _found(data: File) -> int:
    async with library.open(data) as desk:
        sessions = await desk.agent("kate").sessions.search("needle")
        return sum(len(session.facts["matches"]) for session in sessions)


async def _lose(data: File) -> None:
    async with open_ports(settings_for(data, {})) as opened:
        await opened.ports.sessions.clear_index()


def test_it_makes_the_index_again_and_says_how_far_it_is(tmp_path: File) -> None:
    asyncio.run(_fill(tmp_path))
    asyncio.run(_lose(tmp_path))
    assert asyncio.run(_found(tmp_path)) == 0

    done = carrel(tmp_path, "reindex")

    assert (done.returncode, done.stdout) == (0, "3 entries and 0 words indexed\n"), done.stderr
    assert done.stderr == "indexing entries: 3 of 3\n"
    assert asyncio.run(_found(tmp_path)) == 3
    assert told(carrel(tmp_path, "reindex", "--json")) == {
        "ok": True,
        "entries": 3,
        "words": 0,
    }
    assert asyncio.run(_found(tmp_path)) == 3


def test_sessions_stay_for_ever_unless_told_otherwise(tmp_path: File) -> None:
    asyncio.run(_fill(tmp_path))
    assert told(carrel(tmp_path, "gc", "--json"))["sessions"] == 0
    assert told(carrel(tmp_path, "gc", "--json", transcript_retention_days="1"))["sessions"] == 0
    assert told(carrel(tmp_path, "gc", "--json", "--transcripts", "1"))["sessions"] == 0
    assert asyncio.run(_found(tmp_path)) == 3
