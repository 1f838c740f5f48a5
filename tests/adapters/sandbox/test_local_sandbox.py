"""The local provider where walls are missing, and pieces that can be looked at by themselves."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import os
import signal
import struct
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path as File

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.escape_harness import processes_marked
from tests.support.wait import wait_until

from carrel.adapters.sandbox.local import LocalSandbox, bwrap_arguments, cgroups
from carrel.adapters.sandbox.local.child_process import ChildProcess
from carrel.adapters.sandbox.local.command_run import IsolationTools
from carrel.adapters.sandbox.local.file_cache import FileCache, MaterializedFiles
from carrel.adapters.sandbox.local.local_sandbox import MEMORY_LIMIT_NOT_ENFORCED
from carrel.adapters.sandbox.local.output_capture import TRUNCATION_MARK, truncate_output
from carrel.adapters.sandbox.local.seccomp import (
    ALLOW,
    ARCHITECTURES,
    FAIL,
    KILL,
    SocketPolicy,
    filter_for,
)
from carrel.adapters.sandbox.local.self_test import (
    LANDLOCK_NEEDS_ROOT,
    NO_NETWORK_NAMESPACE,
    SandboxSettings,
    detect_isolation,
)
from carrel.core.identifiers import Digest, Path, digest
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


async def nothing(blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
    return {}


async def said(sandbox: LocalSandbox, command: str) -> str:
    try:
        async with sandbox.run(CommandSpec("one", command, None), nothing) as ran:
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
async def test_without_walls_nothing_runs(
    wishes: SandboxSettings, reason: str, tmp_path: File
) -> None:
    sandbox = LocalSandbox(tmp_path, wishes)
    with pytest.raises(SandboxUnavailable, match=f"no isolation available: .*{reason}"):
        await said(sandbox, f"touch {tmp_path}/ran")
    assert "ran" not in os.listdir(tmp_path)


@pytest.mark.anyio
async def test_without_a_network_namespace_no_socket_can_be_opened(tmp_path: File) -> None:
    sandbox = LocalSandbox(tmp_path, SandboxSettings("bubblewrap", own_network=False))
    assert (await sandbox.ready()).tier == NO_NETWORK_NAMESPACE
    opening = "import socket; socket.socketpair(); socket.socket(socket.AF_UNIX)"
    told = await said(sandbox, f"/usr/bin/python3 -c '{opening}'")
    assert "Address family not supported" in told


@given(st.text(), st.integers(1, 64))
def test_what_is_cut_stays_within_its_bound_and_whole(text: str, most: int) -> None:
    cut = truncate_output(text.encode(), most)
    assert len(cut) <= most
    assert text.startswith(cut.decode().removesuffix(TRUNCATION_MARK.decode()))
    assert (cut == text.encode()) == (len(text.encode()) <= most)


def verdict(filter: bytes, audit: int, number: int, first: int = 0, second: int = 0) -> int:
    """What the kernel would say."""
    data = struct.pack("=IIQQQ", number, audit, 0, first, second)
    steps = list(struct.iter_unpack("=HBBI", filter))
    at = held = 0
    while True:
        code, yes, no, k = steps[at]
        at += 1
        if code == 0x06:
            return int(k)
        if code == 0x20:
            held = struct.unpack_from("=I", data, k)[0]
        else:
            holds = {0x15: held == k, 0x35: held >= k, 0x45: bool(held & k)}[code]
            at += yes if holds else no


@pytest.mark.parametrize("machine", ARCHITECTURES)
def test_a_filter_lets_through_what_is_usual_and_nothing_that_is_not(machine: str) -> None:
    known, filter = ARCHITECTURES[machine], filter_for(machine)
    closed = filter_for(machine, SocketPolicy.NONE, own_namespaces=False)
    denied, odd = FAIL | errno.EPERM, FAIL | errno.EAFNOSUPPORT

    assert verdict(filter, known.audit, READ[machine]) == ALLOW
    assert verdict(filter, 0x40000003, READ[machine]) == KILL
    assert {verdict(filter, known.audit, number) for number in known.calls.values()} == {denied}
    assert known.calls["ptrace"] == PTRACE[machine]
    assert verdict(filter, known.audit, 435) == FAIL | errno.ENOSYS
    assert verdict(filter, known.audit, known.clone, 0x11) == ALLOW
    assert verdict(filter, known.audit, known.clone, 0x10000011) == denied
    assert verdict(filter, known.audit, known.unshare, 0x80) == denied
    assert verdict(filter, known.audit, known.unshare, 0x400) == ALLOW
    assert verdict(filter, known.audit, known.ioctl, 0, 0x5412) == denied
    assert verdict(filter, known.audit, known.ioctl, 0, 0x5401) == ALLOW
    for family, allowed in ((1, ALLOW), (2, ALLOW), (10, ALLOW), (16, odd), (17, odd), (40, odd)):
        assert verdict(filter, known.audit, known.sockets, family) == allowed
        assert verdict(closed, known.audit, known.sockets, family) == odd


def test_bytes_that_have_as_many_names_as_a_disk_allows_are_laid_all_the_same(
    tmp_path: File,
) -> None:
    cache = FileCache(tmp_path / "bytes", tmp_path / "farms", None)
    empty = InputFile(FileKind.FILE, Blob(digest(b""), 0))
    cache.store_all([empty], {empty.blob.digest: b""})
    [kept] = (tmp_path / "bytes").iterdir()
    (tmp_path / "names").mkdir()
    with suppress(OSError):
        for number in range(66_000):  # some disks have no such bound
            os.link(kept, tmp_path / "names" / str(number))
    laid = MaterializedFiles({Path("a"): empty, Path("b/c"): empty}, ())
    farm = cache.acquire("one", {}, laid).farm
    assert farm and (farm / "a").read_bytes() == (farm / "b/c").read_bytes() == b""
    assert [file.name for file in (tmp_path / "bytes").iterdir()] == [kept.name]


def test_the_other_table_of_x86_is_closed() -> None:
    number = 0x40000000 | 101
    assert verdict(filter_for("x86_64"), 0xC000003E, number) == FAIL | errno.ENOSYS


def test_delegated_groups_of_the_second_version_are_found_beside_the_servers_own(
    tmp_path: File,
) -> None:
    service = tmp_path / "service"
    (service / "server").mkdir(parents=True)
    (service / "cgroup.controllers").write_text("cpu memory pids")
    (service / "cgroup.subtree_control").write_text("memory pids")
    mounts = f"30 1 0:26 / {tmp_path} rw - cgroup2 cgroup2 rw\n"
    found = cgroups.find_cgroups(mounts, "0::/service/server\n")
    assert found == cgroups.Cgroups((service,), unified=True)
    assert cgroups.find_cgroups(mounts, "0::/elsewhere\n") is None


@pytest.mark.anyio
async def test_behind_landlock_commands_are_another_user_or_do_not_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[IsolationTools] = []

    async def attempt(means: IsolationTools) -> None:
        tried.append(means)

    monkeypatch.setattr(os, "getuid", lambda: 0)
    assert (await detect_isolation(SandboxSettings("landlock"), attempt)).tier == "landlock"
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    found = await detect_isolation(SandboxSettings("landlock"), attempt)
    assert (found.tier, found.missing_features[-1]) == ("none", LANDLOCK_NEEDS_ROOT)
    assert len(tried) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("grouped", [True, False])
async def test_a_bound_of_memory_that_somebody_asked_for_is_kept_by_the_kernel_or_refused(
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
            async with sandbox.run(insisting, nothing):
                raise AssertionError("it ran")
    await sandbox.close()


@pytest.mark.anyio
async def test_behind_landlock_nothing_is_kept_between_calls(tmp_path: File) -> None:
    tried = IsolationTools("landlock", os.getuid(), os.getgid(), landlock=6)
    sandbox = LocalSandbox(tmp_path, tested_tools=tried)
    await sandbox.ready()
    assert sandbox.unsupported_reason(ResourceLimits()) is None
    assert "not supported with Landlock" in str(
        sandbox.unsupported_reason(ResourceLimits(), persistent=True)
    )
    await sandbox.close()


@pytest.mark.parametrize("above", bwrap_arguments.STAGE_CANDIDATES)
def test_the_stage_never_hides_the_program_and_its_libraries(above: str) -> None:
    stage = bwrap_arguments.stage_for(f"{above}/desk/lib/bwrap")
    assert stage != above
    assert File(stage).is_dir()
    assert not File(f"{above}/desk/lib/bwrap").is_relative_to(stage)


def test_a_server_that_is_not_root_is_closed_to_its_own_user(
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


def test_a_directory_named_from_where_the_server_stands_does_as_well(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def means(directory: File) -> IsolationTools:
        sandbox = LocalSandbox(directory)
        try:
            return await sandbox.ready()
        finally:
            await sandbox.close()

    monkeypatch.chdir(tmp_path)
    whole, here = (asyncio.run(means(at)) for at in (tmp_path / "sandboxes", File("sandboxes")))
    assert (here.tier, here.missing_features) == (whole.tier, whole.missing_features)


@pytest.mark.anyio
async def test_a_child_that_is_killed_takes_along_one_that_it_has_just_made() -> None:
    """Bubblewrap's waits for a word of its parent, and waited for ever where that was killed."""
    mark = os.urandom(8).hex()
    plan = {
        "cgroups": [], "enter": 0, "stage": "", "bind": "", "landlock": None, "seccomp": b"",
        "drop": False, "limits": {}, "keep": [], "directory": "/", "program": "/bin/bash",
        "argv": ["bash", "-c", f"(exec -a {mark} sleep 600) & echo made; wait"], "env": {},
    }  # fmt: skip
    child = ChildProcess()
    await child.prepare(plan)
    await child.go()
    assert await asyncio.to_thread(os.read, child.out, 5) == b"made\n"
    await child.end()
    await wait_until(lambda: not processes_marked(mark), "the kernel has ended the process")


@pytest.mark.anyio
async def test_a_child_that_has_ended_is_not_killed_under_a_number_that_is_free_again() -> None:
    child = ChildProcess()
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # noqa: ASYNC222 - the loop must not see it
    child.terminate()  # which finds that it has ended, before the loop does
    await child.end()
    assert child.code == 137
