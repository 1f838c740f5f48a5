"""Promises of the local provider beyond the contract, for each isolation tier available here."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path as File

import pytest
from anyio import run_process
from tests.support.local_providers import LOCAL, NUMBERS, CommandRunner, RecordingBlobs

from carrel.adapters.sandbox.local import LocalSandbox, bwrap_arguments
from carrel.core.identifiers import Path
from carrel.ports.sandbox import (
    CommandSpec,
    FileKind,
    ResourceLimits,
    Sandbox,
    SandboxUnavailable,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=LOCAL)
async def commands(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[CommandRunner]:
    async with LOCAL[request.param](tmp_path) as sandbox:
        yield CommandRunner(sandbox)


async def test_deletion_marker_is_no_file(commands: CommandRunner) -> None:
    async with commands.run("mknod mark c 0 0 || mkfifo mark; printf x > file") as ran:
        assert {path.text: await ran.content(path) for path in ran.changed} == {"file": b"x"}
        assert "mark is neither a file nor a symlink" in "\n".join(ran.notes)
        assert ran.changed.keys() == {Path("file")}


async def test_process_listing_shows_no_variables(commands: CommandRunner) -> None:
    secret, number = os.urandom(16).hex(), f"600.{int.from_bytes(os.urandom(4))}"
    listing_command = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo ${#WORD}"

    async def look() -> bytes:
        """Look while the command sleeps, which it does until it was seen."""
        while True:
            listed = _command_lines()
            for pid, words in listed.items():
                if words == f"sleep\0{number}\0".encode():
                    os.kill(pid, signal.SIGTERM)
                    return b"".join(listed.values())
            await asyncio.sleep(0.01)

    looking = asyncio.create_task(asyncio.wait_for(look(), 30))
    async with commands.run(f"sleep {number}; {listing_command}", env={"WORD": secret}) as ran:
        output = ran.stdout.decode()
    assert secret.encode() not in await looking
    assert secret not in output
    assert output.endswith("32\n")


def _command_lines() -> dict[int, bytes]:
    by_pid = {}
    for place in File("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            by_pid[int(place.parent.name)] = place.read_bytes()
    return by_pid


async def test_home_and_tmp_are_writable_and_temporary(commands: CommandRunner) -> None:
    for _ in range(2):
        output = await commands.output_of(
            'find ~ "$TMPDIR" -type f; echo x > ~/x; cp ~/x "$TMPDIR"'
        )
        assert output == ""


async def test_content_is_fetched_once(commands: CommandRunner) -> None:
    commands.put("a", "one")
    commands.put("b", "two", FileKind.EXECUTABLE)
    for command in ("true", "rm a", "false"):
        await commands.changes_of(command)
    assert len(commands.blobs.requested) == 2


async def test_network_is_refused_unless_the_operator_allows_it(commands: CommandRunner) -> None:
    with pytest.raises(SandboxUnavailable, match="CARREL_SANDBOX_NETWORK"):
        async with commands.run("true", ResourceLimits(network=True)):
            raise AssertionError("it ran")


async def test_a_writer_ends_when_its_reader_has_ended(commands: CommandRunner) -> None:
    assert await commands.output_of('yes | head -1; echo "${PIPESTATUS[0]}"') == "y\n141\n"


@pytest.fixture
def signals_of_a_service() -> Iterator[None]:
    """Signals that a server ignores (as below nohup) and blocks."""
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
    yield
    signal.signal(signal.SIGHUP, ignored)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


@pytest.mark.parametrize("name", LOCAL)
@pytest.mark.usefixtures("signals_of_a_service")
async def test_a_command_ignores_and_blocks_no_signal(name: str, tmp_path: File) -> None:
    async with LOCAL[name](tmp_path) as sandbox:
        killed = "; ".join(f"bash -c 'kill -{name} $$'; echo $?" for name in ("HUP", "USR1"))
        codes = await CommandRunner(sandbox).output_of(f"{{ {killed}; }} 2> /dev/null")
        assert codes == "129\n138\n"


async def test_git_works(commands: CommandRunner) -> None:
    identity = "git -c user.name=a -c user.email=a@example.org"
    commit = f"git init -q -b main . && {identity} commit -q --allow-empty -m first"
    assert await commands.output_of(f"{commit} && git log --format=%s") == "first\n"


async def test_a_very_deep_directory_is_removed_again(
    commands: CommandRunner, tmp_path: File
) -> None:
    dig = "import os\nfor n in range(3000): os.mkdir('d'); os.chdir('d')"
    for place in (".", '"$TMPDIR"'):
        await commands.output_of(f'cd {place}; python3 -c "{dig}"')
    assert isinstance(commands.sandbox, LocalSandbox)
    await commands.sandbox.close()
    deep = [place for place, directories, _ in os.walk(tmp_path) if "d" in directories]
    for place in deep:  # pytest cannot remove it, which would end the whole run
        await run_process(["rm", "-rf", f"{place}/d"])
    assert deep == []


async def test_runtimes_may_reserve_more_memory_than_they_use(commands: CommandRunner) -> None:
    reserve = "mmap.mmap(-1, 2**33, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, mmap.PROT_READ)"
    program = (
        f"import mmap, threading; held = {reserve}; done = threading.Event()\n"
        "pool = [threading.Thread(target=done.wait) for _ in range(100)]\n"
        "[thread.start() for thread in pool]; done.set(); print(len(pool))"
    )
    assert await commands.output_of(f"python3 -c '{program}'") == "100\n"


async def test_java_runs_where_it_is_installed(commands: CommandRunner) -> None:
    program = 'class A { public static void main(String[] args) { System.out.println("ran"); } }'
    java = f"echo {shlex.quote(program)} > A.java; java A.java"
    assert await commands.output_of(f"if command -v java >&-; then {java}; else echo ran; fi") == (
        "ran\n"
    )


async def test_freeing_the_memory_of_large_files_does_not_block_the_event_loop(
    commands: CommandRunner, closed_on_the_loop: list[str]
) -> None:
    assert await commands.changes_of("echo x > file") == {"file": b"x\n"}
    assert closed_on_the_loop == []


async def run_in_instance(sandbox: Sandbox, command: str) -> str:
    spec = CommandSpec(f"call-{next(NUMBERS)}", command, {}, instance_key="one")
    async with sandbox.run(spec, RecordingBlobs()) as ran:
        return (ran.stdout + ran.stderr).decode()


async def test_freeing_the_memory_of_an_instance_does_not_block_the_event_loop(
    tmp_path: File, closed_on_the_loop: list[str]
) -> None:
    async with LOCAL["bubblewrap-overlay"](tmp_path) as sandbox:
        assert isinstance(sandbox, LocalSandbox)
        await run_in_instance(sandbox, "echo x > file")
        await sandbox.release_instance("one")
        assert closed_on_the_loop == []


async def test_processes_left_behind_have_no_limit_of_processor_time(tmp_path: File) -> None:
    async with LOCAL["bubblewrap-overlay"](tmp_path) as sandbox, asyncio.timeout(30):
        await run_in_instance(sandbox, "(setsid sh -c 'ulimit -t > ~/limit' &)")
        while not (limit := await run_in_instance(sandbox, "cat ~/limit 2> /dev/null")):
            pass
        assert limit == "unlimited\n"


def _file_below(directory: str) -> str:
    files = (f"{place}/{name}" for place, _, names in os.walk(directory) for name in names)
    return next(path for path in files if not os.path.islink(path))


async def test_configuration_of_package_managers_is_hidden(
    commands: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"/usr/etc", "/usr/local/etc"} == set(bwrap_arguments.HIDDEN_DIRECTORIES)
    file = shlex.quote(_file_below("/usr/share"))
    read = f"cat {file} >/dev/null 2>&1; echo $?; test -e /usr/bin/env; echo $?"
    assert await commands.output_of(read) == "0\n0\n"
    monkeypatch.setattr(bwrap_arguments, "HIDDEN_DIRECTORIES", ("/usr/share",))
    assert await commands.output_of(read) == "1\n0\n"


@pytest.mark.parametrize("name", ["os-release", "debian_version"])
async def test_the_version_of_the_system_is_readable(commands: CommandRunner, name: str) -> None:
    expected = (await run_process(["cat", f"/etc/{name}"], check=False)).stdout
    async with commands.run(f"cat /etc/{name}") as ran:
        assert ran.stdout == expected


async def test_python_is_there_where_python3_is(commands: CommandRunner) -> None:
    commands.put("tool.py", "#!/usr/bin/env python\nprint('ran')\n", FileKind.EXECUTABLE)
    has_python = await commands.output_of("command -v python3 || true")
    expected = "1\nran\n" if has_python else ""
    assert await commands.output_of("python -c 'print(1)'; ./tool.py || true") == expected
