"""Local provider without isolation tools, and its parts by themselves."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import signal
import struct
import sys
from contextlib import suppress
from pathlib import Path as File

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.escape_harness import processes_marked
from tests.support.local_providers import UID
from tests.support.wait import wait_until

from carrel.adapters.sandbox.local import LocalSandbox, bwrap_arguments, cgroups
from carrel.adapters.sandbox.local.child_process import ChildProcess
from carrel.adapters.sandbox.local.command_run import IsolationTools
from carrel.adapters.sandbox.local.ephemeral_sandbox import MEMORY_LIMIT_NOT_ENFORCED
from carrel.adapters.sandbox.local.file_cache import FileCache
from carrel.adapters.sandbox.local.isolation import (
    LANDLOCK_NEEDS_ROOT,
    NO_NETWORK_NAMESPACE,
    ProbeContents,
    SandboxSettings,
    detect_isolation,
)
from carrel.adapters.sandbox.local.materialized_files import MaterializedFiles
from carrel.adapters.sandbox.local.output_capture import TRUNCATION_MARK, truncate_output
from carrel.adapters.sandbox.local.seccomp import (
    ALLOW,
    ARCHITECTURES,
    FAIL,
    KILL,
    SocketPolicy,
    filter_for,
)
from carrel.core.identifiers import Path, digest
from carrel.core.store.blob import Blob
from carrel.ports.sandbox import (
    CommandSpec,
    FileKind,
    InputFile,
    ResourceLimits,
    SandboxUnavailable,
)
from carrel.wiring.server import PR_SET_DUMPABLE, disable_ptrace

PR_GET_DUMPABLE = 3
PTRACE = {"x86_64": 101, "aarch64": 117}
READ = {"x86_64": 0, "aarch64": 63}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def output_of(sandbox: LocalSandbox, command: str) -> str:
    try:
        async with sandbox.run(CommandSpec("one", command, None), ProbeContents()) as ran:
            return (ran.stdout + ran.stderr).decode()
    finally:
        await sandbox.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("wishes", "reason"),
    [
        (SandboxSettings("off"), "disabled by CARREL_SANDBOX=off"),
        (SandboxSettings("bubblewrap", program="/nowhere/bwrap"), "No such file"),
        (SandboxSettings("bubblewrap", program="/bin/false"), "sandbox setup failed"),
    ],
)
async def test_nothing_runs_without_isolation(
    wishes: SandboxSettings, reason: str, tmp_path: File
) -> None:
    sandbox = LocalSandbox(tmp_path, wishes)
    with pytest.raises(SandboxUnavailable, match=f"no isolation available: .*{reason}"):
        await output_of(sandbox, f"touch {tmp_path}/ran")
    assert "ran" not in os.listdir(tmp_path)


@pytest.mark.anyio
async def test_no_socket_can_be_opened_without_a_network_namespace(tmp_path: File) -> None:
    sandbox = LocalSandbox(tmp_path, SandboxSettings("bubblewrap", own_network=False))
    assert (await sandbox.ready()).tier == NO_NETWORK_NAMESPACE
    opening = "import socket; socket.socketpair(); socket.socket(socket.AF_UNIX)"
    output = await output_of(sandbox, f"/usr/bin/python3 -c '{opening}'")
    assert "Address family not supported" in output


@given(st.text(), st.integers(1, 64))
def test_truncated_text_is_valid_and_within_its_limit(text: str, limit: int) -> None:
    cut = truncate_output(text.encode(), limit)
    assert len(cut) <= limit
    assert text.startswith(cut.decode().removesuffix(TRUNCATION_MARK.decode()))
    assert (cut == text.encode()) == (len(text.encode()) <= limit)


def seccomp_result(filter: bytes, audit: int, number: int, first: int = 0, second: int = 0) -> int:
    """Result of the filter for a system call, as the kernel computes it."""
    data = struct.pack("=IIQQQ", number, audit, 0, first, second)
    steps = list(struct.iter_unpack("=HBBI", filter))
    at = accumulator = 0
    while True:
        code, yes, no, k = steps[at]
        at += 1
        if code == 0x06:
            return int(k)
        if code == 0x20:
            accumulator = struct.unpack_from("=I", data, k)[0]
        else:
            holds = {0x15: accumulator == k, 0x35: accumulator >= k, 0x45: bool(accumulator & k)}[
                code
            ]
            at += yes if holds else no


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_filter_allows_usual_calls_and_denies_all_others(machine: str) -> None:
    architecture, filter = ARCHITECTURES[machine], filter_for(machine)
    closed = filter_for(machine, SocketPolicy.NONE, own_namespaces=False)
    denied, odd = FAIL | errno.EPERM, FAIL | errno.EAFNOSUPPORT

    assert seccomp_result(filter, architecture.audit, READ[machine]) == ALLOW
    assert seccomp_result(filter, 0x40000003, READ[machine]) == KILL
    assert {
        seccomp_result(filter, architecture.audit, number) for number in architecture.calls.values()
    } == {denied}
    assert architecture.calls["ptrace"] == PTRACE[machine]
    assert seccomp_result(filter, architecture.audit, 435) == FAIL | errno.ENOSYS
    assert seccomp_result(filter, architecture.audit, architecture.clone, 0x11) == ALLOW
    assert seccomp_result(filter, architecture.audit, architecture.clone, 0x10000011) == denied
    assert seccomp_result(filter, architecture.audit, architecture.unshare, 0x80) == denied
    assert seccomp_result(filter, architecture.audit, architecture.unshare, 0x400) == ALLOW
    assert seccomp_result(filter, architecture.audit, architecture.ioctl, 0, 0x5412) == denied
    assert seccomp_result(filter, architecture.audit, architecture.ioctl, 0, 0x5401) == ALLOW
    for family, allowed in ((1, ALLOW), (2, ALLOW), (10, ALLOW), (16, odd), (17, odd), (40, odd)):
        assert seccomp_result(filter, architecture.audit, architecture.sockets, family) == allowed
        assert seccomp_result(closed, architecture.audit, architecture.sockets, family) == odd


def test_content_with_the_maximum_number_of_hard_links_is_still_materialized(
    tmp_path: File,
) -> None:
    cache = FileCache(tmp_path / "bytes", tmp_path / "farms", None)
    empty = InputFile(FileKind.FILE, Blob(digest(b""), 0))
    cache.store_all([empty], {empty.blob.digest: b""})
    [cached] = (tmp_path / "bytes").iterdir()
    (tmp_path / "names").mkdir()
    with suppress(OSError):
        for number in range(66_000):  # some file systems have no such limit
            os.link(cached, tmp_path / "names" / str(number))
    materialized = MaterializedFiles({Path("a"): empty, Path("b/c"): empty}, ())
    farm = cache.acquire("one", {}, materialized).farm
    assert farm and (farm / "a").read_bytes() == (farm / "b/c").read_bytes() == b""
    assert [file.name for file in (tmp_path / "bytes").iterdir()] == [cached.name]


def test_x32_system_calls_are_denied() -> None:
    number = 0x40000000 | 101
    assert seccomp_result(filter_for("x86_64"), 0xC000003E, number) == FAIL | errno.ENOSYS


def test_delegated_cgroups_v2_are_found_beside_the_servers_own(
    tmp_path: File,
) -> None:
    service = tmp_path / "service"
    (service / "server").mkdir(parents=True)
    (service / "cgroup.controllers").write_text("cpu memory pids")
    (service / "cgroup.subtree_control").write_text("memory pids")
    mounts = f"30 1 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw\n"
    cgroup_tree = cgroups.find_cgroups(mounts, "0::/service/server\n")
    assert cgroup_tree == cgroups.Cgroups((service,), unified=True)
    assert cgroups.find_cgroups(mounts, "0::/elsewhere\n") is None


@pytest.mark.anyio
async def test_landlock_runs_commands_as_another_user_or_not_at_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[IsolationTools] = []

    async def attempt(means: IsolationTools) -> None:
        tried.append(means)

    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert (await detect_isolation(SandboxSettings("landlock"), attempt)).tier == "landlock"
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    tools = await detect_isolation(SandboxSettings("landlock"), attempt)
    assert (tools.tier, tools.missing_features[-1]) == ("none", LANDLOCK_NEEDS_ROOT)
    assert len(tried) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("grouped", [True, False])
async def test_requested_memory_limit_is_enforced_by_the_kernel_or_refused(
    grouped: bool, tmp_path: File
) -> None:
    groups = cgroups.Cgroups((tmp_path,), unified=True) if grouped else None
    tried = IsolationTools("bubblewrap", os.getuid(), os.getgid(), cgroups=groups)
    sandbox = LocalSandbox(tmp_path / "sandboxes", tested_tools=tried)
    await sandbox.ready()
    insisting = CommandSpec(
        "one", "true", None, ResourceLimits(memory_mb=64, memory_limit_required=True)
    )
    for persistent in (True, False):
        assert (
            sandbox.unsupported_reason(ResourceLimits(memory_mb=64), persistent=persistent) is None
        )
        reason = sandbox.unsupported_reason(insisting.limits, persistent=persistent)
        assert reason == (None if grouped else MEMORY_LIMIT_NOT_ENFORCED)
    if not grouped:
        with pytest.raises(SandboxUnavailable, match="memoryLimit cannot be enforced: "):
            async with sandbox.run(insisting, ProbeContents()):
                raise AssertionError("it ran")
    await sandbox.close()


@pytest.mark.anyio
async def test_landlock_keeps_nothing_between_calls(tmp_path: File) -> None:
    tried = IsolationTools("landlock", os.getuid(), os.getgid(), landlock=6)
    sandbox = LocalSandbox(tmp_path, tested_tools=tried)
    await sandbox.ready()
    assert sandbox.unsupported_reason(ResourceLimits()) is None
    assert "not supported with Landlock" in str(
        sandbox.unsupported_reason(ResourceLimits(), persistent=True)
    )
    await sandbox.close()


@pytest.mark.parametrize("above", bwrap_arguments.STAGE_CANDIDATES)
def test_staging_directory_never_hides_the_program_and_its_libraries(above: str) -> None:
    stage = bwrap_arguments.stage_for(f"{above}/data/lib/bwrap")
    assert stage != above
    assert File(stage).is_dir()
    assert not File(f"{above}/data/lib/bwrap").is_relative_to(stage)


def test_server_without_root_is_not_dumpable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    libc = ctypes.CDLL(None)
    zeroes = [ctypes.c_ulong(0)] * 3
    was = libc.prctl(PR_GET_DUMPABLE, ctypes.c_ulong(0), *zeroes)
    try:
        monkeypatch.setattr(os, "getuid", lambda: 1000)
        disable_ptrace()
        assert libc.prctl(PR_GET_DUMPABLE, ctypes.c_ulong(0), *zeroes) == 0
    finally:
        libc.prctl(PR_SET_DUMPABLE, ctypes.c_ulong(was), *zeroes)


def test_relative_directory_works_like_an_absolute_one(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def means(directory: File) -> IsolationTools:
        sandbox = LocalSandbox(directory)
        try:
            return await sandbox.ready()
        finally:
            await sandbox.close()

    monkeypatch.chdir(tmp_path)
    absolute, relative = (
        asyncio.run(means(at)) for at in (tmp_path / "sandboxes", File("sandboxes"))
    )
    assert (relative.tier, relative.missing_features) == (absolute.tier, absolute.missing_features)


@pytest.mark.anyio
async def test_killing_a_child_kills_the_process_it_has_just_started() -> None:
    """Bubblewrap's child waits for its parent, and would wait forever if that was killed."""
    mark = os.urandom(8).hex()
    plan = {
        "cgroups": [], "enter": 0, "stage": "", "bind": "", "landlock": None, "seccomp": b"",
        "drop": False, "limits": {}, "keep": [], "directory": "/", "program": "/bin/bash",
        "argv": ["bash", "-c", f"(exec -a {mark} sleep 600) & echo made; wait"], "env": {},
    }  # fmt: skip
    child = ChildProcess()
    await child.prepare(plan)
    await child.start_command()
    assert await asyncio.to_thread(os.read, child.out, 5) == b"made\n"
    await child.end()
    await wait_until(lambda: not processes_marked(mark), "the kernel has ended the process")


FORK_40 = "import os, time\nfor n in range(40): os.fork() or (time.sleep(60), os._exit(0))"
DYING_SERVER = """
import asyncio, sys
from carrel.adapters.sandbox.local.child_process import ChildProcess

async def main():
    child = ChildProcess()
    await child.prepare(eval(sys.argv[1]))
    await child.start_command()
    print("going", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.anyio
async def test_nothing_outlives_a_killed_server() -> None:
    """Bubblewrap's child is bound to its parent late, and may be an orphan before that."""
    mark = os.urandom(8).hex()
    plan = {
        "cgroups": [], "enter": 0, "stage": "", "bind": "", "landlock": None, "seccomp": b"",
        "drop": False, "limits": {}, "keep": [], "directory": "/", "program": "/bin/bash",
        "argv": ["bash", "-c", f"(setsid bash -c 'exec -a {mark} sleep 600' &); exec sleep 600"],
        "env": {"PATH": os.environ["PATH"]},
    }  # fmt: skip
    server = await asyncio.create_subprocess_exec(
        sys.executable, "-c", DYING_SERVER, repr(plan), stdout=asyncio.subprocess.PIPE
    )
    assert server.stdout
    assert await server.stdout.readline() == b"going\n"
    await wait_until(lambda: bool(processes_marked(mark)), "the process runs")
    server.kill()
    await server.wait()
    await wait_until(lambda: not processes_marked(mark), "the process was killed")


@pytest.mark.anyio
async def test_without_control_groups_each_command_has_its_own_process_limit(
    tmp_path: File,
) -> None:
    settings = SandboxSettings("bubblewrap", UID, cgroups=False)
    sandbox, mark = LocalSandbox(tmp_path / "sandboxes", settings), os.urandom(8).hex()
    limits = ResourceLimits(processes=24)

    async def run(command: str) -> bytes:
        spec = CommandSpec(command, command, None, limits)
        async with sandbox.run(spec, ProbeContents()) as ran:
            return ran.stdout + ran.stderr

    fork = "for n in $(seq 18); do (exec -a {} sleep {}) & done; "
    await sandbox.ready()
    first = asyncio.create_task(run(fork.format(f"{mark[:4]}''{mark[4:]}", 600) + "wait"))
    try:
        await wait_until(lambda: len(processes_marked(mark)) == 18, "18 processes run")
        assert await run(fork.format("other", 0) + "wait; echo ok") == b"ok\n"
        assert b"BlockingIOError" in await run(f'python3 -c "{FORK_40}"')
    finally:
        first.cancel()
        await asyncio.wait([first])
        await sandbox.close()


@pytest.mark.anyio
async def test_without_control_groups_files_in_memory_count_as_memory(tmp_path: File) -> None:
    settings = SandboxSettings("bubblewrap", UID, cgroups=False)
    sandbox = LocalSandbox(tmp_path / "sandboxes", settings)
    limits = ResourceLimits(memory_mb=64)
    try:
        for place in ("/dev/shm/x", "/tmp/x", "x"):
            command = f"head -c 100M /dev/zero > {place}; sleep 25"
            spec = CommandSpec(f"fill {place}", command, {}, limits)
            async with sandbox.run(spec, ProbeContents()) as ran:
                assert ran.notes == ("killed: memory limit exceeded (64 MB)",)
    finally:
        await sandbox.close()


@pytest.mark.anyio
async def test_ended_child_is_not_killed_under_a_reused_pid() -> None:
    child = ChildProcess()
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - the loop must not notice its end
    child.terminate()  # detects the end before the loop does
    await child.end()
    assert child.code == 137
