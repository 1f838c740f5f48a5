"""Instances that the local provider keeps between commands, and jobs in them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path as File

import pytest
from msgspec.structs import replace
from tests.support.escape_harness import leftovers
from tests.support.local_providers import UID, Cupboard
from tests.support.wait import wait_until

from carrel.adapters.sandbox.local import LocalSandbox
from carrel.adapters.sandbox.local.self_test import SandboxSettings
from carrel.core.identifiers import Path
from carrel.ports.sandbox import (
    BackgroundJob,
    CommandSpec,
    InputFile,
    InspectInstance,
    PersistentSandbox,
    ResourceLimits,
    SandboxUnavailable,
)

pytestmark = pytest.mark.anyio
HERE = "one"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Room:
    def __init__(self, sandbox: LocalSandbox) -> None:
        self.sandbox, self.cupboard = sandbox, Cupboard()
        self.files: dict[Path, InputFile] = {}
        self.number = 0

    def put(self, path: str, text: str) -> None:
        self.files[Path(path)] = self.cupboard.place(text)

    def order(self, command: str, **more: object) -> CommandSpec:
        self.number += 1
        made = CommandSpec(f"call-{self.number}", command, dict(self.files), instance_key=HERE)
        return replace(made, **more)

    async def run(self, command: str, **more: object) -> tuple[str, dict[str, bytes | None]]:
        order = self.order(command, **more)
        async with self.sandbox.run(order, self.cupboard.fetch) as ran:
            left: dict[str, bytes | None] = {path.text: None for path in ran.deleted}
            left |= {path.text: await ran.content(path) for path in ran.changed}
            return (ran.stdout + ran.stderr).decode(), left

    async def start(self, command: str, **more: object) -> str:
        order = self.order(command, **more)
        await self.sandbox.start(order, self.cupboard.fetch)
        return order.id

    async def ended(self, id: str) -> None:
        """Once all that it changed went home."""
        if following := self.sandbox._followers.get((HERE, id)):
            await following.task

    async def holds(self, path: str, content: bytes) -> None:
        """Once a file inside holds this."""
        root = self.sandbox._instances[HERE].files.root

        def held() -> bool:
            place = File(f"/proc/self/fd/{root}/{path}")
            return place.exists() and place.read_bytes() == content

        await wait_until(held, f"{path} holds {content!r}")


class Hearth:
    """A home that takes all there is, and tells so."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self.brought: list[tuple[int | None, dict[str, bytes | None]]] = []

    async def __call__(self, look: InspectInstance, job: BackgroundJob | None) -> Sequence[str]:
        async with look(dict(self._room.files)) as ran:
            left: dict[str, bytes | None] = {path.text: None for path in ran.deleted}
            left |= {path.text: await ran.content(path) for path in ran.changed}
        self.brought.append((job.exit_code if job else None, left))
        return ("[home]",) if job and job.exit_code == 143 else ()


@pytest.fixture
async def room(tmp_path: File) -> AsyncIterator[Room]:
    sandbox = LocalSandbox(tmp_path / "sandboxes")
    yield Room(sandbox)
    await sandbox.close()
    assert leftovers(tmp_path / "sandboxes", "sleep 1717") == []


@pytest.fixture
async def watched(tmp_path: File) -> AsyncIterator[Room]:
    """Where no control group bounds anything, as for most servers that are not root."""
    sandbox = LocalSandbox(tmp_path / "sandboxes", SandboxSettings(uid=UID, cgroups=False))
    yield Room(sandbox)
    await sandbox.close()
    assert leftovers(tmp_path / "sandboxes", "sleep 1717") == []


HOARD = "exec python3 -c 'import time; hoard = b\"x\" * (150 << 20); time.sleep(60)'"


async def test_memory_is_looked_at_for_all_who_live_there_together(watched: Room) -> None:
    bounds = ResourceLimits(memory_mb=400)
    await watched.run("(setsid sleep 1717 &)", limits=bounds)
    jobs = [await watched.start(HOARD, limits=bounds) for _ in range(2)]
    assert (await watched.run("echo both", limits=bounds))[0] == "both\n"
    order = watched.order(HOARD, limits=bounds)
    async with watched.sandbox.run(order, watched.cupboard.fetch) as ran:
        assert ran.exit_code == 137
        assert ran.notes == ("killed: memory limit exceeded (400 MB)",)
    for id in jobs:
        await watched.ended(id)
        job = await watched.sandbox.get_job(HERE, id)
        assert job is not None and job.exit_code == 137
    assert (await watched.run("pgrep -c sleep", limits=bounds))[0] == "1\n", "it is another"


CROWD = """python3 -c '
import os, time
for number in range(30):
    try:
        if os.fork() == 0:
            time.sleep(60)
    except BlockingIOError:
        break
    if number == {most}:
        open("crowded", "w").close()
        time.sleep(60)
print(number, flush=True)
os.kill(0, 9)
'"""


async def test_processes_are_counted_for_all_who_live_there_together(watched: Room) -> None:
    bounds = ResourceLimits(processes=24)
    job = await watched.start(CROWD.format(most=14), limits=bounds)
    await watched.holds("crowded", b"")
    said, _ = await watched.run(CROWD.format(most=99), limits=bounds)
    assert int(said.split(maxsplit=1)[0]) <= 10
    told = await watched.sandbox.get_job(HERE, job)
    assert told is not None and told.exit_code is None


async def test_no_memory_is_had_there_that_nobody_could_see(watched: Room) -> None:
    hidden = "import os; os.memfd_create('x')"
    said, _ = await watched.run(f'python3 -c "{hidden}"')
    assert "Operation not permitted" in said
    assert "Operation not permitted" in (await watched.run("unshare -Ur true"))[0]


async def test_home_tmp_and_processes_are_there_for_the_next_command(room: Room) -> None:
    assert isinstance(room.sandbox, PersistentSandbox)
    await room.run("echo kept > ~/a; echo too > /tmp/b; (setsid sleep 1717 &)")
    said, _ = await room.run("cat ~/a /tmp/b; pgrep -f 'sleep 1717' >/dev/null && echo alive")
    assert said == "kept\ntoo\nalive\n"
    said, _ = await room.run("cat ~/a", instance_key="another")
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
    late = "(until [ -e ~/go ]; do sleep 0.01; done; printf late > later) >/dev/null 2>&1 &"
    assert await room.run(late) == ("", {})
    async with asyncio.timeout(30):
        while (await room.run("touch ~/go"))[1] != {"later": b"late"}:
            pass


async def test_walls_and_bounds_are_the_same_in_there(room: Room) -> None:
    said, _ = await room.run("id -u; grep -E 'CapBnd|NoNew' /proc/self/status; ls /proc/self/fd")
    assert "1000\n" in said
    assert "CapBnd:\t0000000000000000" in said
    assert "NoNewPrivs:\t1" in said
    assert said.endswith("0\n1\n2\n3\n")
    said, _ = await room.run("unshare -Ur id; cat /etc/shadow; (exec 3<>/dev/tcp/127.0.0.1/22)")
    assert "uid=0" not in said
    order = room.order("echo begun; sleep 1000", limits=ResourceLimits(seconds=2))
    async with room.sandbox.run(order, room.cupboard.fetch) as ran:
        assert (ran.timed_out, ran.exit_code, ran.stdout) == (True, None, b"begun\n")
    assert (await room.run("pgrep -c sleep"))[0] == "1\n"


async def test_a_job_goes_on_and_tells_how_it_ended(room: Room) -> None:
    id = await room.start("echo working; while [ ! -e go ]; do sleep 0.05; done; echo done; exit 3")
    running = await room.sandbox.get_job(HERE, id)
    assert running is not None and running.exit_code is None
    await room.run("touch go")
    await wait_until(lambda: not room.sandbox._instances[HERE].jobs, "no job runs")
    job = await room.sandbox.get_job(HERE, id)
    assert job is not None
    assert (job.exit_code, job.log) == (3, b"working\ndone\n")
    assert await room.sandbox.get_job(HERE, "never") is None
    assert await room.sandbox.get_job("elsewhere", id) is None


async def test_a_stopped_job_ends_with_143_and_a_lost_one_with_137(room: Room) -> None:
    id = await room.start("sleep 1717")
    stopped = await room.sandbox.stop_job(HERE, id)
    assert stopped is not None and stopped.exit_code == 143
    lost = await room.start("sleep 1717")
    await room.sandbox.close()
    restarted = LocalSandbox(room.sandbox._directory)
    job = await restarted.get_job(HERE, lost)
    await restarted.close()
    assert job is not None and job.exit_code == 137


async def test_nobody_inside_may_look_into_what_is_ours_beside_them(room: Room) -> None:
    await room.start("sleep 1717")
    resident = room.sandbox._instances[HERE].init_process
    [ours] = resident.command_pids
    assert os.stat(f"/proc/{ours}/environ").st_uid == 0, "it has closed itself to its own user"


async def test_ten_jobs_may_run_at_once(room: Room) -> None:
    for _ in range(10):
        await room.start("sleep 1717")
    with pytest.raises(SandboxUnavailable, match="10 jobs"):
        await room.start("sleep 1717")
    await room.sandbox.release_instance(HERE)


async def test_an_instance_is_stopped_when_it_was_idle(room: Room) -> None:
    await room.run("echo x > ~/a", idle_seconds=0)
    await wait_until(lambda: not room.sandbox._instances, "the instance is gone")
    assert "No such file" in (await room.run("cat ~/a"))[0]


async def test_an_instance_is_let_go_when_it_is_old_and_its_jobs_are_lost(room: Room) -> None:
    await room.run("echo x > ~/a", lifetime_seconds=2)
    id = await room.start("sleep 1717", lifetime_seconds=2)
    await wait_until(lambda: not room.sandbox._instances, "the instance is gone")
    await room.ended(id)
    job = await room.sandbox.get_job(HERE, id)
    assert job is not None and job.exit_code == 137
    assert "No such file" in (await room.run("cat ~/a", lifetime_seconds=2))[0]


async def test_a_command_that_is_waited_for_may_end_when_its_instance_is_old(room: Room) -> None:
    said, left = await room.run("sleep 2; echo done > a; echo over", lifetime_seconds=1)
    assert (said, left) == ("over\n", {"a": b"done\n"})
    await wait_until(lambda: not room.sandbox._instances, "the instance is gone")


@pytest.mark.parametrize(
    "other",
    [
        {"limits": ResourceLimits(memory_mb=512)},
        {"env": {"TOKEN": "x"}},
        {"options": {"any": 1}},
        {"lifetime_seconds": 900},
    ],
)
async def test_an_instance_is_not_used_by_other_settings(
    room: Room, other: dict[str, object]
) -> None:
    await room.run("echo old > ~/a")
    job = await room.start("sleep 1717")
    assert (await room.run("cat ~/a", limits=ResourceLimits(seconds=20, output_bytes=999)))[
        0
    ] == "old\n"
    assert "No such file" in (await room.run("cat ~/a", **other))[0]
    await room.ended(job)
    told = await room.sandbox.get_job(HERE, job)
    assert told is not None and told.exit_code == 137


async def test_what_nobody_took_is_told_again(room: Room) -> None:
    order = room.order("echo 1 > a; echo 2 > b")
    with pytest.raises(LookupError):
        async with room.sandbox.run(order, room.cupboard.fetch) as ran:
            await ran.content(Path("a"))
            raise LookupError
    assert (await room.run("true"))[1] == {"a": b"1\n", "b": b"2\n"}
    room.put("a", "1\n")
    room.put("b", "2\n")
    assert (await room.run("true"))[1] == {}


async def test_a_change_beats_a_deletion_on_either_side(room: Room) -> None:
    for path in ("a", "b", "c"):
        room.put(path, "1")
    id = await room.start("rm a b; printf 2 > c")
    await room.ended(id)
    room.put("a", "others")
    del room.files[Path("c")]
    assert await room.run("cat a") == ("others", {"b": None, "c": b"2"})


async def test_a_name_may_be_a_file_here_and_a_directory_elsewhere(room: Room) -> None:
    room.put("d/x", "1")
    room.put("e", "1")
    await room.ended(await room.start("echo mine > new; rm e; mkdir -p e other; echo 2 > e/y"))
    room.put("new/theirs", "1")
    room.put("other", "1")
    said, left = await room.run("cat other d/x; ls")
    assert (said, left) == ("11d\ne\nnew\nother\n", {"new": b"mine\n", "e": None, "e/y": b"2\n"})


async def test_nothing_is_laid_through_a_link(room: Room, tmp_path: File) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o777)
    outside.chmod(0o777)
    await room.ended(await room.start(f"ln -s {outside} d"))
    room.put("d/x", "1")
    room.put("d/e/y", "1")
    await room.run("true")
    assert list(outside.iterdir()) == []


async def test_what_a_job_changed_goes_home_when_it_ends(room: Room) -> None:
    home = Hearth(room)
    room.put("a", "1")
    id = await room.start("printf 2 > a; printf n > new; exit 3", write_back=home)
    await room.ended(id)
    assert home.brought == [(3, {"a": b"2", "new": b"n"})]
    id = await room.start("printf 3 > a; exec sleep 1717", write_back=home)
    await room.holds("a", b"3")
    await room.sandbox.stop_job(HERE, id)
    assert home.brought[1:] == [(143, {"a": b"3"})]
    job = await room.sandbox.get_job(HERE, id)
    assert job is not None and job.log == b"[home]"


async def test_what_lies_changed_goes_home_before_an_instance_is_gone(room: Room) -> None:
    home = Hearth(room)
    late = "(setsid sh -c 'sleep 0.2; echo late > a' >/dev/null 2>&1 &)"
    await room.run(late, write_back=home, idle_seconds=2)
    await wait_until(lambda: home.brought, "the changes are brought back")
    assert home.brought == [(None, {"a": b"late\n"})]
    await room.start("echo half > b; sleep 1717", write_back=home)
    await room.holds("b", b"half\n")
    await room.sandbox.close()
    assert home.brought[1:] == [(137, {"b": b"half\n"}), (None, {})]


async def test_an_error_on_the_way_home_is_told_and_all_stays(room: Room) -> None:
    async def lost(look: InspectInstance, job: BackgroundJob | None) -> Sequence[str]:
        async with look(dict(room.files)) as ran:
            await ran.content(Path("a"))
            raise LookupError

    id = await room.start("echo 1 > a", write_back=lost)
    await room.ended(id)
    job = await room.sandbox.get_job(HERE, id)
    assert job is not None and job.log == b"[changed files could not be written back]"
    assert (await room.run("true"))[1] == {"a": b"1\n"}
