"""``carrel defaults``, as an operator runs it: in a process of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path as File

import pytest
from tests.cli.test_maintenance import carrel, run_json

import carrel as library
from carrel.defaults import FILES, VERSION


@pytest.fixture
def data(tmp_path: File) -> File:
    """A store whose first tenant has edited one file and deleted another."""

    async def make() -> None:
        async with library.open(tmp_path) as client:
            await client.defaults.put("SOUL.md", "ours")
            await client.defaults.delete("ROUTER.md")

    asyncio.run(make())
    return tmp_path


def test_status_prints_the_state_of_each_file(data: File) -> None:
    code, report = run_json("defaults", "status", "--data", data)
    rows = {row["path"]: row["state"] for row in report["default"]["files"]}
    assert (code, report["default"]["packaged"], report["default"]["seeded"]) == (
        0,
        VERSION,
        VERSION,
    )
    assert rows == dict.fromkeys(FILES, "current") | {"SOUL.md": "edited", "ROUTER.md": "deleted"}
    lines = carrel("defaults", "status", "--data", data).stdout.splitlines()
    assert lines[0] == f"default: version {VERSION} of {VERSION}"
    assert any("ROUTER.md" in line and "update available" in line for line in lines)


def test_update_takes_only_the_named_files(data: File) -> None:
    code, report = run_json("defaults", "update", "--data", data)
    assert (code, _state(report, "ROUTER.md")) == (0, "deleted")
    code, report = run_json(
        "defaults", "update", "--data", data, "--tenant", "default", "--take", "ROUTER.md"
    )
    assert (code, _state(report, "ROUTER.md")) == (0, "current")
    assert _state(report, "SOUL.md") == "edited"


def test_failure_is_reported_in_one_line(data: File) -> None:
    code, report = run_json(
        "defaults", "update", "--data", data, "--tenant", "default", "--take", "SOUL.md"
    )
    assert (code, report) == (1, {"default": {"problem": "no update is available for SOUL.md"}})
    assert carrel("defaults", "update", "--data", data, "--take", "SOUL.md").returncode == 2
    code, report = run_json("defaults", "status", "--data", data, "--tenant", "unknown")
    assert (code, report["ok"]) == (1, False)


def _state(report: dict[str, dict[str, list[dict[str, str]]]], path: str) -> str:
    [row] = [row for row in report["default"]["files"] if row["path"] == path]
    return row["state"]
