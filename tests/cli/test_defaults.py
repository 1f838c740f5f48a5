"""``carrel defaults``, as an operator runs it: in a process of its own."""

from __future__ import annotations

import asyncio
from pathlib import Path as File

import pytest
from tests.cli.test_maintenance import carrel, told

import carrel as library
from carrel.defaults import FILES, VERSION


@pytest.fixture
def data(tmp_path: File) -> File:
    """A store whose first tenant has edited one file and deleted another."""

    async def make() -> None:
        async with library.open(tmp_path) as desk:
            await desk.defaults.put("SOUL.md", "ours")
            await desk.defaults.delete("ROUTER.md")

    asyncio.run(make())
    return tmp_path


def test_status_says_how_each_file_stands(data: File) -> None:
    code, found = told("defaults", "status", "--data", data)
    rows = {row["path"]: row["state"] for row in found["default"]["files"]}
    assert (code, found["default"]["packaged"], found["default"]["seeded"]) == (0, VERSION, VERSION)
    assert rows == dict.fromkeys(FILES, "current") | {"SOUL.md": "edited", "ROUTER.md": "deleted"}
    lines = carrel("defaults", "status", "--data", data).stdout.splitlines()
    assert lines[0] == f"default: version {VERSION} of {VERSION}"
    assert any("ROUTER.md" in line and "update available" in line for line in lines)


def test_update_takes_only_what_is_named(data: File) -> None:
    code, found = told("defaults", "update", "--data", data)
    assert (code, _state(found, "ROUTER.md")) == (0, "deleted")
    code, found = told(
        "defaults", "update", "--data", data, "--tenant", "default", "--take", "ROUTER.md"
    )
    assert (code, _state(found, "ROUTER.md")) == (0, "current")
    assert _state(found, "SOUL.md") == "edited"


def test_what_cannot_be_done_is_said_in_a_line(data: File) -> None:
    code, found = told(
        "defaults", "update", "--data", data, "--tenant", "default", "--take", "SOUL.md"
    )
    assert (code, found) == (1, {"default": {"problem": "no update is available for SOUL.md"}})
    assert carrel("defaults", "update", "--data", data, "--take", "SOUL.md").returncode == 2
    code, found = told("defaults", "status", "--data", data, "--tenant", "nobody")
    assert (code, found["ok"]) == (1, False)


def _state(found: dict[str, dict[str, list[dict[str, str]]]], path: str) -> str:
    [row] = [row for row in found["default"]["files"] if row["path"] == path]
    return row["state"]
