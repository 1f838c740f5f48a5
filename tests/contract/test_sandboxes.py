"""Contract of sandbox providers: local ones with every isolation, and remote ones."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path as File

import pytest
from msgspec.structs import replace
from tests.support.escape_harness import processes_marked
from tests.support.local_providers import LOCAL, CommandRunner
from tests.support.remote_providers import REMOTE_PROVIDERS, Provider
from tests.support.wait import wait_until

from carrel.core.identifiers import Path
from carrel.ports.sandbox import CommandResult, FileKind, SandboxUnavailable

pytestmark = pytest.mark.anyio
MARK = b"\n[output truncated]"
OpenProvider = Callable[[str], Provider]


@pytest.fixture(scope="module")
def remote_providers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenProvider]:
    """Remote providers against fake services, each opened on first use."""
    with ExitStack() as stack:

        @cache
        def open_provider(name: str) -> Provider:
            return stack.enter_context(REMOTE_PROVIDERS[name](tmp_path_factory.mktemp(name)))

        yield open_provider


@pytest.fixture(params=[*LOCAL, *REMOTE_PROVIDERS])
async def workspace(
    request: pytest.FixtureRequest, tmp_path: File, remote_providers: OpenProvider
) -> AsyncIterator[CommandRunner]:
    if request.param in LOCAL:
        async with LOCAL[request.param](tmp_path) as sandbox:
            yield CommandRunner(sandbox)
    else:
        provider = remote_providers(request.param)
        yield CommandRunner(provider.sandbox, provider.bounds)
        await wait_until(lambda: provider.service.running_instances == [], "no instance is alive")


def kinds_of(result: CommandResult) -> dict[str, FileKind]:
    return {path.text: changed.kind for path, changed in result.changed.items()}


async def test_a_command_returns_both_streams_and_its_exit_code(workspace: CommandRunner) -> None:
    async with workspace.run("cat; echo out; echo err >&2; exit 7") as result:
        assert (result.stdout, result.stderr, result.exit_code) == (b"out\n", b"err\n", 7)
        assert (result.timed_out, result.discard_reason, result.notes) == (False, None, ())
        assert (result.changed, result.deleted) == ({}, frozenset())
        assert result.duration_ms >= 0


async def test_a_kill_before_the_limit_is_no_timeout(workspace: CommandRunner) -> None:
    async with workspace.run("kill -9 $$") as result:
        assert (result.timed_out, result.exit_code) == (False, 137)


async def test_a_command_starts_in_the_directory_of_its_files(workspace: CommandRunner) -> None:
    workspace.put("notes/ä -n.md", "grüße\n")
    workspace.put("bin/go", "#!/bin/sh\necho went\n", FileKind.EXECUTABLE)
    workspace.put("shortcut", "notes/ä -n.md", FileKind.LINK)
    workspace.put("empty", b"")
    workspace.put("bytes", bytes(range(256)))
    async with workspace.run(
        "cat notes/*; bin/go; readlink shortcut; cat shortcut; wc -c < bytes;"
        " test -x notes/* || find . -type f -o -type l | LC_ALL=C sort"
    ) as result:
        assert result.stdout.decode() == (
            "grüße\nwent\nnotes/ä -n.md\ngrüße\n256\n"
            "./bin/go\n./bytes\n./empty\n./notes/ä -n.md\n./shortcut\n"
        )
        assert (result.changed, result.deleted) == ({}, frozenset())


async def test_created_and_modified_files_are_returned_unchanged(workspace: CommandRunner) -> None:
    content = bytes(range(256)) * 4096
    workspace.put("a.txt", "one\n")
    workspace.put("deep/down/b.txt", "two\n")
    workspace.put("large", content)
    assert await workspace.changes_of(
        "echo more >> a.txt; printf '\\000\\377' > deep/down/c; mkdir -p x/y; : > x/y/z;"
        " mkdir void; cat large large > twice"
    ) == {
        "a.txt": b"one\nmore\n",
        "deep/down/c": b"\0\xff",
        "x/y/z": b"",
        "twice": content + content,
    }


async def test_the_next_command_sees_the_files_as_they_were_put(workspace: CommandRunner) -> None:
    workspace.put("a.txt", "one\n")
    workspace.put("same.txt", "one\n")
    assert await workspace.changes_of("echo x >> a.txt; : > same.txt; rm a.txt; echo x > ~/x") == {
        "a.txt": None,
        "same.txt": b"",
    }
    assert await workspace.output_of("cat a.txt same.txt; find ~ -type f") == "one\none\n"


async def test_a_file_that_was_only_touched_is_not_reported(workspace: CommandRunner) -> None:
    workspace.put("a.txt", "one\n")
    workspace.put("b.txt", "two\n")
    workspace.put("c/d.txt", "three\n")
    workspace.put("forged", "one\n")
    assert await workspace.changes_of(
        "touch a.txt; chmod 700 b.txt; chmod 644 b.txt; mv c/d.txt e; mv e c/d.txt;"
        " cp a.txt f; mv f a.txt;"
        " touch -r forged t; printf 'two\\n' > forged; touch -r t forged; rm t"
    ) == {"forged": b"two\n"}, "with the same size and time"


async def test_file_kinds_are_returned(workspace: CommandRunner) -> None:
    workspace.put("a", "x")
    workspace.put("b", "y", FileKind.EXECUTABLE)
    workspace.put("c", "there", FileKind.LINK)
    async with workspace.run(
        "chmod +x a; chmod -x b; ln -sfn /etc/shadow c; ln -s nowhere d"
    ) as result:
        assert kinds_of(result) == {
            "a": FileKind.EXECUTABLE,
            "b": FileKind.FILE,
            "c": FileKind.LINK,
            "d": FileKind.LINK,
        }
        assert await result.content(Path("c")) == b"/etc/shadow"
        assert result.changed[Path("d")].size == len("nowhere")


REPLACED: list[tuple[str, dict[str, bytes | None]]] = [
    ("rm -r d", {"d/a": None, "d/e/b": None}),
    ("rm -r d; mkdir d; echo n > d/n", {"d/a": None, "d/e/b": None, "d/n": b"n\n"}),
    ("rm -r d; echo n > d", {"d/a": None, "d/e/b": None, "d": b"n\n"}),
    ("rm f; mkdir f; echo n > f/n", {"f": None, "f/n": b"n\n"}),
    ("mv d g", {"d/a": None, "d/e/b": None, "g/a": b"1", "g/e/b": b"2"}),
    ("mv d/e d/g; mv d g", {"d/a": None, "d/e/b": None, "g/a": b"1", "g/g/b": b"2"}),
    ("mv f d/e/b", {"f": None, "d/e/b": b"3"}),
    ("rm -r d; mkdir -p d/e; printf 2 > d/e/b", {"d/a": None}),
    ("rm -r d; ln -s /etc d", {"d/a": None, "d/e/b": None, "d": b"/etc"}),
    ("ln f h; printf 4 >> h", {"f": b"34", "h": b"34"}),
    ("rm f; mkfifo f", {"f": None}),
    ("rm -rf ./* ", {"d/a": None, "d/e/b": None, "f": None}),
]


async def test_replaced_deleted_and_moved_files_are_returned(workspace: CommandRunner) -> None:
    for number in range(len(REPLACED)):
        workspace.put(f"{number}/d/a", "1")
        workspace.put(f"{number}/d/e/b", "2")
        workspace.put(f"{number}/f", "3")
    changed = await workspace.changes_of(
        "\n".join(f"(cd {number}; {command})" for number, (command, _) in enumerate(REPLACED))
    )
    reported = {
        command: {
            path.partition("/")[2]: content
            for path, content in changed.items()
            if path.startswith(f"{number}/")
        }
        for number, (command, _) in enumerate(REPLACED)
    }
    assert reported == dict(REPLACED)


async def test_files_that_no_workspace_can_store_are_omitted_and_noted(
    workspace: CommandRunner,
) -> None:
    odd = r"""mkfifo pipe; printf x > kept; printf x > 'back\slash'; printf x > $'new\nline';
        printf x > $'\xff'; printf x > suid; chmod 4755 suid; ln -s /dev/zero zero
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s")' 2>/dev/null
        for n in {1..9}; do mkdir $(printf %0200d 0); cd $(printf %0200d 0); done; echo x > file"""
    async with workspace.run(odd) as result:
        assert kinds_of(result) == {
            "kept": FileKind.FILE,
            "suid": FileKind.EXECUTABLE,
            "zero": FileKind.LINK,
        }
        notes = "\n".join(result.notes)
        parts = ("pipe", "backslash", "control character", "not valid Unicode", "suid", "long")
        assert [part for part in parts if part not in notes] == []
        assert await result.content(Path("zero")) == b"/dev/zero"


async def test_names_are_returned_in_composed_form(workspace: CommandRunner) -> None:
    workspace.put("ü", "1")
    workspace.put("é", "1")
    async with workspace.run(
        r"mv ü $'u\xcc\x88'; cp é $'e\xcc\x81'; printf 2 > é; printf x > $'o\xcc\x88'; ls | wc -l"
    ) as result:
        assert (result.stdout, result.deleted) == (b"4\n", frozenset())
        changed = {path.text: await result.content(path) for path in result.changed}
        assert changed == {"é": b"2", "ö": b"x"}, "a file in another normalization still exists"
        assert "twice" in "\n".join(result.notes)


async def test_files_without_read_permission_are_returned(workspace: CommandRunner) -> None:
    workspace.put("d/a", "1")
    assert await workspace.changes_of(
        "mkdir -p x/y; printf n > x/y/z; chmod 0 x/y/z x/y x; printf 2 > d/a; chmod 0 d/a d"
    ) == {"d/a": b"2", "x/y/z": b"n"}


async def test_too_many_changes_are_discarded_together(workspace: CommandRunner) -> None:
    workspace.put("a", "1")
    async with workspace.run("rm a; for n in {1..5001}; do : > f$n; done") as result:
        assert result.exit_code == 0
        assert result.discard_reason and "5000" in result.discard_reason
        assert (result.changed, result.deleted) == ({}, frozenset())


async def test_a_command_over_its_time_limit_is_stopped_and_its_changes_are_returned(
    workspace: CommandRunner,
) -> None:
    two_seconds, one_second = (
        replace(workspace.bounds, seconds=2),
        replace(workspace.bounds, seconds=1),
    )
    # SIGTERM may arrive twice: for the process and for its group.
    trap = "trap 'trap : TERM; echo bye; exit 3' TERM"
    polite = f"{trap}; echo half > done; echo begun; sleep 1000 & wait"
    async with workspace.run(polite, two_seconds) as result:
        assert (result.timed_out, result.exit_code, result.stdout) == (True, None, b"begun\nbye\n")
        assert await result.content(Path("done")) == b"half\n"
    async with workspace.run("trap '' TERM; while :; do sleep 1; done", one_second) as result:
        assert result.timed_out, "SIGTERM is followed by SIGKILL"
        assert result.duration_ms < 20_000


async def test_each_output_is_limited_separately_and_cut_between_characters(
    workspace: CommandRunner,
) -> None:
    flood = "head -c 20000000 /dev/zero | tr '\\0' 'x'; echo >done; printf 'ä%.0s' {1..600} >&2"
    async with workspace.run(flood, replace(workspace.bounds, output_bytes=1000)) as result:
        assert result.stdout == b"x" * (1000 - len(MARK)) + MARK
        assert result.stderr == "ä".encode() * 490 + MARK
        assert (result.exit_code, kinds_of(result)) == (0, {"done": FileKind.FILE})


async def test_an_output_of_exactly_the_limit_is_complete(workspace: CommandRunner) -> None:
    async with workspace.run("printf 12345", replace(workspace.bounds, output_bytes=5)) as result:
        assert result.stdout == b"12345"


async def test_no_file_grows_beyond_the_disk_limit(workspace: CommandRunner) -> None:
    async with workspace.run(
        "head -c 3000000 /dev/zero > one", replace(workspace.bounds, disk_mb=1)
    ) as result:
        assert result.exit_code != 0
        assert all(changed.size <= 2**20 for changed in result.changed.values())


async def test_a_command_without_files_has_an_empty_directory(workspace: CommandRunner) -> None:
    async with workspace.run("ls -A; touch x; ls", bare=True) as result:
        assert (result.stdout, result.exit_code) == (b"x\n", 0)
        assert (result.changed, result.deleted) == ({}, frozenset())


async def test_a_commands_environment_has_only_the_passed_variables(
    workspace: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_VAULT_KEY", "a secret of the server")
    passed = {"WORD": "a 'b' \"c\" $d\n", "PATH": "/evil", "HOME": "/evil", "COMMAND": "SECONDS"}
    async with workspace.run('env -0; printf %s "$WORD"', env=passed) as result:
        *listed, word = result.stdout.decode().split("\0")
    environment = dict(item.split("=", 1) for item in listed)
    assert word == environment["WORD"] == passed["WORD"]
    usual = {"PWD", "SHLVL", "_", "OLDPWD", "GIT_CONFIG_NOSYSTEM"}
    assert environment.keys() - usual == {
        *("WORD", "COMMAND", "PATH", "HOME", "TMPDIR", "LANG"),
    }
    assert "/evil" not in environment["PATH"] + environment["HOME"]


async def test_concurrent_commands_do_not_see_each_other(workspace: CommandRunner) -> None:
    workspace.put("a", "0")

    async def run_one(number: int) -> dict[str, bytes | None]:
        return await workspace.changes_of(f"sleep 0.2; ls > list; printf {number} > a")

    done = await asyncio.gather(*(run_one(number) for number in range(1, 4)))
    assert done == [{"a": b"%d" % number, "list": b"a\nlist\n"} for number in range(1, 4)]


async def test_a_command_too_long_for_the_kernel_is_refused(workspace: CommandRunner) -> None:
    with pytest.raises(SandboxUnavailable, match="bytes"):
        async with workspace.run("#" * 200_000):
            raise AssertionError("it ran")


async def test_no_process_of_a_command_remains(workspace: CommandRunner) -> None:
    mark = os.urandom(8).hex()
    background = f"setsid bash -c 'exec -a {mark} sleep 600'"
    async with workspace.run(f"({background} &); echo said") as result:
        assert result.stdout == b"said\n"
    assert processes_marked(mark) == []


async def test_a_cancelled_command_is_killed(workspace: CommandRunner) -> None:
    """Immediately, or at its time limit if the provider cannot cancel."""
    mark = os.urandom(8).hex()

    async def forever() -> None:
        command = f"exec -a {mark} sleep 600"
        async with workspace.run(command, replace(workspace.bounds, seconds=5)):
            raise AssertionError("it ended")

    task = asyncio.create_task(forever())
    await wait_until(lambda: processes_marked(mark), "the command runs")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await wait_until(lambda: not processes_marked(mark), "the command has ended")
