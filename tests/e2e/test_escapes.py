"""Commands that try to leave their sandbox or gain privileges."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path as File

import pytest
from tests.support.escape_harness import (
    EscapeHarness,
    open_harness,
    processes_marked,
    public_directory,
)
from tests.support.local_providers import DISTINCT_TIERS, CommandRunner
from tests.support.wait import wait_until

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


async def test_no_tcp_port_of_the_host_can_be_reached(harness: EscapeHarness) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        port = listener.getsockname()[1]
        tried = await harness.python(f"""
import socket
for host in ("127.0.0.1", "::1", "localhost", "192.0.2.1"):
    try:
        socket.create_connection((host, {port}), 1)
        print("REACHED", host)
    except OSError as problem:
        print(type(problem).__name__)
""")
        assert "REACHED" not in tried.output
        assert tried.code == 0
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_no_udp_port_and_no_name_server_can_be_reached(harness: EscapeHarness) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(0)
        tried = await harness.python(f"""
import socket
try:
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.sendto(b"hello", ("127.0.0.1", {listener.getsockname()[1]}))
    print("sent")
except OSError as problem:
    print(type(problem).__name__)
try:
    print("RESOLVED", socket.getaddrinfo("example.com", 80))
except OSError as problem:
    print(type(problem).__name__)
""")
        assert "RESOLVED" not in tried.output
        with pytest.raises(BlockingIOError):
            listener.recv(10)


async def test_no_unix_socket_of_the_host_can_be_reached(
    harness: EscapeHarness, shared_directory: File
) -> None:
    name = f"\0carrel-{os.urandom(6).hex()}"
    path = str(shared_directory / "socket")
    with socket.socket(socket.AF_UNIX) as hidden, socket.socket(socket.AF_UNIX) as named:
        for listener, at in ((hidden, name), (named, path)):
            listener.bind(at)
            listener.listen()
            listener.settimeout(0)
        os.chmod(path, 0o777)
        tried = await harness.python(f"""
import socket
for at in ({name!r}, {path!r}):
    try:
        socket.socket(socket.AF_UNIX).connect(at)
        print("REACHED", at)
    except OSError as problem:
        print(type(problem).__name__)
""")
        assert "REACHED" not in tried.output
        assert tried.code == 0
        for listener in (hidden, named):
            with pytest.raises(BlockingIOError):
                listener.accept()


@pytest.mark.parametrize("harness", ["bubblewrap-overlay", "bubblewrap-copy"], indirect=True)
async def test_environment_variables_load_no_library_of_the_workspace_into_bubblewrap(
    harness: EscapeHarness,
) -> None:
    harness.runner.put("evil.so", "no library at all\n" * 10)
    variables = {
        "LD_PRELOAD": "/tmp/workspace/evil.so",
        "LD_DEBUG": "files",
        "LD_DEBUG_OUTPUT": "/tmp/workspace/linked",
    }
    async with harness.runner.run("true", env=variables) as ran:
        errors = ran.stderr.decode()
        assert not ran.changed
    assert "invalid ELF header" not in errors
    assert "bwrap" not in errors


@pytest.mark.parametrize("family", ["AF_NETLINK", "AF_PACKET", "AF_VSOCK", "AF_ALG"])
async def test_unusual_sockets_cannot_be_opened(harness: EscapeHarness, family: str) -> None:
    tried = await harness.python(f"import socket; socket.socket(socket.{family}, socket.SOCK_RAW)")
    assert tried.code == 1
    assert "Address family not supported" in tried.output


async def test_no_file_of_the_host_can_be_read_or_written(
    harness: EscapeHarness, shared_directory: File
) -> None:
    canary = shared_directory / "canary"
    canary.write_text(SECRET)
    canary.chmod(0o666)
    tried = await harness.attempt(
        f"cat {canary} /etc/shadow /etc/hostname; echo x > {canary};"
        f" echo x > {shared_directory}/new; ln {canary} here;"
        f" ls {shared_directory} /root /home /var /srv /boot; echo x > /usr/x"
    )
    assert SECRET not in tried.output
    assert canary.read_text() == SECRET
    assert os.listdir(shared_directory) == ["canary"]
    assert "x" not in os.listdir("/usr")
    assert "root:" not in tried.output


async def test_database_key_and_other_sandboxes_cannot_be_read(
    harness: EscapeHarness,
) -> None:
    data = harness.directory.parent
    for name in ("carrel.db", "vault.key"):
        (data / name).write_text(SECRET)
        (data / name).chmod(0o644)
    tried = await harness.attempt(
        f"cat {data}/carrel.db {data}/vault.key {data}/sandboxes/*/*; ls {data} {data}/sandboxes;"
        f" find / -name carrel.db -o -name vault.key -o -name 'bytes-*' 2>/dev/null"
    )
    assert SECRET not in tried.output
    assert "keepers\n" not in tried.output
    assert "\n/" not in tried.output.replace(f"\n{data}", "")


async def test_command_sees_nothing_of_a_concurrent_command(harness: EscapeHarness) -> None:
    harness.runner.put("secret-of-another", SECRET)
    command = f"echo there > marker-of-another; exec -a {harness.mark} sleep 1000"

    async def run_other() -> None:
        async with harness.runner.run(command, ResourceLimits(seconds=90)):
            pass

    def is_running() -> bool:
        return any(
            f"b'{harness.mark}\\x001000" in command_line
            for command_line in processes_marked(harness.mark)
        )

    running = asyncio.create_task(run_other())
    try:
        await wait_until(is_running, "the other command runs")
        observer = CommandRunner(harness.runner.sandbox)
        output = await observer.output_of(
            "find / -name '*-of-another' 2>/dev/null; cat /proc/*/cmdline 2>/dev/null;"
            " grep -rl nobody.inside /tmp /home /workspace /dev/shm ~ . 2>/dev/null"
        )
        assert "of-another" not in output.replace("'*-of-another'", "")
        assert harness.mark not in output
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_server_process_cannot_be_seen_or_inspected(
    harness: EscapeHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_TEST_SECRET", SECRET)
    tried = await harness.attempt(
        f"cat /proc/{os.getpid()}/environ /proc/$PPID/environ /proc/1/environ /proc/*/environ;"
        f" ls /proc/{os.getpid()}/root /proc/1/root /proc/1/cwd; env; cat /proc/*/cmdline;"
        f" cat /proc/kcore /proc/kmsg /proc/1/mem | head -c 10; dmesg"
    )
    assert SECRET not in tried.output
    assert "pytest" not in tried.output


async def test_dangerous_kernel_interfaces_are_closed(harness: EscapeHarness) -> None:
    tried = await harness.python("""
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
x86 = os.uname().machine == "x86_64"
calls = {"ptrace": (101, 117), "mount": (165, 40), "bpf": (321, 280), "keyctl": (250, 219),
    "io_uring_setup": (425, 425), "userfaultfd": (323, 282), "perf_event_open": (298, 241),
    "kexec_load": (246, 104), "init_module": (175, 105), "setns": (308, 268),
    "pivot_root": (155, 41), "process_vm_readv": (310, 270), "open_by_handle_at": (304, 265)}
for name, numbers in calls.items():
    ctypes.set_errno(0)
    got = libc.syscall(numbers[0 if x86 else 1], 0, 0, 0, 0, 0, 0)
    print(name, errno.errorcode.get(ctypes.get_errno(), got))
spaces = {"user": 0x10000000, "mount": 0x20000, "net": 0x40000000, "pid": 0x20000000}
for name, flags in spaces.items():
    ctypes.set_errno(0)
    got = libc.unshare(flags)
    print("unshare", name, errno.errorcode.get(ctypes.get_errno(), got))
ctypes.set_errno(0)
got = libc.syscall(435, 0, 0)
print("clone3", errno.errorcode.get(ctypes.get_errno(), got))
ctypes.set_errno(0)
got = libc.ioctl(0, 0x5412, b"x")
print("TIOCSTI", errno.errorcode.get(ctypes.get_errno(), got))
""")
    results = dict(line.rsplit(" ", 1) for line in tried.output.splitlines())
    assert results.pop("clone3") == "ENOSYS"
    assert set(results.values()) == {"EPERM"}, results
    assert len(results) == 18


async def test_other_processes_cannot_be_traced(harness: EscapeHarness) -> None:
    tried = await harness.python(f"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
child = os.fork()
if child == 0:
    os.execv("/bin/sleep", ["sleep", "100"])
for pid in (child, os.getppid(), 1, {os.getpid()}):
    print("TRACED" if libc.ptrace(16, pid, 0, 0) == 0 else "no")
os.kill(child, 9)
""")
    assert tried.output == "no\n" * 4


async def test_command_cannot_change_its_user(harness: EscapeHarness) -> None:
    tried = await harness.attempt(
        "cp /usr/bin/id mine; chmod 6755 mine; ./mine -u; id -u; su -c id; chroot / id;"
        " grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status;"
        " for one in $(find /usr -perm -4000 2>/dev/null | head -3); do echo $one; done;"
        " /usr/bin/python3 -c 'import os; os.setuid(0); print(\"ROOT\")'; unshare -Ur id -u"
    )
    lines = tried.output.splitlines()
    assert lines[0] == lines[1] != "0"
    assert "ROOT" not in tried.output
    assert "uid=0" not in tried.output
    assert "\n0\n" not in tried.output
    assert "lost its setuid" in tried.notes
