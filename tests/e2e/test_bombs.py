"""Commands that try to do harm: to exhaust, to kill, to outlive, to trap whoever comes after."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path as File

import pytest
from tests.support.escape_harness import Yard, groups, leftovers, open_house, processes_marked, yard
from tests.support.local_providers import WALLED
from tests.support.wait import wait_until

from carrel.adapters.sandbox.local import LocalSandbox
from carrel.ports.sandbox import ResourceLimits

pytestmark = pytest.mark.anyio
SECRET = "what nobody inside may see"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=WALLED)
async def prison(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[Yard]:
    async with yard(request.param, tmp_path) as opened:
        yield opened


@pytest.fixture
def house() -> Iterator[File]:
    with open_house() as place:
        yield place


async def test_a_fork_bomb_is_contained(prison: Yard) -> None:
    bomb = "bomb() { bomb | bomb & }; bomb; echo lit; sleep 1000"
    tried = await prison.attempt(bomb, ResourceLimits(seconds=2, processes=64))
    assert tried.timed_out or "fork" in tried.said


async def test_many_processes_are_more_than_it_may_have(prison: Yard) -> None:
    crowd = """
import os, time
for number in range(60):
    try:
        if os.fork() == 0:
            time.sleep(100)
    except BlockingIOError:
        break
print(number)
"""
    tried = await prison.python(crowd, ResourceLimits(processes=20, seconds=25))
    assert 10 < int(tried.said) < 30  # where all that a user has is counted, others come and go


async def test_a_memory_bomb_is_contained(prison: Yard) -> None:
    bounds = ResourceLimits(memory_mb=64, seconds=20)
    tried = await prison.python("hoard = bytearray(300_000_000); print('HE' + 'LD')", bounds)
    assert "HELD" not in tried.said
    assert tried.code != 0


async def test_memory_is_bounded_for_all_processes_together(prison: Yard) -> None:
    crowd = """
import os, time
for _ in range(7):
    if os.fork() == 0:
        hoard = bytearray(os.urandom(1024) * 40_000)
        time.sleep(30)
        os._exit(0)
while True:
    pid, status = os.wait()
    if status:
        raise SystemExit("a child was killed")
"""
    tried = await prison.python(crowd, ResourceLimits(memory_mb=128, seconds=25))
    assert not tried.timed_out
    assert "memory limit exceeded (128 MB)" in tried.notes


HOARDS = {
    "shared between processes": """
import mmap, os
for _ in range(12):
    if os.fork() == 0:
        held = mmap.mmap(-1, 40 << 20)
        for at in range(0, 40 << 20, 4096):
            held[at] = 1
        time.sleep(30)
if os.wait()[1]:
    raise SystemExit("a child was killed")
""",
    "in files without a name": """
import os
for _ in range(12):
    os.write(os.memfd_create("hoard"), bytes(40 << 20))
""",
    "in segments that nobody has mapped": """
import ctypes
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for _ in range(12):
    hoard = libc.shmget(0, ctypes.c_size_t(40 << 20), 0o1600)
    if hoard < 0:
        raise SystemExit("there is no such thing")
    at = ctypes.c_void_p(libc.shmat(hoard, None, 0))
    ctypes.memset(at, 1, 40 << 20)
    libc.shmdt(at)
""",
}


@pytest.mark.parametrize("where", HOARDS)
async def test_no_memory_is_out_of_sight(prison: Yard, where: str) -> None:
    hoard = f"import time\n{HOARDS[where]}\ntime.sleep(20)\nprint('HE' + 'LD')"
    tried = await prison.python(hoard, ResourceLimits(memory_mb=128, seconds=25))
    assert "HELD" not in tried.said
    assert not tried.timed_out


async def test_a_disk_bomb_is_contained(prison: Yard) -> None:
    for place in (".", "$TMPDIR", "~", "/dev/shm", "/var/tmp", "/"):
        tried = await prison.attempt(
            f"for n in {{1..24}}; do head -c 1M /dev/zero > {place}/b$n || exit 9; done; sleep 20",
            ResourceLimits(disk_mb=8),
        )
        assert tried.code == 9 or "disk limit exceeded (8 MB)" in tried.notes


async def test_too_much_is_told_though_it_was_over_before_anybody_looked(prison: Yard) -> None:
    tried = await prison.attempt(
        "head -c 6M /dev/zero > a && head -c 6M /dev/zero > b", ResourceLimits(disk_mb=8)
    )
    assert tried.code or "disk limit exceeded (8 MB)" in tried.notes


async def test_a_bomb_of_names_is_contained(prison: Yard) -> None:
    names = "import os\nfor n in range(200_000): os.close(os.open(f'n{n}', os.O_CREAT))"
    tried = await prison.python(names, ResourceLimits(seconds=25))
    assert "No space left" in tried.said or "disk limit exceeded" in tried.notes


async def test_a_flood_of_output_is_drained_and_then_stopped(prison: Yard) -> None:
    tried = await prison.attempt("yes; echo after", ResourceLimits(seconds=25))
    assert tried.said.endswith("[output truncated]")
    assert "output exceeded 64 MiB" in tried.notes
    assert not tried.timed_out


async def test_traps_for_whoever_reads_the_files_catch_nobody(prison: Yard, house: File) -> None:
    canary = house / "canary"
    canary.write_text(SECRET)
    prison.desk.put("notes/a.md", "a")
    tried = await prison.attempt(
        f"mkfifo pipe notes/pipe; ln -s {canary} one; ln -s {house} two;"
        f" rm -r notes; ln -s {house} notes; ln -s /dev/zero zero; ln -s loop loop;"
        " ln -s /proc/self/fd/0 three; /usr/bin/python3 -c '"
        'import os\nfor n in range(600): os.mkdir("d"); os.chdir("d")\nopen("deep", "w")\''
    )
    assert SECRET.encode() not in b"".join(tried.left.values())
    assert tried.left["one"] == str(canary).encode()
    assert tried.left["notes"] == str(house).encode()
    assert tried.left["loop"] == b"loop"
    assert "pipe is neither" in tried.notes
    assert not any(path.endswith("deep") for path in tried.left)


def bystander(uid: int) -> subprocess.Popen[bytes]:
    """Somebody outside; where we may choose, one who has the same user as commands have."""
    if os.getuid() == uid:
        return subprocess.Popen(["sleep", "100"])
    if os.getuid() != 0:
        return bystander(os.getuid())
    return subprocess.Popen(["sleep", "100"], user=uid, group=uid, extra_groups=[])


async def test_no_signal_reaches_anybody_outside(prison: Yard) -> None:
    sleeper, other = bystander(os.getuid()), bystander(65534)
    try:
        tried = await prison.attempt(
            f"trap '' TERM HUP; for s in TERM KILL; do kill -$s {os.getpid()} {sleeper.pid}"
            f" {other.pid} 1 $PPID; done; echo survived; kill -KILL -1",
            ResourceLimits(seconds=25),
        )
        assert "survived" in tried.said
        assert (sleeper.poll(), other.poll()) == (None, None)
    finally:
        for process in (sleeper, other):
            process.kill()
            process.wait()


async def test_no_daemon_outlives_its_call(prison: Yard) -> None:
    daemon = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3):
            os.close(fd)
        time.sleep(1000)
    os._exit(0)
print("started")
"""
    tried = await prison.python(daemon)
    assert (tried.code, tried.said) == (0, "started\n")


def lasting(mark: str) -> str:
    """Something that goes on, and can be found from outside by its arguments."""
    return f"bash -c 'sleep 1000; :' {mark}"


def is_lasting(mark: str) -> bool:
    return any(f"sleep 1000; :\\x00{mark}" in each for each in processes_marked(mark))


async def test_a_cancelled_command_leaves_nothing(prison: Yard) -> None:
    async def forever() -> None:
        async with prison.desk.run(f"setsid {lasting(prison.mark)} & sleep 1000"):
            raise AssertionError("it ended")

    task = asyncio.create_task(forever())
    await wait_until(lambda: is_lasting(prison.mark), "the command runs")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert leftovers(prison.directory, prison.mark) == []
    assert await prison.desk.said("echo serving") == "serving\n"


STANDALONE = """
import asyncio, sys
from pathlib import Path as File
from carrel.adapters.sandbox.local import LocalSandbox
from carrel.adapters.sandbox.local.self_test import SandboxSettings
from carrel.ports.sandbox import CommandSpec

async def main():
    sandbox = LocalSandbox(File(sys.argv[1]), SandboxSettings(sys.argv[2]))
    async def fetch(blobs):
        return {}
    async with sandbox.run(CommandSpec("one", sys.argv[3], {}), fetch):
        pass

asyncio.run(main())
"""


def killed_later(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", STANDALONE, *arguments])


@pytest.mark.parametrize("tier", sorted({name.partition("-")[0] for name in WALLED}))
async def test_a_server_that_is_killed_leaves_nothing_for_long(tier: str, tmp_path: File) -> None:
    mark, place = os.urandom(8).hex(), tmp_path / "sandboxes"
    server = killed_later(str(place), tier, f"(setsid {lasting(mark)} &) ; sleep 1000")
    try:
        await wait_until(lambda: is_lasting(mark), "the command runs")
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()
    await wait_until(lambda: processes_marked(mark) == [], "the command has ended")
    assert len(list(place.glob("keepers/*.lock"))) == 1
    sandbox = LocalSandbox(place)
    await sandbox.ready()
    assert len(list(place.glob("keepers/*.lock"))) == 1
    assert leftovers(place, mark) == []
    await sandbox.close()
    assert list(place.glob("keepers/*")) == []
    assert groups(place) == []
