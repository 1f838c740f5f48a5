"""What every provider of sandboxes promises: here by any of its walls, and elsewhere."""

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

from carrel.core.identifiers import Path
from carrel.ports.sandbox import CommandResult, FileKind, SandboxUnavailable

pytestmark = pytest.mark.anyio
MARK = b"\n[output truncated]"
OpenProvider = Callable[[str], Provider]


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenProvider]:
    """Providers beside stand-ins of their services, each opened when it is first asked for."""
    with ExitStack() as stack:

        @cache
        def opened(name: str) -> Provider:
            return stack.enter_context(REMOTE_PROVIDERS[name](tmp_path_factory.mktemp(name)))

        yield opened


@pytest.fixture(params=[*LOCAL, *REMOTE_PROVIDERS])
async def desk(
    request: pytest.FixtureRequest, tmp_path: File, elsewhere: OpenProvider
) -> AsyncIterator[CommandRunner]:
    if request.param in LOCAL:
        async with LOCAL[request.param](tmp_path) as sandbox:
            yield CommandRunner(sandbox)
    else:
        provider = elsewhere(request.param)
        yield CommandRunner(provider.sandbox, provider.bounds)
        await until(lambda: provider.service.alive == [])


def forms(ran: CommandResult) -> dict[str, FileKind]:
    return {path.text: changed.kind for path, changed in ran.changed.items()}


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110 - it happens in other processes
            await asyncio.sleep(0.05)


async def test_a_command_says_something_on_both_streams_and_how_it_ended(
    desk: CommandRunner,
) -> None:
    async with desk.run("cat; echo out; echo err >&2; exit 7") as ran:
        assert (ran.stdout, ran.stderr, ran.exit_code) == (b"out\n", b"err\n", 7)
        assert (ran.timed_out, ran.discard_reason, ran.notes) == (False, None, ())
        assert (ran.changed, ran.deleted) == ({}, frozenset())
        assert ran.duration_ms >= 0


async def test_a_kill_before_its_time_is_no_time_out(desk: CommandRunner) -> None:
    async with desk.run("kill -9 $$") as ran:
        assert (ran.timed_out, ran.exit_code) == (False, 137)


async def test_it_finds_its_files_in_the_directory_where_it_starts(desk: CommandRunner) -> None:
    desk.put("notes/ä -n.md", "grüße\n")
    desk.put("bin/go", "#!/bin/sh\necho went\n", FileKind.EXECUTABLE)
    desk.put("shortcut", "notes/ä -n.md", FileKind.LINK)
    desk.put("empty", b"")
    desk.put("bytes", bytes(range(256)))
    async with desk.run(
        "cat notes/*; bin/go; readlink shortcut; cat shortcut; wc -c < bytes;"
        " test -x notes/* || find . -type f -o -type l | LC_ALL=C sort"
    ) as ran:
        assert ran.stdout.decode() == (
            "grüße\nwent\nnotes/ä -n.md\ngrüße\n256\n"
            "./bin/go\n./bytes\n./empty\n./notes/ä -n.md\n./shortcut\n"
        )
        assert (ran.changed, ran.deleted) == ({}, frozenset())


async def test_what_it_makes_and_modifies_comes_back_to_the_byte(desk: CommandRunner) -> None:
    whole = bytes(range(256)) * 4096
    desk.put("a.txt", "one\n")
    desk.put("deep/down/b.txt", "two\n")
    desk.put("large", whole)
    assert await desk.changes_of(
        "echo more >> a.txt; printf '\\000\\377' > deep/down/c; mkdir -p x/y; : > x/y/z;"
        " mkdir void; cat large large > twice"
    ) == {"a.txt": b"one\nmore\n", "deep/down/c": b"\0\xff", "x/y/z": b"", "twice": whole + whole}


async def test_the_next_command_finds_the_files_as_they_were_given(desk: CommandRunner) -> None:
    desk.put("a.txt", "one\n")
    desk.put("same.txt", "one\n")
    assert await desk.changes_of("echo x >> a.txt; : > same.txt; rm a.txt; echo x > ~/x") == {
        "a.txt": None,
        "same.txt": b"",
    }
    assert await desk.output_of("cat a.txt same.txt; find ~ -type f") == "one\none\n"


async def test_what_was_only_touched_is_not_told(desk: CommandRunner) -> None:
    desk.put("a.txt", "one\n")
    desk.put("b.txt", "two\n")
    desk.put("c/d.txt", "three\n")
    desk.put("forged", "one\n")
    assert await desk.changes_of(
        "touch a.txt; chmod +x b.txt; chmod 600 b.txt; mv c/d.txt e; mv e c/d.txt;"
        " cp a.txt f; mv f a.txt;"
        " touch -r forged t; printf 'two\\n' > forged; touch -r t forged; rm t"
    ) == {"forged": b"two\n"}, "which has the same size and time"


async def test_forms_come_back(desk: CommandRunner) -> None:
    desk.put("a", "x")
    desk.put("b", "y", FileKind.EXECUTABLE)
    desk.put("c", "there", FileKind.LINK)
    async with desk.run("chmod +x a; chmod -x b; ln -sfn /etc/shadow c; ln -s nowhere d") as ran:
        assert forms(ran) == {
            "a": FileKind.EXECUTABLE,
            "b": FileKind.FILE,
            "c": FileKind.LINK,
            "d": FileKind.LINK,
        }
        assert await ran.content(Path("c")) == b"/etc/shadow"
        assert ran.changed[Path("d")].size == len("nowhere")


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


async def test_what_is_replaced_deleted_or_moved_comes_back(desk: CommandRunner) -> None:
    for number in range(len(REPLACED)):
        desk.put(f"{number}/d/a", "1")
        desk.put(f"{number}/d/e/b", "2")
        desk.put(f"{number}/f", "3")
    left = await desk.changes_of(
        "\n".join(f"(cd {number}; {command})" for number, (command, _) in enumerate(REPLACED))
    )
    told = {
        command: {
            path.partition("/")[2]: content
            for path, content in left.items()
            if path.startswith(f"{number}/")
        }
        for number, (command, _) in enumerate(REPLACED)
    }
    assert told == dict(REPLACED)


async def test_what_no_workspace_can_hold_is_left_out_and_noted(desk: CommandRunner) -> None:
    odd = r"""mkfifo pipe; printf x > kept; printf x > 'back\slash'; printf x > $'new\nline';
        printf x > $'\xff'; printf x > suid; chmod 4755 suid; ln -s /dev/zero zero
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s")' 2>/dev/null
        for n in {1..9}; do mkdir $(printf %0200d 0); cd $(printf %0200d 0); done; echo x > file"""
    async with desk.run(odd) as ran:
        assert forms(ran) == {
            "kept": FileKind.FILE,
            "suid": FileKind.EXECUTABLE,
            "zero": FileKind.LINK,
        }
        told = "\n".join(ran.notes)
        parts = ("pipe", "backslash", "control character", "not valid Unicode", "suid", "long")
        assert [part for part in parts if part not in told] == []
        assert await ran.content(Path("zero")) == b"/dev/zero"


async def test_names_come_back_in_their_composed_form(desk: CommandRunner) -> None:
    desk.put("ü", "1")
    desk.put("é", "1")
    async with desk.run(
        r"mv ü $'u\xcc\x88'; cp é $'e\xcc\x81'; printf 2 > é; printf x > $'o\xcc\x88'; ls | wc -l"
    ) as ran:
        assert (ran.stdout, ran.deleted) == (b"4\n", frozenset())
        left = {path.text: await ran.content(path) for path in ran.changed}
        assert left == {"é": b"2", "ö": b"x"}, "one that is only spelt otherwise is still there"
        assert "twice" in "\n".join(ran.notes)


async def test_what_was_locked_is_read_all_the_same(desk: CommandRunner) -> None:
    desk.put("d/a", "1")
    assert await desk.changes_of(
        "mkdir -p x/y; printf n > x/y/z; chmod 0 x/y/z x/y x; printf 2 > d/a; chmod 0 d/a d"
    ) == {"d/a": b"2", "x/y/z": b"n"}


async def test_too_many_changes_are_refused_as_a_whole(desk: CommandRunner) -> None:
    desk.put("a", "1")
    async with desk.run("rm a; for n in {1..5001}; do : > f$n; done") as ran:
        assert ran.exit_code == 0
        assert ran.discard_reason and "5000" in ran.discard_reason
        assert (ran.changed, ran.deleted) == ({}, frozenset())


async def test_a_command_that_takes_too_long_is_stopped_and_its_work_is_kept(
    desk: CommandRunner,
) -> None:
    late, soon = replace(desk.bounds, seconds=2), replace(desk.bounds, seconds=1)
    # It may be asked twice: for itself, and with all of its group.
    trap = "trap 'trap : TERM; echo bye; exit 3' TERM"
    polite = f"{trap}; echo half > done; echo begun; sleep 1000 & wait"
    async with desk.run(polite, late) as ran:
        assert (ran.timed_out, ran.exit_code, ran.stdout) == (True, None, b"begun\nbye\n")
        assert await ran.content(Path("done")) == b"half\n"
    async with desk.run("trap '' TERM; while :; do sleep 1; done", soon) as ran:
        assert ran.timed_out, "it is asked to end before it is made to"
        assert ran.duration_ms < 20_000


async def test_each_output_is_bounded_for_itself_and_between_characters(
    desk: CommandRunner,
) -> None:
    flood = "head -c 20000000 /dev/zero | tr '\\0' 'x'; echo >done; printf 'ä%.0s' {1..600} >&2"
    async with desk.run(flood, replace(desk.bounds, output_bytes=1000)) as ran:
        assert ran.stdout == b"x" * (1000 - len(MARK)) + MARK
        assert ran.stderr == "ä".encode() * 490 + MARK
        assert (ran.exit_code, forms(ran)) == (0, {"done": FileKind.FILE})


async def test_an_output_of_just_its_bound_is_whole(desk: CommandRunner) -> None:
    async with desk.run("printf 12345", replace(desk.bounds, output_bytes=5)) as ran:
        assert ran.stdout == b"12345"


async def test_no_file_grows_beyond_the_bound_of_the_disk(desk: CommandRunner) -> None:
    async with desk.run("head -c 3000000 /dev/zero > one", replace(desk.bounds, disk_mb=1)) as ran:
        assert ran.exit_code != 0
        assert all(changed.size <= 2**20 for changed in ran.changed.values())


async def test_a_command_without_files_has_an_empty_directory(desk: CommandRunner) -> None:
    async with desk.run("ls -A; touch x; ls", bare=True) as ran:
        assert (ran.stdout, ran.exit_code) == (b"x\n", 0)
        assert (ran.changed, ran.deleted) == ({}, frozenset())


async def test_its_environment_is_what_it_was_given_and_no_more(
    desk: CommandRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_VAULT_KEY", "a secret of the server")
    given = {"WORD": "a 'b' \"c\" $d\n", "PATH": "/evil", "HOME": "/evil", "COMMAND": "SECONDS"}
    async with desk.run('env -0; printf %s "$WORD"', env=given) as ran:
        *said, word = ran.stdout.decode().split("\0")
    seen = dict(each.split("=", 1) for each in said)
    assert word == seen["WORD"] == given["WORD"]
    assert seen.keys() - {"PWD", "SHLVL", "_", "OLDPWD"} == {
        *("WORD", "COMMAND", "PATH", "HOME", "TMPDIR", "LANG"),
    }
    assert "/evil" not in seen["PATH"] + seen["HOME"]


async def test_several_run_at_once_and_see_nothing_of_each_other(desk: CommandRunner) -> None:
    desk.put("a", "0")

    async def one(number: int) -> dict[str, bytes | None]:
        return await desk.changes_of(f"sleep 0.2; ls > list; printf {number} > a")

    done = await asyncio.gather(*(one(number) for number in range(1, 4)))
    assert done == [{"a": b"%d" % number, "list": b"a\nlist\n"} for number in range(1, 4)]


async def test_a_command_that_no_kernel_would_take_is_refused(desk: CommandRunner) -> None:
    with pytest.raises(SandboxUnavailable, match="bytes"):
        async with desk.run("#" * 200_000):
            raise AssertionError("it ran")


async def test_nothing_is_left_of_it(desk: CommandRunner) -> None:
    mark = os.urandom(8).hex()
    daemon = f"setsid bash -c 'exec -a {mark} sleep 600'"
    async with desk.run(f"({daemon} &); echo said") as ran:
        assert ran.stdout == b"said\n"
    assert processes_marked(mark) == []


async def test_a_command_that_nobody_waits_for_any_more_is_killed(desk: CommandRunner) -> None:
    """At once, but where nothing can be called off: then when its time is over."""
    mark = os.urandom(8).hex()

    async def forever() -> None:
        command = f"exec -a {mark} sleep 600"
        async with desk.run(command, replace(desk.bounds, seconds=5)):
            raise AssertionError("it ended")

    task = asyncio.create_task(forever())
    await until(lambda: processes_marked(mark))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not processes_marked(mark))
