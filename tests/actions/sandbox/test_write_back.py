"""What a command changed comes back: beside others, once, whole or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs
from tests.support.tool_fixture import ToolTenant, create_tool_tenant
from tests.support.unsandboxed_provider import CommandOutcome

from carrel.actions.accounts import secrets
from carrel.actions.files import files
from carrel.actions.policy import policies
from carrel.actions.sandbox import workspace_files, write_back
from carrel.core.access import Actor
from carrel.core.errors import WorkspaceTooLarge
from carrel.core.identifiers import Path
from carrel.core.sandbox.write_back import short_id
from carrel.ports import Ports
from carrel.ports.sandbox import FileKind

pytestmark = pytest.mark.anyio
MARK = short_id("call")


def left(deleted: Sequence[str] = (), /, **contents: str) -> CommandOutcome:
    """Names of Python have no slash: two underscores stand for one."""
    held = {
        Path(name.replace("__", "/")): (FileKind.FILE, text.encode())
        for name, text in contents.items()
    }
    return CommandOutcome(held, frozenset(map(Path, deleted)))


async def back(
    shop: ToolTenant, start: write_back.CommandInputs, left: CommandOutcome, call: str = "call"
) -> Any:
    return await write_back.commit_changes(
        shop.workspace_files(call=call, name=call), start, left, call, "bash"
    )


async def write(shop: ToolTenant, path: str, text: str, author: str = "ben") -> None:
    bench = structs.replace(shop.workspace_files(), actor=Actor(shop.owner.tenant, author))
    await workspace_files.write(bench, Path(path), text.encode())


async def delete(shop: ToolTenant, path: str) -> None:
    actor = Actor(shop.owner.tenant, "ben")
    await files.delete(shop.ports, (shop.scope(),), Path(path), actor)


async def limited(shop: ToolTenant, **limits: int) -> None:
    form = await policies.get(shop.ports, shop.owner)
    shared = structs.replace(form.shared_limits, **limits)
    await policies.put(shop.ports, shop.owner, structs.replace(form, shared_limits=shared))


@pytest.fixture
async def shop(ports: Ports) -> ToolTenant:
    made = await create_tool_tenant(ports)
    await write(made, "a", "a")
    await write(made, "d/x", "x")
    return made


async def test_different_paths_merge(shop: ToolTenant) -> None:
    start = await write_back.load_inputs(shop.workspace_files())
    await write(shop, "b", "theirs")
    assert await back(shop, start, left(a="ours")) == ()
    assert await shop.files() == {"a": b"ours", "b": b"theirs", "d/x": b"x"}


async def test_on_the_same_path_the_later_is_head_and_the_other_is_told(shop: ToolTenant) -> None:
    start = await write_back.load_inputs(shop.workspace_files())
    await write(shop, "a", "theirs")
    assert await back(shop, start, left(a="ours")) == (
        "[warning: a was also changed by ben at version 2, which stays in its history]",
    )
    assert await shop.past_contents("a") == [b"ours", b"theirs", b"a"]


async def test_the_same_content_is_nothing_new(shop: ToolTenant) -> None:
    start = await write_back.load_inputs(shop.workspace_files())
    await write(shop, "a", "same")
    assert await back(shop, start, left(a="same")) == ()
    assert await shop.past_contents("a") == [b"same", b"a"]


async def test_a_modification_beats_a_deletion(shop: ToolTenant) -> None:
    start = await write_back.load_inputs(shop.workspace_files())
    await write(shop, "a", "theirs")
    await delete(shop, "d/x")
    assert await back(shop, start, left(["a"], d__x="ours")) == (
        "[warning: a was not deleted: also changed by ben at version 2]",
        "[warning: d/x was also changed by ben at version 2, which stays in its history]",
    )
    assert await shop.files() == {"a": b"theirs", "d/x": b"ours"}


async def test_a_file_and_a_directory_of_one_name_are_both_kept(shop: ToolTenant) -> None:
    start = await write_back.load_inputs(shop.workspace_files())
    await delete(shop, "a")
    await write(shop, "a/new", "theirs")
    await delete(shop, "d/x")
    await write(shop, "d", "theirs")
    assert await back(shop, start, left(a="ours", d__x="ours", d__y__z="ours")) == (
        f"[warning: a is kept as a.conflict-{MARK}: also changed by ben at version 1 in a/new]",
        f"[warning: d/x is kept as d.conflict-{MARK}/x: also changed by ben at version 1 in d]",
        f"[warning: d/y/z is kept as d.conflict-{MARK}/y/z: also changed by ben at version 1 in d]",
    )
    assert await shop.files() == {
        "a/new": b"theirs",
        "d": b"theirs",
        f"a.conflict-{MARK}": b"ours",
        f"d.conflict-{MARK}/x": b"ours",
        f"d.conflict-{MARK}/y/z": b"ours",
    }


async def test_a_call_that_comes_back_again_does_nothing_and_says_the_same(
    shop: ToolTenant,
) -> None:
    start = await write_back.load_inputs(shop.workspace_files())
    await write(shop, "a", "theirs")
    told = await back(shop, start, left(a="ours"))
    await write(shop, "a", "later")
    assert await back(shop, start, left(a="ours")) == told
    assert await shop.past_contents("a") == [b"later", b"ours", b"theirs", b"a"]


async def test_many_warnings_are_told_in_few_lines(shop: ToolTenant) -> None:
    start = await write_back.load_inputs(shop.workspace_files())
    names = [f"n{n:02}" for n in range(25)]
    for name in names:
        await write(shop, name, "theirs")
    told = await back(shop, start, left(**dict.fromkeys(names, "ours")))
    assert len(told) == 21
    assert told[-1] == "[warning: the same applies to 5 other paths]"


async def test_a_file_that_is_too_large_is_named_and_nothing_is_kept(shop: ToolTenant) -> None:
    await limited(shop, max_file_bytes=10)
    start = await write_back.load_inputs(shop.workspace_files())
    with pytest.raises(WorkspaceTooLarge, match="a file may have 10 bytes; larger: huge"):
        await back(shop, start, left(["d/x"], a="ours", huge="x" * 11))
    assert await shop.files() == {"a": b"a", "d/x": b"x"}
    assert await back(shop, start, left(a="ours")) == ()


async def test_what_a_provider_found_too_much_is_not_kept(shop: ToolTenant) -> None:
    start = await write_back.load_inputs(shop.workspace_files())
    with pytest.raises(WorkspaceTooLarge, match="more than could be looked at"):
        await back(shop, start, CommandOutcome(discard_reason="more than could be looked at"))


async def test_a_workspace_that_would_be_too_full_is_left_as_it_is(shop: ToolTenant) -> None:
    await limited(shop, max_files=2)
    start = await write_back.load_inputs(shop.workspace_files())
    with pytest.raises(WorkspaceTooLarge, match="may have 2 files; changed paths: a, b"):
        await back(shop, start, left(a="ours", b="ours"))
    assert await shop.files() == {"a": b"a", "d/x": b"x"}


async def test_of_what_is_too_much_in_all_nothing_is_even_read(shop: ToolTenant) -> None:
    await limited(shop, max_bytes=20)
    start = await write_back.load_inputs(shop.workspace_files())

    class Unread(CommandOutcome):
        async def content(self, path: Path) -> bytes:
            raise AssertionError(f"{path} was read")

    held = {Path(f"n{n}"): (FileKind.FILE, b"x" * 9) for n in range(3)}
    with pytest.raises(WorkspaceTooLarge, match="may have 20 bytes; changed paths: n0, n1, n2"):
        await back(shop, start, Unread(held))


async def test_a_swap_that_would_be_too_much_is_left_as_a_whole(shop: ToolTenant) -> None:
    await limited(shop, max_files=2)
    start = await write_back.load_inputs(shop.workspace_files())
    with pytest.raises(WorkspaceTooLarge):
        await back(shop, start, left(["a"], a__b="1", a__c="2", e="3"))
    assert await shop.files() == {"a": b"a", "d/x": b"x"}


class Meanwhile:
    """Trees on which somebody does something right after a whole listing was read, once."""

    def __init__(self, trees: Any, entry: Callable[[], Awaitable[None]]) -> None:
        self._trees, self._deeds = trees, [entry]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trees, name)

    async def read(self, layers: Any, paths: Any = None, **more: Any) -> Any:
        found = await self._trees.read(layers, paths, **more)
        if paths is None and self._deeds:
            await self._deeds.pop()()
        return found


async def interrupted(
    shop: ToolTenant, left: CommandOutcome, entry: Callable[[], Awaitable[None]]
) -> Sequence[str]:
    """Bring it back while somebody does something between reading and committing."""
    bench = shop.workspace_files()
    start = await write_back.load_inputs(bench)
    ports = replace(shop.ports, trees=Meanwhile(shop.ports.trees, entry))
    told: Sequence[str] = await write_back.commit_changes(
        structs.replace(bench, ports=ports), start, left, "call", "bash"
    )
    return told


async def test_it_is_decided_again_where_somebody_was_quicker(shop: ToolTenant) -> None:
    told = await interrupted(shop, left(["a"]), lambda: write(shop, "a", "theirs"))
    assert told == ("[warning: a was not deleted: also changed by ben at version 2]",)
    assert (await shop.files())["a"] == b"theirs"


async def test_a_new_file_where_somebody_has_just_made_a_directory_is_kept_beside_it(
    shop: ToolTenant,
) -> None:
    told = await interrupted(shop, left(new="ours"), lambda: write(shop, "new/x", "theirs"))
    assert len(told) == 1
    files = await shop.files()
    assert (files["new/x"], files[f"new.conflict-{MARK}"]) == (b"theirs", b"ours")


async def test_so_is_one_that_takes_the_place_of_a_directory(shop: ToolTenant) -> None:
    entry = left(["d/x"], d="ours", a="mine")
    told = await interrupted(shop, entry, lambda: write(shop, "d/y", "theirs"))
    assert told == (
        f"[warning: d is kept as d.conflict-{MARK}: also changed by ben at version 1 in d/y]",
    )
    assert await shop.files() == {
        "a": b"mine",
        "d/y": b"theirs",
        f"d.conflict-{MARK}": b"ours",
    }


async def test_a_secret_that_is_put_in_the_vault_meanwhile_is_not_kept(shop: ToolTenant) -> None:
    async def entry() -> None:
        await secrets.put(shop.ports, shop.owner, "door", "sesame-open-now")

    told = await interrupted(shop, left(a="say sesame-open-now"), entry)
    assert told == ("[redacted in a: door]",)
    assert (await shop.files())["a"] == b"say [REDACTED:door]"


async def test_of_two_that_bring_back_one_call_one_does_it(shop: ToolTenant) -> None:
    start = await write_back.load_inputs(shop.workspace_files())
    await asyncio.gather(
        *(back(shop, start, left(a="ours")) for _ in range(3)), return_exceptions=True
    )
    assert await shop.past_contents("a") == [b"ours", b"a"]
