"""What every provider of sandboxes promises."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import suppress
from pathlib import Path as File

import pytest
from tests.contract.providers import LOCAL, Desk

from carrel.core.names import Digest, Path
from carrel.core.tree import Blob
from carrel.ports.sandboxes import Bounds, Form, Order, Refused

pytestmark = pytest.mark.anyio


@pytest.fixture(params=LOCAL)
async def desk(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[Desk]:
    async with LOCAL[request.param](tmp_path) as sandbox:
        yield Desk(sandbox)


async def test_a_command_says_something_on_both_streams_and_how_it_ended(desk: Desk) -> None:
    async with desk.run("echo out; echo err >&2; exit 7") as ran:
        assert (ran.stdout, ran.stderr, ran.exit_code) == (b"out\n", b"err\n", 7)
        assert (ran.timed_out, ran.unkept, ran.notes, ran.changed) == (False, None, (), {})
        assert ran.milliseconds >= 0
    async with desk.run("kill -9 $$") as ran:
        assert ran.exit_code == 137


async def test_it_finds_its_files_in_the_directory_where_it_starts(desk: Desk) -> None:
    desk.put("notes/ä.md", "grüße\n")
    desk.put("bin/go", "#!/bin/sh\necho went\n", Form.EXECUTABLE)
    desk.put("shortcut", "notes/ä.md", Form.LINK)
    desk.put("empty", b"")
    desk.put("bytes", bytes(range(256)))
    said = await desk.said("cat notes/ä.md; bin/go; readlink shortcut; cat shortcut; wc -c < bytes")
    assert said == "grüße\nwent\nnotes/ä.md\ngrüße\n256\n"
    assert await desk.said("test -x notes/ä.md || find . -type f -o -type l | LC_ALL=C sort") == (
        "./bin/go\n./bytes\n./empty\n./notes/ä.md\n./shortcut\n"
    )


async def test_what_it_makes_and_modifies_comes_back(desk: Desk) -> None:
    desk.put("a.txt", "one\n")
    desk.put("deep/down/b.txt", "two\n")
    assert await desk.left(
        "echo more >> a.txt; printf new > deep/down/c; mkdir -p x/y; printf z > x/y/z; mkdir void"
    ) == {"a.txt": b"one\nmore\n", "deep/down/c": b"new", "x/y/z": b"z"}


async def test_the_next_command_finds_the_files_as_they_were_given(desk: Desk) -> None:
    desk.put("a.txt", "one\n")
    desk.put("same.txt", "one\n")
    for _ in range(2):
        assert await desk.left("echo x >> a.txt; : > same.txt; rm a.txt") == {
            "a.txt": None,
            "same.txt": b"",
        }
    assert await desk.said("cat a.txt same.txt") == "one\none\n"


async def test_what_was_only_touched_is_not_told(desk: Desk) -> None:
    desk.put("a.txt", "one\n")
    desk.put("b.txt", "two\n")
    desk.put("c/d.txt", "three\n")
    assert (
        await desk.left(
            "touch a.txt; chmod +x b.txt; chmod 600 b.txt; mv c/d.txt e; mv e c/d.txt;"
            " cp a.txt f; mv f a.txt"
        )
        == {}
    )


async def test_another_content_of_the_same_size_and_time_is_told(desk: Desk) -> None:
    desk.put("a.txt", "one\n")
    forge = "touch -r a.txt $TMPDIR/t; printf 'two\\n' > a.txt; touch -r $TMPDIR/t a.txt"
    assert await desk.left(forge) == {"a.txt": b"two\n"}


async def test_forms_come_back(desk: Desk) -> None:
    desk.put("a", "x")
    desk.put("b", "y", Form.EXECUTABLE)
    desk.put("c", "there", Form.LINK)
    async with desk.run("chmod +x a; chmod -x b; ln -sfn /etc/shadow c; ln -s nowhere d") as ran:
        assert {path.text: changed.form for path, changed in ran.changed.items()} == {
            "a": Form.EXECUTABLE,
            "b": Form.FILE,
            "c": Form.LINK,
            "d": Form.LINK,
        }
        assert await ran.content(Path("c")) == b"/etc/shadow"
        assert ran.changed[Path("d")].size == len("nowhere")


@pytest.mark.parametrize(
    ("command", "left"),
    [
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
    ],
)
async def test_what_is_replaced_deleted_or_moved_comes_back(
    desk: Desk, command: str, left: dict[str, bytes | None]
) -> None:
    desk.put("d/a", "1")
    desk.put("d/e/b", "2")
    desk.put("f", "3")
    assert await desk.left(command) == left


async def test_what_no_workspace_can_hold_is_left_out_and_noted(desk: Desk) -> None:
    odd = r"""mkfifo pipe; printf x > kept; printf x > 'back\slash'; printf x > $'new\nline';
        printf x > $'\xff'; printf x > suid; chmod 4755 suid; ln -s /dev/zero zero;
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("s")' 2>/dev/null"""
    async with desk.run(odd) as ran:
        assert {path.text: changed.form for path, changed in ran.changed.items()} == {
            "kept": Form.FILE,
            "suid": Form.EXECUTABLE,
            "zero": Form.LINK,
        }
        told = "\n".join(ran.notes)
        for part in ("pipe", "backslash", "control character", "not valid Unicode", "suid"):
            assert part in told
        assert await ran.content(Path("zero")) == b"/dev/zero"


async def test_names_come_back_in_their_composed_form(desk: Desk) -> None:
    async with desk.run(r"printf x > $'u\xcc\x88'") as ran:
        assert [path.text for path in ran.changed] == ["ü"]
        assert await ran.content(Path("ü")) == b"x"


async def test_a_file_whose_name_is_only_spelt_otherwise_is_still_there(desk: Desk) -> None:
    desk.put("ü", "1")
    desk.put("é", "1")
    async with desk.run(r"mv ü $'u\xcc\x88'; cp é $'e\xcc\x81'; printf 2 > é; ls | wc -l") as ran:
        assert (ran.stdout, ran.deleted) == (b"3\n", frozenset())
        assert {path.text: await ran.content(path) for path in ran.changed} == {"é": b"2"}
        assert "twice" in "\n".join(ran.notes)


async def test_a_file_that_is_too_deep_is_left_out_and_noted(desk: Desk) -> None:
    async with desk.run(
        "for n in {1..9}; do mkdir $(printf %0200d 0); cd $(printf %0200d 0); done; echo x > file"
    ) as ran:
        assert (ran.exit_code, ran.changed) == (0, {})
        assert "path is too long" in "\n".join(ran.notes)


async def test_the_mark_of_a_deletion_is_no_file(desk: Desk) -> None:
    async with desk.run("mknod mark c 0 0 || mkfifo mark; printf x > file") as ran:
        assert {path.text: await ran.content(path) for path in ran.changed} == {"file": b"x"}
        assert "mark is neither a file nor a link" in "\n".join(ran.notes)


async def test_a_directory_that_was_locked_is_read_all_the_same(desk: Desk) -> None:
    desk.put("d/a", "1")
    assert await desk.left(
        "mkdir -p x/y; printf n > x/y/z; chmod 0 x/y/z x/y x; printf 2 > d/a; chmod 0 d/a d"
    ) == {"d/a": b"2", "x/y/z": b"n"}


async def test_too_many_changes_are_refused_as_a_whole(desk: Desk) -> None:
    desk.put("a", "1")
    async with desk.run("rm a; for n in {1..5001}; do : > f$n; done") as ran:
        assert ran.exit_code == 0
        assert ran.unkept and "5000" in ran.unkept
        assert (ran.changed, ran.deleted) == ({}, frozenset())


async def test_a_command_that_takes_too_long_is_stopped_and_its_work_is_kept(desk: Desk) -> None:
    async with desk.run(
        "echo half > done; echo begun; sleep 1000; echo never", Bounds(seconds=1)
    ) as ran:
        assert (ran.timed_out, ran.exit_code, ran.stdout) == (True, None, b"begun\n")
        assert await ran.content(Path("done")) == b"half\n"


async def test_it_is_asked_to_end_before_it_is_made_to(desk: Desk) -> None:
    polite = "trap 'echo bye; exit 3' TERM; echo begun; sleep 1000 & wait"
    async with desk.run(polite, Bounds(seconds=1)) as ran:
        assert (ran.timed_out, ran.stdout) == (True, b"begun\nbye\n")
    async with desk.run("trap '' TERM; while :; do sleep 1; done", Bounds(seconds=1)) as ran:
        assert ran.timed_out
        assert ran.milliseconds < 20_000


async def test_output_is_bounded_between_characters(desk: Desk) -> None:
    async with desk.run("printf 'ä%.0s' {1..100}; echo fits >&2", Bounds(output_bytes=32)) as ran:
        assert ran.stdout == "ä".encode() * 6 + b"\n[output truncated]"
        assert ran.stderr == b"fits\n"
    async with desk.run("printf '%032d' 0", Bounds(output_bytes=32)) as ran:
        assert ran.stdout == b"0" * 32


async def test_a_command_without_files_has_an_empty_directory(desk: Desk) -> None:
    async with desk.run("ls -A; touch x; ls", bare=True) as ran:
        assert (ran.stdout, ran.changed) == (b"x\n", {})


async def test_its_environment_is_what_it_was_given_and_no_more(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_VAULT_KEY", "a secret of the server")
    given = {"WORD": "two words\nand a line", "PATH": "/nowhere", "HOME": "/nowhere"}
    async with desk.run("env -0 | tr '\\0' '\\1'; echo $WORD", env=given) as ran:
        said = ran.stdout.decode()
    names = {each.partition("=")[0] for each in said.split("\1")[:-1]}
    assert names <= {"WORD", "PATH", "HOME", "TMPDIR", "LANG", "PWD", "SHLVL", "_", "OLDPWD"}
    assert "two words\nand a line" in said
    assert "/nowhere" not in said


async def test_no_list_of_processes_shows_its_variables(desk: Desk) -> None:
    secret = os.urandom(16).hex()
    seen = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '; echo ${#WORD}"

    async def look() -> bytes:
        while True:
            listed = _command_lines()
            if b"sleep\x000.37\0" in listed:
                return listed
            await asyncio.sleep(0.01)

    looking = asyncio.create_task(look())
    async with desk.run(f"sleep 0.37; {seen}", env={"WORD": secret}) as ran:
        said = ran.stdout.decode()
    assert secret.encode() not in await looking
    assert secret not in said
    assert said.endswith("32\n")


def _command_lines() -> bytes:
    found = b""
    for place in File("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += place.read_bytes()
    return found


async def test_standard_input_is_empty(desk: Desk) -> None:
    assert await desk.said("cat; echo end") == "end\n"


async def test_home_and_tmp_can_be_written_and_do_not_last(desk: Desk) -> None:
    for _ in range(2):
        said = await desk.said('find ~ "$TMPDIR" -type f; echo x > ~/x; cp ~/x "$TMPDIR"')
        assert said == ""


async def test_several_run_at_once_and_see_nothing_of_each_other(desk: Desk) -> None:
    desk.put("a", "0")

    async def one(number: int) -> dict[str, bytes | None]:
        return await desk.left(f"sleep 0.2; ls > list; printf {number} > a")

    done = await asyncio.gather(*(one(number) for number in range(1, 5)))
    assert done == [{"a": b"%d" % number, "list": b"a\nlist\n"} for number in range(1, 5)]


async def test_bytes_are_fetched_once(desk: Desk) -> None:
    desk.put("a", "one")
    desk.put("b", "two", Form.EXECUTABLE)
    for command in ("true", "rm a", "false"):
        await desk.left(command)
    assert len(desk.cupboard.asked) == 2


async def test_what_cannot_be_kept_within_its_bounds_is_refused(desk: Desk) -> None:
    with pytest.raises(Refused):
        async with desk.run("true", Bounds(network=True)):
            raise AssertionError("it ran")


async def test_a_command_that_nobody_waits_for_any_more_is_killed(desk: Desk) -> None:
    desk.put("a", "1")
    asked = asyncio.Event()

    async def fetch(blobs: Collection[Blob]) -> Mapping[Digest, bytes]:
        asked.set()
        return await desk.cupboard.fetch(blobs)

    async def forever() -> None:
        async with desk.sandbox.run(Order("forever", "sleep 1000", desk.files), fetch):
            raise AssertionError("it ended")

    task = asyncio.create_task(forever())
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await desk.said("echo next") == "next\n"
