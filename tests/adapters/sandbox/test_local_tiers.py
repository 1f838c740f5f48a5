"""What the local provider promises beyond the contract, by each of the walls that it has here."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path as File

import pytest
from tests.support.local_providers import LOCAL, Desk

from carrel.core.identifiers import Path
from carrel.ports.sandbox import FileKind, ResourceLimits, SandboxUnavailable

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=LOCAL)
async def desk(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[Desk]:
    async with LOCAL[request.param](tmp_path) as sandbox:
        yield Desk(sandbox)


async def test_the_mark_of_a_deletion_is_no_file(desk: Desk) -> None:
    async with desk.run("mknod mark c 0 0 || mkfifo mark; printf x > file") as ran:
        assert {path.text: await ran.content(path) for path in ran.changed} == {"file": b"x"}
        assert "mark is neither a file nor a symlink" in "\n".join(ran.notes)
        assert ran.changed.keys() == {Path("file")}


async def test_no_list_of_processes_shows_its_variables(desk: Desk) -> None:
    secret, number = os.urandom(16).hex(), f"600.{int.from_bytes(os.urandom(4))}"
    seen = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo ${#WORD}"

    async def look() -> bytes:
        """While it sleeps, which it does until it was seen."""
        while True:
            listed = _command_lines()
            for pid, words in listed.items():
                if words == f"sleep\0{number}\0".encode():
                    os.kill(pid, signal.SIGTERM)
                    return b"".join(listed.values())
            await asyncio.sleep(0.01)

    looking = asyncio.create_task(asyncio.wait_for(look(), 30))
    async with desk.run(f"sleep {number}; {seen}", env={"WORD": secret}) as ran:
        said = ran.stdout.decode()
    assert secret.encode() not in await looking
    assert secret not in said
    assert said.endswith("32\n")


def _command_lines() -> dict[int, bytes]:
    found = {}
    for place in File("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found[int(place.parent.name)] = place.read_bytes()
    return found


async def test_home_and_tmp_can_be_written_and_do_not_last(desk: Desk) -> None:
    for _ in range(2):
        said = await desk.said('find ~ "$TMPDIR" -type f; echo x > ~/x; cp ~/x "$TMPDIR"')
        assert said == ""


async def test_bytes_are_fetched_once(desk: Desk) -> None:
    desk.put("a", "one")
    desk.put("b", "two", FileKind.EXECUTABLE)
    for command in ("true", "rm a", "false"):
        await desk.left(command)
    assert len(desk.cupboard.asked) == 2


async def test_the_network_is_refused_unless_whoever_runs_the_server_allows_it(desk: Desk) -> None:
    with pytest.raises(SandboxUnavailable, match="CARREL_SANDBOX_NETWORK"):
        async with desk.run("true", ResourceLimits(network=True)):
            raise AssertionError("it ran")
