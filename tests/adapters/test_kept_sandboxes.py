"""Instances that the local provider keeps between commands, and jobs in them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path as File

import pytest
from msgspec.structs import replace
from tests.contract.providers import Cupboard
from tests.e2e.yard import leftovers

from carrel.adapters.bubblewrap import LocalSandbox
from carrel.core.names import Path
from carrel.ports.sandboxes import Bounds, Keeper, Order, Placed, Refused

pytestmark = pytest.mark.anyio
HERE = "one"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Room:
    def __init__(self, sandbox: LocalSandbox) -> None:
        self.sandbox, self.cupboard = sandbox, Cupboard()
        self.files: dict[Path, Placed] = {}
        self.number = 0

    def put(self, path: str, text: str) -> None:
        self.files[Path(path)] = self.cupboard.place(text)

    def order(self, command: str, **more: object) -> Order:
        self.number += 1
        made = Order(f"call-{self.number}", command, dict(self.files), reservation=HERE)
        return replace(made, **more)

    async def run(self, command: str, **more: object) -> tuple[str, dict[str, bytes | None]]:
        order = self.order(command, **more)
        async with self.sandbox.run(order, self.cupboard.fetch) as ran:
            left: dict[str, bytes | None] = {path.text: None for path in ran.deleted}
            left |= {path.text: await ran.content(path) for path in ran.changed}
            return (ran.stdout + ran.stderr).decode(), left

    async def start(self, command: str) -> str:
        order = self.order(command)
        await self.sandbox.start(order, self.cupboard.fetch)
        return order.id


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110 - what is waited for is outside
            await asyncio.sleep(0.02)


@pytest.fixture
async def room(tmp_path: File) -> AsyncIterator[Room]:
    sandbox = LocalSandbox(tmp_path / "sandboxes")
    yield Room(sandbox)
    await sandbox.close()
    assert leftovers(tmp_path / "sandboxes", "sleep 1717") == []


async def test_home_tmp_and_processes_are_there_for_the_next_command(room: Room) -> None:
    assert isinstance(room.sandbox, Keeper)
    await room.run("echo kept > ~/a; echo too > /tmp/b; (setsid sleep 1717 &)")
    said, _ = await room.run("cat ~/a /tmp/b; pgrep -f 'sleep 1717' >/dev/null && echo alive")
    assert said == "kept\ntoo\nalive\n"
    said, _ = await room.run("cat ~/a", reservation="another")
    assert "No such file" in said


async def test_files_follow_what_others_did_and_keep_what_was_done_inside(room: Room) -> None:
    room.put("a", "1")
    room.put("b", "1")
    assert await room.run("cat a b; printf 2 > b; printf n > new") == (
        "11",
        {"b": b"2", "new": b"n"},
    )
    room.put("a", "others")
    room.put("b", "2")
    del room.files[Path("a")]
    room.put("c", "3")
    room.put("new", "n")
    assert await room.run("ls; cat b c new; rm c") == ("b\nc\nnew\n23n", {"c": None})
    del room.files[Path("c")]
    assert await room.run("(sleep 0.1; printf late > later) >/dev/null 2>&1 &") == ("", {})
    async with asyncio.timeout(20):
        while (await room.run("true"))[1] != {"later": b"late"}:
            pass


async def test_walls_and_bounds_are_the_same_in_there(room: Room) -> None:
    said, _ = await room.run("id -u; grep -E 'CapBnd|NoNew' /proc/self/status; ls /proc/self/fd")
    assert "1000\n" in said
    assert "CapBnd:\t0000000000000000" in said
    assert "NoNewPrivs:\t1" in said
    assert said.endswith("0\n1\n2\n3\n")
    said, _ = await room.run("unshare -Ur id; cat /etc/shadow; (exec 3<>/dev/tcp/127.0.0.1/22)")
    assert "uid=0" not in said
    order = room.order("echo begun; sleep 1000", bounds=Bounds(seconds=1))
    async with room.sandbox.run(order, room.cupboard.fetch) as ran:
        assert (ran.timed_out, ran.exit_code, ran.stdout) == (True, None, b"begun\n")
    assert (await room.run("pgrep -c sleep"))[0] == "1\n"


async def test_a_job_goes_on_and_tells_how_it_ended(room: Room) -> None:
    id = await room.start("echo working; while [ ! -e go ]; do sleep 0.05; done; echo done; exit 3")
    running = await room.sandbox.job(HERE, id)
    assert running is not None and running.exit_code is None
    await room.run("touch go")
    await until(lambda: not room.sandbox._instances[HERE].jobs)
    job = await room.sandbox.job(HERE, id)
    assert job is not None
    assert (job.exit_code, job.log) == (3, b"working\ndone\n")
    assert await room.sandbox.job(HERE, "never") is None
    assert await room.sandbox.job("elsewhere", id) is None


async def test_a_stopped_job_ends_with_143_and_a_lost_one_with_137(room: Room) -> None:
    id = await room.start("sleep 1717")
    stopped = await room.sandbox.stop(HERE, id)
    assert stopped is not None and stopped.exit_code == 143
    lost = await room.start("sleep 1717")
    await room.sandbox.close()
    restarted = LocalSandbox(room.sandbox._directory)
    job = await restarted.job(HERE, lost)
    await restarted.close()
    assert job is not None and job.exit_code == 137


async def test_ten_jobs_may_run_at_once(room: Room) -> None:
    for _ in range(10):
        await room.start("sleep 1717")
    with pytest.raises(Refused, match="10 jobs"):
        await room.start("sleep 1717")
    await room.sandbox.release(HERE)


async def test_an_instance_is_stopped_when_it_was_idle(room: Room) -> None:
    await room.run("echo x > ~/a", idle_seconds=0)
    await until(lambda: not room.sandbox._instances)
    assert "No such file" in (await room.run("cat ~/a"))[0]
