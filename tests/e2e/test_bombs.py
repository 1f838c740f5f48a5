"""Commands that exhaust resources, kill, outlive their call or set traps for readers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path as File

import pytest
from tests.support.escape_harness import (
    EscapeHarness,
    control_groups,
    leftovers,
    open_harness,
    processes_marked,
    public_directory,
)
from tests.support.local_providers import DISTINCT_TIERS
from tests.support.wait import wait_until

from carrel.adapters.sandbox.local import LocalSandbox
from carrel.ports.sandbox import ResourceLimits

pytestmark = pytest.mark.anyio
SECRET = "not visible to commands"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=DISTINCT_TIERS)
async def harness(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[EscapeHarness]:
    async with open_harness(request.param, tmp_path) as running:
        yield running


@pytest.fixture
def shared_directory() -> Iterator[File]:
    with public_directory() as place:
        yield place


async def test_fork_bomb_is_contained(harness: EscapeHarness) -> None:
    bomb = "bomb() { bomb | bomb & }; bomb; echo lit; sleep 1000"
    tried = await harness.attempt(bomb, ResourceLimits(seconds=2, processes=64))
    assert tried.timed_out or "fork" in tried.output


async def test_process_limit_is_enforced(harness: EscapeHarness) -> None:
    program = """
import os, time
for number in range(60):
    try:
        if os.fork() == 0:
            time.sleep(100)
    except BlockingIOError:
        break
print(number)
"""
    tried = await harness.python(program, ResourceLimits(processes=20, seconds=25))
    assert (
        10 < int(tried.output) < 30
    )  # without control groups all processes of the user are counted, so the number varies


async def test_memory_bomb_is_contained(harness: EscapeHarness) -> None:
    bounds = ResourceLimits(memory_mb=64, seconds=20)
    tried = await harness.python("hoard = bytearray(300_000_000); print('HE' + 'LD')", bounds)
    assert "HELD" not in tried.output
    assert tried.code != 0


async def test_memory_limit_counts_all_processes_together(harness: EscapeHarness) -> None:
    program = """
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
    tried = await harness.python(program, ResourceLimits(memory_mb=128, seconds=25))
    assert not tried.timed_out
    assert "memory limit exceeded (128 MB)" in tried.notes


ALLOCATIONS = {
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
    "in unmapped segments": """
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


@pytest.mark.parametrize("kind", ALLOCATIONS)
async def test_every_kind_of_memory_is_counted(harness: EscapeHarness, kind: str) -> None:
    program = f"import time\n{ALLOCATIONS[kind]}\ntime.sleep(20)\nprint('HE' + 'LD')"
    tried = await harness.python(program, ResourceLimits(memory_mb=128, seconds=25))
    assert "HELD" not in tried.output
    assert not tried.timed_out


async def test_disk_bomb_is_contained(harness: EscapeHarness) -> None:
    for place in (".", "$TMPDIR", "~", "/dev/shm", "/var/tmp", "/"):
        tried = await harness.attempt(
            f"for n in {{1..24}}; do head -c 1M /dev/zero > {place}/b$n || exit 9; done; sleep 20",
            ResourceLimits(disk_mb=8),
        )
        assert tried.code == 9 or "disk limit exceeded (8 MB)" in tried.notes


async def test_exceeded_limit_is_reported_even_if_the_command_ended_quickly(
    harness: EscapeHarness,
) -> None:
    tried = await harness.attempt(
        "head -c 6M /dev/zero > a && head -c 6M /dev/zero > b", ResourceLimits(disk_mb=8)
    )
    assert tried.code or "disk limit exceeded (8 MB)" in tried.notes


async def test_flood_of_file_names_is_contained(harness: EscapeHarness) -> None:
    names = "import os\nfor n in range(200_000): os.close(os.open(f'n{n}', os.O_CREAT))"
    tried = await harness.python(names, ResourceLimits(seconds=25))
    assert "No space left" in tried.output or "disk limit exceeded" in tried.notes


async def test_flood_of_output_is_drained_and_then_stopped(harness: EscapeHarness) -> None:
    tried = await harness.attempt("yes; echo after", ResourceLimits(seconds=25))
    assert tried.output.endswith("[output truncated]")
    assert "output exceeded 64 MiB" in tried.notes
    assert not tried.timed_out


async def test_traps_for_readers_of_the_files_have_no_effect(
    harness: EscapeHarness, shared_directory: File
) -> None:
    canary = shared_directory / "canary"
    canary.write_text(SECRET)
    harness.runner.put("notes/a.md", "a")
    tried = await harness.attempt(
        f"mkfifo pipe notes/pipe; ln -s {canary} one; ln -s {shared_directory} two;"
        f" rm -r notes; ln -s {shared_directory} notes; ln -s /dev/zero zero; ln -s loop loop;"
        " ln -s /proc/self/fd/0 three; /usr/bin/python3 -c '"
        'import os\nfor n in range(600): os.mkdir("d"); os.chdir("d")\nopen("deep", "w")\''
    )
    assert SECRET.encode() not in b"".join(tried.files.values())
    assert tried.files["one"] == str(canary).encode()
    assert tried.files["notes"] == str(shared_directory).encode()
    assert tried.files["loop"] == b"loop"
    assert "pipe is neither" in tried.notes
    assert not any(path.endswith("deep") for path in tried.files)


def bystander(uid: int) -> subprocess.Popen[bytes]:
    """A process outside, of the same user as commands if we may choose."""
    if os.getuid() == uid:
        return subprocess.Popen(["sleep", "100"])
    if os.getuid() != 0:
        return bystander(os.getuid())
    return subprocess.Popen(["sleep", "100"], user=uid, group=uid, extra_groups=[])


async def test_no_signal_reaches_a_process_outside(harness: EscapeHarness) -> None:
    sleeper, other = bystander(os.getuid()), bystander(65534)
    try:
        tried = await harness.attempt(
            f"trap '' TERM HUP; for s in TERM KILL; do kill -$s {os.getpid()} {sleeper.pid}"
            f" {other.pid} 1 $PPID; done; echo survived; kill -KILL -1",
            ResourceLimits(seconds=25),
        )
        assert "survived" in tried.output
        assert (sleeper.poll(), other.poll()) == (None, None)
    finally:
        for process in (sleeper, other):
            process.kill()
            process.wait()


async def test_daemon_does_not_outlive_its_call(harness: EscapeHarness) -> None:
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
    tried = await harness.python(daemon)
    assert (tried.code, tried.output) == (0, "started\n")


def sleep_marked(mark: str) -> str:
    """A command that keeps running and is recognizable from outside by its arguments."""
    return f"bash -c 'sleep 1000; :' {mark}"


def is_running(mark: str) -> bool:
    return any(
        f"sleep 1000; :\\x00{mark}" in command_line for command_line in processes_marked(mark)
    )


async def test_cancelled_command_leaves_no_process(harness: EscapeHarness) -> None:
    async def forever() -> None:
        async with harness.runner.run(f"setsid {sleep_marked(harness.mark)} & sleep 1000"):
            raise AssertionError("it ended")

    task = asyncio.create_task(forever())
    await wait_until(lambda: is_running(harness.mark), "the command runs")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert leftovers(harness.directory, harness.mark) == []
    assert await harness.runner.output_of("echo serving") == "serving\n"


STANDALONE = """
import asyncio, sys
from pathlib import Path as File
from carrel.adapters.sandbox.local import LocalSandbox
from carrel.adapters.sandbox.local.isolation import ProbeContents, SandboxSettings
from carrel.ports.sandbox import CommandSpec

async def main():
    sandbox = LocalSandbox(File(sys.argv[1]), SandboxSettings(sys.argv[2]))
    async with sandbox.run(CommandSpec("one", sys.argv[3], {}), ProbeContents()):
        pass

asyncio.run(main())
"""


def sandbox_process(*arguments: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", STANDALONE, *arguments])


@pytest.mark.parametrize("tier", sorted({name.partition("-")[0] for name in DISTINCT_TIERS}))
async def test_killed_server_leaves_no_process_for_long(tier: str, tmp_path: File) -> None:
    mark, place = os.urandom(8).hex(), tmp_path / "sandboxes"
    server = sandbox_process(str(place), tier, f"(setsid {sleep_marked(mark)} &) ; sleep 1000")
    try:
        await wait_until(lambda: is_running(mark), "the command runs")
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
    assert control_groups(place) == []
