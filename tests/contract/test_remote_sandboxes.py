"""What every provider elsewhere must do, each beside a stand-in of its own service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace
from tests.contract.elsewhere import PROVIDERS, Contents, Provider

from carrel.core.names import Path
from carrel.ports.sandboxes import Form, Order, Ran, Refused

pytestmark = pytest.mark.anyio


@pytest.fixture(params=PROVIDERS, scope="module")
def provider(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Provider]:
    with PROVIDERS[request.param](tmp_path_factory.mktemp("provider")) as opened:
        yield opened


def changes(ran: Ran) -> dict[str, Form]:
    return {str(path): changed.form for path, changed in ran.changed.items()}


async def test_what_it_says_and_how_it_ended_is_told(provider: Provider) -> None:
    async with provider.ran("echo out; echo err >&2; exit 7") as ran:
        assert (ran.stdout, ran.stderr, ran.exit_code) == (b"out\n", b"err\n", 7)
        assert not ran.timed_out
        assert ran.milliseconds >= 0
        assert (ran.changed, ran.deleted, ran.unkept, ran.notes) == ({}, frozenset(), None, ())


async def test_it_finds_its_files_as_they_are(provider: Provider) -> None:
    files = {
        "a.txt": b"text",
        "deep/er/run": (Form.EXECUTABLE, b"#!/bin/sh\necho ran\n"),
        "link": (Form.LINK, b"a.txt"),
        "bytes": bytes(range(256)),
        "späße/ -n.md": b"odd",
    }
    command = "cat a.txt; deep/er/run; readlink link; test ! -x a.txt && cat späße/*; wc -c <bytes"

    async with provider.ran(command, files) as ran:
        assert ran.stdout == b"textran\na.txt\nodd256\n"
        assert (ran.changed, ran.deleted) == ({}, frozenset())


async def test_what_it_makes_changes_and_deletes_comes_back(provider: Provider) -> None:
    files = {"kept": b"1", "touched": b"2", "changed": b"3", "gone": b"4", "mode": b"5"}
    command = """
        touch touched; printf three >changed; rm gone; chmod +x mode
        mkdir -p new/place; printf '\\000\\377' >new/place/bytes; : >empty; mkdir nothing
        ln -s /etc/passwd link; ln changed twin
    """

    async with provider.ran(command, files) as ran:
        assert changes(ran) == {
            "changed": Form.FILE,
            "mode": Form.EXECUTABLE,
            "new/place/bytes": Form.FILE,
            "empty": Form.FILE,
            "link": Form.LINK,
            "twin": Form.FILE,
        }
        assert ran.deleted == {Path("gone")}
        said = {str(path): await ran.content(path) for path in ran.changed}

    assert said == {
        "changed": b"three",
        "mode": b"5",
        "new/place/bytes": b"\x00\xff",
        "empty": b"",
        "link": b"/etc/passwd",
        "twin": b"three",
    }


async def test_a_file_may_become_a_directory_and_a_directory_a_file(provider: Provider) -> None:
    files = {"file": b"1", "room/inner": b"2"}

    async with provider.ran("rm file; mkdir file; : >file/x; rm -r room; : >room", files) as ran:
        assert changes(ran) == {"file/x": Form.FILE, "room": Form.FILE}
        assert ran.deleted == {Path("file"), Path("room/inner")}


async def test_a_large_file_comes_back_to_the_byte(provider: Provider) -> None:
    whole = bytes(range(256)) * 4096

    async with provider.ran("cat in in >out", {"in": whole}) as ran:
        assert await ran.content(Path("out")) == whole + whole


async def test_what_is_no_file_is_named_and_not_kept(provider: Provider) -> None:
    command = r"""mkfifo pipe; : >'a\b'; : >$'new\nline'; : >$'\377'; : >good"""

    async with provider.ran(command) as ran:
        assert changes(ran) == {"good": Form.FILE}
        told = "\n".join(ran.notes)
        for part in ("pipe", "backslash", "control character", "not valid Unicode"):
            assert part in told


async def test_names_come_back_in_their_composed_form(provider: Provider) -> None:
    async with provider.ran(r"printf x >$'u\xcc\x88'") as ran:
        assert await ran.content(Path("ü")) == b"x"


async def test_what_nobody_may_read_is_read(provider: Provider) -> None:
    async with provider.ran("mkdir d; echo 1 >d/f; chmod 0 d/f d") as ran:
        assert await ran.content(Path("d/f")) == b"1\n"


async def test_its_time_is_bounded_and_its_work_until_then_stays(provider: Provider) -> None:
    bounds = replace(provider.bounds, seconds=1)

    async with provider.ran("echo 1 >half; echo said; sleep 60", bounds=bounds) as ran:
        assert (ran.timed_out, ran.exit_code) == (True, None)
        assert ran.stdout == b"said\n"
        assert await ran.content(Path("half")) == b"1\n"


async def test_it_is_asked_to_end_before_it_is_made_to(provider: Provider) -> None:
    bounds = replace(provider.bounds, seconds=1)
    polite = "trap 'echo bye; exit 3' TERM; echo begun; sleep 60 & wait"

    async with provider.ran(polite, bounds=bounds) as ran:
        assert (ran.timed_out, ran.exit_code, ran.stdout) == (True, None, b"begun\nbye\n")


async def test_a_kill_before_its_time_is_no_time_out(provider: Provider) -> None:
    async with provider.ran("kill -9 $$") as ran:
        assert (ran.timed_out, ran.exit_code) == (False, 137)


async def test_each_output_is_bounded_for_itself(provider: Provider) -> None:
    bounds = replace(provider.bounds, output_bytes=1000)
    flood = "head -c 20000000 /dev/zero | tr '\\0' 'x'; echo >done; printf 'ä%.0s' {1..600} >&2"

    async with provider.ran(flood, bounds=bounds) as ran:
        mark = b"\n[output truncated]"
        assert ran.stdout == b"x" * (1000 - len(mark)) + mark
        assert ran.stderr == "ä".encode() * 490 + mark
        assert len(ran.stderr) <= 1000
        assert (ran.exit_code, changes(ran)) == (0, {"done": Form.FILE})


async def test_an_output_of_just_its_bound_is_whole(provider: Provider) -> None:
    async with provider.ran("printf 12345", bounds=replace(provider.bounds, output_bytes=5)) as ran:
        assert ran.stdout == b"12345"


async def test_it_sees_its_own_variables_and_no_others(provider: Provider) -> None:
    env = {"WORD": "a 'b' \"c\" $d\n", "PATH": "/evil", "COMMAND": "SECONDS"}

    async with provider.ran('env -0; printf %s "$WORD"', env=env) as ran:
        *said, word = ran.stdout.decode().split("\0")
        seen = dict(each.split("=", 1) for each in said)

    assert word == env["WORD"]
    assert seen.keys() - {"PWD", "SHLVL", "_"} == {
        *("WORD", "COMMAND", "PATH", "HOME", "TMPDIR", "LANG"),
    }
    assert "/evil" not in seen["PATH"]


async def test_a_command_without_a_workspace_leaves_nothing_to_look_at(provider: Provider) -> None:
    order = Order("run_1", "pwd >f; ls", None, provider.bounds)

    async with provider.sandbox.run(order, Contents({}).fetch) as ran:
        assert (ran.stdout, ran.exit_code) == (b"f\n", 0)
        assert (ran.changed, ran.deleted) == ({}, frozenset())


async def test_nothing_is_left_of_it(provider: Provider) -> None:
    async with provider.ran("(setsid sleep 600 &) ; echo said") as ran:
        assert ran.stdout == b"said\n"

    assert provider.service.alive == []


async def until(what: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not what():  # noqa: ASYNC110 - it happens in another thread
            await asyncio.sleep(0.01)


async def test_nothing_is_left_where_it_is_cancelled(provider: Provider) -> None:
    seconds = 60 if provider.cancels else 1

    async def forever() -> None:
        async with provider.ran("sleep 600", bounds=replace(provider.bounds, seconds=seconds)):
            pass

    task = asyncio.create_task(forever())
    await until(lambda: provider.service.alive)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    if not provider.cancels:
        await until(lambda: not provider.service.alive)

    assert provider.service.alive == []


async def test_more_than_its_disk_is_not_kept_at_all(provider: Provider) -> None:
    bounds = replace(provider.bounds, disk_mb=1)

    async with provider.ran(
        "for n in 1 2 3; do head -c 500000 /dev/zero >$n; done", bounds=bounds
    ) as ran:
        assert (ran.changed, ran.exit_code) == ({}, 0)
        assert ran.unkept and "1500000 bytes" in ran.unkept

    async with provider.ran("head -c 3000000 /dev/zero >one", bounds=bounds) as ran:
        assert ran.exit_code != 0, "no file grows beyond the bound"


async def test_it_keeps_no_instance(provider: Provider) -> None:
    assert provider.sandbox.refuses(provider.bounds) is None
    assert "between commands" in (provider.sandbox.refuses(provider.bounds, persistent=True) or "")
    with pytest.raises(Refused, match="between commands"):
        async with provider.ran("true", reservation="desk"):
            pass


async def test_a_command_that_no_kernel_would_take_is_refused(provider: Provider) -> None:
    with pytest.raises(Refused, match="98304"):
        async with provider.ran("#" * 100_000):
            pass
    assert provider.service.alive == []


async def test_an_option_that_it_does_not_know_is_refused(provider: Provider) -> None:
    with pytest.raises(Refused, match="no option 'hostPath'"):
        async with provider.ran("true", options={"hostPath": "/"}):
            pass
    assert provider.service.alive == []


async def test_several_commands_run_at_once(provider: Provider) -> None:
    async def one(number: int) -> bytes:
        contents = Contents({"in": b"%d" % number})
        order = Order(f"run_{number}", "cat in >out", contents.placed, provider.bounds)
        async with provider.sandbox.run(order, contents.fetch) as ran:
            return await ran.content(Path("out"))

    assert await asyncio.gather(*map(one, range(3))) == [b"0", b"1", b"2"]
