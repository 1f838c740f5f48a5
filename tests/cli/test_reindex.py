"""``carrel reindex``, and ``carrel gc`` of sessions, as an operator runs them."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path as File
from typing import Any

from tests.support.server_process import carrel

import carrel as library
from carrel.wiring.in_process import settings_for
from carrel.wiring.ports import open_ports


def parse_output(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


async def _fill(data: File) -> None:
    async with library.open(data) as client:
        await client.agents.create("kate", "Kate", config={"transcriptsDir": "kate"})
        session = await client.agent("kate").sessions.start()
        for n in range(3):
            await session.append("user", f"needle {n}")


async def _count_matches(data: File) -> int:
    async with library.open(data) as client:
        sessions = await client.agent("kate").sessions.search("needle")
        return sum(len(session.facts["matches"]) for session in sessions)


async def _clear_index(data: File) -> None:
    async with open_ports(settings_for(data, {})) as opened:
        await opened.ports.sessions.clear_index()


def test_reindex_restores_the_index_and_prints_progress(tmp_path: File) -> None:
    asyncio.run(_fill(tmp_path))
    asyncio.run(_clear_index(tmp_path))
    assert asyncio.run(_count_matches(tmp_path)) == 0

    done = carrel(tmp_path, "reindex")

    assert (done.returncode, done.stdout) == (0, "3 entries and 0 words indexed\n"), done.stderr
    assert done.stderr == "indexing entries: 3 of 3\n"
    assert asyncio.run(_count_matches(tmp_path)) == 3
    assert parse_output(carrel(tmp_path, "reindex", "--json")) == {
        "ok": True,
        "entries": 3,
        "words": 0,
        "tallies": 1,
    }
    assert asyncio.run(_count_matches(tmp_path)) == 3


def test_doctor_finds_wrong_counts_and_reindex_rebuilds_them(tmp_path: File) -> None:
    asyncio.run(_fill(tmp_path))
    assert parse_output(carrel(tmp_path, "doctor", "--json"))["ok"]
    with closing(sqlite3.connect(tmp_path / "carrel.db")) as db, db:
        db.execute("UPDATE tally SET value = 7")

    report = carrel(tmp_path, "doctor", "--json")
    assert report.returncode == 1
    findings = json.loads(report.stdout)["findings"]
    assert [finding["text"] for finding in findings if finding["level"] == "error"] == [
        "it is 7 and must be 1; run carrel reindex"
    ]
    carrel(tmp_path, "reindex")
    assert parse_output(carrel(tmp_path, "doctor", "--json"))["ok"]


def test_sessions_are_kept_unless_retention_is_set(tmp_path: File) -> None:
    asyncio.run(_fill(tmp_path))
    assert parse_output(carrel(tmp_path, "gc", "--json"))["sessions"] == 0
    assert (
        parse_output(carrel(tmp_path, "gc", "--json", transcript_retention_days="1"))["sessions"]
        == 0
    )
    assert parse_output(carrel(tmp_path, "gc", "--json", "--transcripts", "1"))["sessions"] == 0
    assert asyncio.run(_count_matches(tmp_path)) == 3
