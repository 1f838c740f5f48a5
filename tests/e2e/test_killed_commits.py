"""A server that is killed in a commit of 1,000 paths: all of it is there, or nothing."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.server_process import ServerProcess, carrel, serving
from tests.support.services.s3 import Bucket

KILLS = 6
KILLS_ELSEWHERE = 3
"""On PostgreSQL and S3."""
PATHS = 1000
ROOT = "/v1/workspaces/killed"


@pytest.fixture(autouse=True)
def closed_connections() -> Iterator[None]:
    """Connections to a killed server are not closed properly; collect them here."""
    yield
    gc.collect()


pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def writes(number: int) -> list[dict[str, str]]:
    """Every path with a new content; the last half moves between two directories."""
    half = PATHS // 2
    puts = [
        {"op": "put", "path": f"kept/{n}.md", "content": f"{number}/{n} " + "x" * 500}
        for n in range(half)
    ]
    if number == 0:
        moved_files = [
            {"op": "put", "path": f"at-0/{n}.md", "content": "moved"} for n in range(half)
        ]
    else:
        moved_files = [{"op": "move", "path": f"at-{number - 1}", "to": f"at-{number}"}]
    return puts + moved_files


async def commit_first(live: ServerProcess) -> float:
    """Make the first commit; return its seconds."""
    async with live.http() as client:
        response = await client.post(f"{ROOT}/commits", json={"writes": writes(0)})
        assert response.status_code == 200, response.text
        return response.elapsed.total_seconds()


async def commit_and_kill(live: ServerProcess, number: int, delay: float) -> bool:
    """Commit, and kill the server meanwhile; return whether it had answered."""
    async with live.http() as client:
        body = {"writes": writes(number)}
        task = asyncio.create_task(client.post(f"{ROOT}/commits", json=body))
        await asyncio.wait([task], timeout=delay)
        live.kill()
        with suppress(httpx.TransportError):
            response = await task
            assert response.status_code == 200, response.text
            return True
    return False


async def load_state(live: ServerProcess) -> tuple[set[str], set[str], int]:
    """Numbers of the commits that the contents and the directories are of."""
    async with live.http() as client:
        rows = (await client.get(f"{ROOT}/files?content=true")).json()["files"]
    numbers = {row["content"].partition("/")[0] for row in rows if row["path"].startswith("kept/")}
    directories = {row["path"].partition("/")[0] for row in rows} - {"kept"}
    return numbers, {name.removeprefix("at-") for name in directories}, len(rows)


@pytest.fixture(params=["sqlite", "postgres and s3"])
def location(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Settings of the store; every second content is large enough to be in the bucket."""
    if request.param == "sqlite":
        return {}
    bucket: Bucket = request.getfixturevalue("s3_bucket")
    return {
        "database_url": request.getfixturevalue("postgres_url"),
        "blobs_url": f"s3://{bucket.name}",
        "s3_endpoint": bucket.endpoint,
        "s3_access_key": bucket.access_key,
        "s3_secret_key": bucket.secret_key,
        "inline_bytes": "256",
    }


def test_a_killed_commit_is_applied_whole_or_not_at_all(
    tmp_path: File, location: dict[str, Any]
) -> None:
    chance, number = random.Random(15), 0
    with serving(tmp_path, **location) as live:
        elapsed = asyncio.run(commit_first(live))
    for _ in range(KILLS_ELSEWHERE if location else KILLS):
        with serving(tmp_path, **location) as live:
            delay = elapsed * chance.uniform(0.2, 1.1)
            is_acknowledged = asyncio.run(commit_and_kill(live, number + 1, delay))
        with serving(tmp_path, **location) as live:
            numbers, moved_files, count = asyncio.run(load_state(live))
        assert count == PATHS
        assert numbers == moved_files
        [current] = map(int, numbers)
        assert current in {number, number + 1}
        assert current == number + 1 or not is_acknowledged
        number = current
    for command in (("doctor",), ("gc", "--grace", "0"), ("doctor",)):
        report = carrel(tmp_path, *command, **location)
        assert report.returncode == 0, report.stdout + report.stderr
