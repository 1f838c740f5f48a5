"""Write-back of a command's changes: merged, once, and all or nothing."""

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
from carrel.actions.sandbox.command_inputs import CommandInputs, load_inputs
from carrel.core.access import Actor
from carrel.core.errors import WorkspaceTooLarge
from carrel.core.identifiers import Path
from carrel.core.sandbox.write_back import short_id
from carrel.core.store.entry import FileAttributes
from carrel.ports import Ports
from carrel.ports.sandbox import ChangedFile, FileKind

pytestmark = pytest.mark.anyio
MARK = short_id("call")


def changes(deleted: Sequence[str] = (), /, **contents: str) -> CommandOutcome:
    """Changes by keyword; two underscores stand for a slash."""
    contents_by_path = {
        Path(name.replace("__", "/")): (FileKind.FILE, text.encode())
        for name, text in contents.items()
    }
    return CommandOutcome(contents_by_path, frozenset(map(Path, deleted)))


async def commit_back(
    fixture: ToolTenant,
    start: CommandInputs,
    changed: CommandOutcome,
    call: str = "call",
) -> Any:
    result = await write_back.commit_changes(
        fixture.workspace_files(call=call, name=call), start, changed, call, "bash"
    )
    return result.notes


async def write(fixture: ToolTenant, path: str, text: str, author: str = "ben") -> None:
    workspace = structs.replace(
        fixture.workspace_files(), actor=Actor(fixture.owner.tenant, author)
    )
    await workspace_files.write(workspace, Path(path), text.encode())


async def delete(fixture: ToolTenant, path: str) -> None:
    actor = Actor(fixture.owner.tenant, "ben")
    await files.delete(fixture.ports, (fixture.scope(),), Path(path), actor)


async def set_limits(fixture: ToolTenant, **limits: int) -> None:
    policy = await policies.get(fixture.ports, fixture.owner)
    shared = structs.replace(policy.shared_limits, **limits)
    await policies.put(fixture.ports, fixture.owner, structs.replace(policy, shared_limits=shared))


@pytest.fixture
async def fixture(ports: Ports) -> ToolTenant:
    fixture = await create_tool_tenant(ports)
    await write(fixture, "a", "a")
    await write(fixture, "d/x", "x")
    return fixture


async def test_changes_of_different_paths_merge(fixture: ToolTenant) -> None:
    start = await load_inputs(fixture.workspace_files())
    await write(fixture, "b", "theirs")
    assert await commit_back(fixture, start, changes(a="ours")) == ()
    assert await fixture.files() == {"a": b"ours", "b": b"theirs", "d/x": b"x"}


async def test_of_two_changes_of_a_path_the_later_is_head_with_a_warning(
    fixture: ToolTenant,
) -> None:
    start = await load_inputs(fixture.workspace_files())
    await write(fixture, "a", "theirs")
    assert await commit_back(fixture, start, changes(a="ours")) == (
        "[warning: a was also changed by ben at version 2, which stays in its history]",
    )
    assert await fixture.past_contents("a") == [b"ours", b"theirs", b"a"]


async def test_equal_content_creates_no_new_version(fixture: ToolTenant) -> None:
    start = await load_inputs(fixture.workspace_files())
    await write(fixture, "a", "same")
    assert await commit_back(fixture, start, changes(a="same")) == ()
    assert await fixture.past_contents("a") == [b"same", b"a"]


async def test_a_modification_wins_over_a_deletion(fixture: ToolTenant) -> None:
    start = await load_inputs(fixture.workspace_files())
    await write(fixture, "a", "theirs")
    await delete(fixture, "d/x")
    assert await commit_back(fixture, start, changes(["a"], d__x="ours")) == (
        "[warning: a was not deleted: also changed by ben at version 2]",
        "[warning: d/x was also changed by ben at version 2, which stays in its history]",
    )
    assert await fixture.files() == {"a": b"theirs", "d/x": b"ours"}


async def test_a_file_and_a_directory_of_one_name_are_both_kept(fixture: ToolTenant) -> None:
    start = await load_inputs(fixture.workspace_files())
    await delete(fixture, "a")
    await write(fixture, "a/new", "theirs")
    await delete(fixture, "d/x")
    await write(fixture, "d", "theirs")
    assert await commit_back(fixture, start, changes(a="ours", d__x="ours", d__y__z="ours")) == (
        f"[warning: a is kept as a.conflict-{MARK}: also changed by ben at version 1 in a/new]",
        f"[warning: d/x is kept as d.conflict-{MARK}/x: also changed by ben at version 1 in d]",
        f"[warning: d/y/z is kept as d.conflict-{MARK}/y/z: also changed by ben at version 1 in d]",
    )
    assert await fixture.files() == {
        "a/new": b"theirs",
        "d": b"theirs",
        f"a.conflict-{MARK}": b"ours",
        f"d.conflict-{MARK}/x": b"ours",
        f"d.conflict-{MARK}/y/z": b"ours",
    }


async def test_a_repeated_write_back_changes_nothing_and_returns_the_same_warnings(
    fixture: ToolTenant,
) -> None:
    start = await load_inputs(fixture.workspace_files())
    await write(fixture, "a", "theirs")
    warnings = await commit_back(fixture, start, changes(a="ours"))
    await write(fixture, "a", "later")
    assert await commit_back(fixture, start, changes(a="ours")) == warnings
    assert await fixture.past_contents("a") == [b"later", b"ours", b"theirs", b"a"]


async def test_many_warnings_are_summarized(fixture: ToolTenant) -> None:
    start = await load_inputs(fixture.workspace_files())
    names = [f"n{n:02}" for n in range(25)]
    for name in names:
        await write(fixture, name, "theirs")
    warnings = await commit_back(fixture, start, changes(**dict.fromkeys(names, "ours")))
    assert len(warnings) == 21
    assert warnings[-1] == "[warning: the same applies to 5 other paths]"


async def test_a_file_over_the_limit_is_named_and_nothing_is_stored(fixture: ToolTenant) -> None:
    await set_limits(fixture, max_file_bytes=10)
    start = await load_inputs(fixture.workspace_files())
    with pytest.raises(WorkspaceTooLarge, match="a file may have 10 bytes; larger: huge"):
        await commit_back(fixture, start, changes(["d/x"], a="ours", huge="x" * 11))
    assert await fixture.files() == {"a": b"a", "d/x": b"x"}
    assert await commit_back(fixture, start, changes(a="ours")) == ()


async def test_changes_discarded_by_the_provider_are_refused(fixture: ToolTenant) -> None:
    start = await load_inputs(fixture.workspace_files())
    with pytest.raises(WorkspaceTooLarge, match="more than could be looked at"):
        await commit_back(
            fixture, start, CommandOutcome(discard_reason="more than could be looked at")
        )


async def test_a_write_back_beyond_the_file_limit_stores_nothing(fixture: ToolTenant) -> None:
    await set_limits(fixture, max_files=2)
    start = await load_inputs(fixture.workspace_files())
    with pytest.raises(WorkspaceTooLarge, match="may have 2 files; changed paths: a, b"):
        await commit_back(fixture, start, changes(a="ours", b="ours"))
    assert await fixture.files() == {"a": b"a", "d/x": b"x"}


async def test_a_write_back_beyond_the_byte_limit_reads_no_content(fixture: ToolTenant) -> None:
    await set_limits(fixture, max_bytes=20)
    start = await load_inputs(fixture.workspace_files())

    class UnreadableChanges(CommandOutcome):
        async def content(self, path: Path) -> bytes:
            raise AssertionError(f"{path} was read")

    large = {Path(f"n{n}"): (FileKind.FILE, b"x" * 9) for n in range(3)}
    with pytest.raises(WorkspaceTooLarge, match="may have 20 bytes; changed paths: n0, n1, n2"):
        await commit_back(fixture, start, UnreadableChanges(large))


async def test_a_replacement_beyond_the_limit_stores_nothing(fixture: ToolTenant) -> None:
    await set_limits(fixture, max_files=2)
    start = await load_inputs(fixture.workspace_files())
    with pytest.raises(WorkspaceTooLarge):
        await commit_back(fixture, start, changes(["a"], a__b="1", a__c="2", e="3"))
    assert await fixture.files() == {"a": b"a", "d/x": b"x"}


class RacingTrees:
    """Trees where an action runs once, right after a full listing was read."""

    def __init__(self, trees: Any, action: Callable[[], Awaitable[None]]) -> None:
        self._trees, self._actions = trees, [action]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trees, name)

    async def read(self, layers: Any, paths: Any = None, **options: Any) -> Any:
        trees = await self._trees.read(layers, paths, **options)
        if paths is None and self._actions:
            await self._actions.pop()()
        return trees


async def write_back_during(
    fixture: ToolTenant, changed: CommandOutcome, action: Callable[[], Awaitable[None]]
) -> Sequence[str]:
    """Write back while an action runs between the read and the commit."""
    workspace = fixture.workspace_files()
    start = await load_inputs(workspace)
    ports = replace(fixture.ports, trees=RacingTrees(fixture.ports.trees, action))
    result = await write_back.commit_changes(
        structs.replace(workspace, ports=ports), start, changed, "call", "bash"
    )
    return result.notes


async def test_a_write_back_is_decided_again_after_a_concurrent_change(fixture: ToolTenant) -> None:
    warnings = await write_back_during(
        fixture, changes(["a"]), lambda: write(fixture, "a", "theirs")
    )
    assert warnings == ("[warning: a was not deleted: also changed by ben at version 2]",)
    assert (await fixture.files())["a"] == b"theirs"


async def test_a_new_file_is_kept_beside_a_concurrently_created_directory(
    fixture: ToolTenant,
) -> None:
    warnings = await write_back_during(
        fixture, changes(new="ours"), lambda: write(fixture, "new/x", "theirs")
    )
    assert len(warnings) == 1
    stored = await fixture.files()
    assert (stored["new/x"], stored[f"new.conflict-{MARK}"]) == (b"theirs", b"ours")


async def test_a_file_replacing_a_directory_is_kept_beside_a_concurrent_change(
    fixture: ToolTenant,
) -> None:
    changed = changes(["d/x"], d="ours", a="mine")
    warnings = await write_back_during(fixture, changed, lambda: write(fixture, "d/y", "theirs"))
    assert warnings == (
        f"[warning: d is kept as d.conflict-{MARK}: also changed by ben at version 1 in d/y]",
    )
    assert await fixture.files() == {
        "a": b"mine",
        "d/y": b"theirs",
        f"d.conflict-{MARK}": b"ours",
    }


async def test_a_secret_added_during_the_write_back_is_redacted(fixture: ToolTenant) -> None:
    async def add_secret() -> None:
        await secrets.put(fixture.ports, fixture.owner, "door", "sesame-open-now")

    warnings = await write_back_during(fixture, changes(a="say sesame-open-now"), add_secret)
    assert warnings == ("[redacted in a: door]",)
    assert (await fixture.files())["a"] == b"say [REDACTED:door]"


async def test_redaction_never_grows_a_file_past_its_limit(fixture: ToolTenant) -> None:
    await secrets.put(fixture.ports, fixture.owner, "a-rather-long-name", "12345678")
    await set_limits(fixture, max_file_bytes=100)
    start = await load_inputs(fixture.workspace_files())
    with pytest.raises(WorkspaceTooLarge):
        await commit_back(fixture, start, changes(a="12345678" * 12))
    assert (await fixture.files())["a"] == b"a"


async def test_concurrent_write_backs_of_one_call_commit_once(fixture: ToolTenant) -> None:
    start = await load_inputs(fixture.workspace_files())
    await asyncio.gather(
        *(commit_back(fixture, start, changes(a="ours")) for _ in range(3)), return_exceptions=True
    )
    assert await fixture.past_contents("a") == [b"ours", b"a"]


def touched(start: CommandInputs, name: str, **attributes: Any) -> CommandOutcome:
    """A file whose content is the one that the command was given."""
    input_file = start.files[Path(name)]
    changed = ChangedFile(input_file.kind, input_file.blob.size, blob=input_file.blob, **attributes)
    outcome = CommandOutcome()
    outcome.changed = {Path(name): changed}
    return outcome


async def attributes_of(fixture: ToolTenant, path: str) -> FileAttributes | None:
    [tree] = await fixture.ports.trees.read([fixture.scope()])
    entry = tree.entry(Path(path))
    return entry.attributes if entry else None


async def test_a_touched_file_keeps_a_concurrent_content(fixture: ToolTenant) -> None:
    start = await load_inputs(fixture.workspace_files())
    await write(fixture, "a", "theirs")
    assert await commit_back(fixture, start, touched(start, "a", mtime_ns=5)) == ()
    assert await fixture.past_contents("a") == [b"theirs", b"a"], "no version for the time"
    outcome = touched(start, "a", mtime_ns=5, mode=0o600)
    assert await commit_back(fixture, start, outcome, "other") == ()
    assert await fixture.past_contents("a") == [b"theirs", b"theirs", b"a"]
    assert await attributes_of(fixture, "a") == FileAttributes(0o600)


async def test_a_file_touched_and_deleted_concurrently_stays_deleted(fixture: ToolTenant) -> None:
    start = await load_inputs(fixture.workspace_files())
    await delete(fixture, "a")
    assert await commit_back(fixture, start, touched(start, "a", mtime_ns=5)) == ()
    assert await fixture.files() == {"d/x": b"x"}


async def test_a_concurrent_write_is_newer_than_files_of_the_command(fixture: ToolTenant) -> None:
    start = await load_inputs(fixture.workspace_files())
    await write(fixture, "a", "theirs")
    outcome, later = changes(built="from the old a"), 2**62
    outcome.changed = {Path("built"): ChangedFile(FileKind.FILE, 14, mtime_ns=later)}
    await commit_back(fixture, start, outcome)
    files = (await load_inputs(fixture.workspace_files())).files
    built, source = files[Path("built")].mtime_ns, files[Path("a")].mtime_ns
    assert built is not None and source is not None and built < source


async def test_directories_merge_with_concurrent_changes(fixture: ToolTenant) -> None:
    start = await load_inputs(fixture.workspace_files())
    await write(fixture, "new", "a file")
    names = ("new", "new/below", "a", "empty", "d/x/deep")
    directories = {Path(name): FileAttributes(None, 7) for name in names}
    outcome = CommandOutcome(deleted=frozenset({Path("a")}), directories=directories)
    await commit_back(fixture, start, outcome)
    [tree] = await fixture.ports.trees.read([fixture.scope()])
    assert {path.text for path in tree.directories} == {"a", "empty"}
    assert await fixture.files() == {"d/x": b"x", "new": b"a file"}


async def test_directories_have_a_limit_of_their_own(fixture: ToolTenant) -> None:
    await set_limits(fixture, max_files=3)
    start = await load_inputs(fixture.workspace_files())
    directories = {Path(f"e{n}"): FileAttributes(None, 7) for n in range(3)}
    await commit_back(fixture, start, CommandOutcome(directories=directories))
    await write(fixture, "b", "a third file")
    more = CommandOutcome(directories={Path("e9"): FileAttributes(None, 7)})
    with pytest.raises(WorkspaceTooLarge, match="3 empty directories"):
        await commit_back(fixture, start, more, "other")
