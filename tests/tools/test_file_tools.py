"""The file tools: on the store, to the letter, and each of two that meet is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path as File

import msgspec
import pytest
from msgspec import structs
from tests.support.stores import advance_clock, open_ports
from tests.support.tenants import race
from tests.support.tool_fixture import (
    BOX,
    DOCS,
    EDIT_BOX,
    NOTES,
    TOOLS,
    ToolTenant,
    create_tool_tenant,
)

from carrel.actions.accounts import secrets
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.sandbox import tool_access
from carrel.core.agents.config import config_from_stored
from carrel.core.errors import Conflict, Forbidden, NotFound, Refusal, WorkspaceTooLarge
from carrel.core.identifiers import Path
from carrel.core.sandbox.tool_access import ToolAccess
from carrel.ports import Ports

pytestmark = pytest.mark.anyio
GONE = "Invalid path: directory traversal not allowed"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def ports(tmp_path: File) -> AsyncIterator[Ports]:
    async with open_ports(tmp_path) as opened:
        yield opened


@pytest.fixture
async def shop(ports: Ports) -> ToolTenant:
    return await create_tool_tenant(ports)


async def put(shop: ToolTenant, path: str, content: bytes, type: str = "text/plain") -> None:
    stack, intent = (shop.scope(),), WriteOptions(type=type)
    await files.put(shop.ports, stack, Path(path), content, shop.owner, intent)


async def refused(shop: ToolTenant, tool: str, /, **given: object) -> str:
    with pytest.raises(Refusal) as problem:
        await shop.call(tool, **given)
    return str(problem.value)


async def test_a_file_is_written_read_and_edited(shop: ToolTenant) -> None:
    assert await shop.call("write", file_path="/a//./b.txt", content="é\nzwei\n") == (
        "Wrote a/b.txt (8 bytes)"
    )
    assert await shop.call("read", file_path="a/b.txt") == "     1\té\n     2\tzwei\n"
    said = await shop.call("edit", file_path="a/b.txt", old_string="zwei", new_string="$& \\1")
    assert said == "Edited a/b.txt (1 replacement)"
    assert await shop.files() == {"a/b.txt": "é\n$& \\1\n".encode()}
    [newest, oldest] = await shop.history("a/b.txt")
    assert (newest.author, newest.reason) == (shop.owner.name, "edit a/b.txt")
    assert oldest.reason == "write a/b.txt"


async def test_reading_begins_and_ends_where_it_is_told_to(shop: ToolTenant) -> None:
    await put(shop, "n", b"".join(b"%d\n" % n for n in range(1, 2102)))
    assert await shop.call("read", file_path="n", offset=2101) == "  2101\t2101\n"
    assert await shop.call("read", file_path="n", offset=9, limit=1) == "     9\t9\n"
    assert await shop.call("read", file_path="n", offset=-1, limit=0) == (
        "".join(f"{n:6}\t{n}\n" for n in range(1, 2001))
    )
    assert await shop.call("read", file_path="n", offset=5000) == ""


@pytest.mark.parametrize("path", ["../a", "a/../../b", "a/..", "/.."])
async def test_no_path_leads_out(shop: ToolTenant, path: str) -> None:
    assert await refused(shop, "read", file_path=path) == GONE
    assert await refused(shop, "write", file_path=path, content="") == GONE
    assert await refused(shop, "glob", pattern="*", path=path) == GONE
    assert await refused(shop, "grep", pattern="a", path=path) == GONE


async def test_what_is_wrong_is_told_in_the_order_of_the_rules(shop: ToolTenant) -> None:
    must = "file_path must reference a file"
    assert await refused(shop, "write", file_path=" / ", content="x") == must
    assert await refused(shop, "edit", file_path=".", old_string="", new_string="") == must
    same = {"old_string": "a", "new_string": "a"}
    empty = {"old_string": "", "new_string": ""}
    assert await refused(shop, "edit", file_path="a", **empty) == "old_string must not be empty"
    assert await refused(shop, "edit", file_path="a", **same) == (
        "old_string and new_string are identical"
    )
    other = {"old_string": "a", "new_string": "b"}
    assert await refused(shop, "edit", file_path="a", **other) == "file not found: a"
    await put(shop, "a", b"xx")
    assert await refused(shop, "edit", file_path="a", **other) == "old_string not found in a"
    await put(shop, "a", b"aaaaa")
    twice = {"old_string": "aa", "new_string": "b"}
    assert await refused(shop, "edit", file_path="a", **twice) == (
        "old_string is not unique (2 matches); add context or set replace_all"
    )
    said = await shop.call("edit", file_path="a", replace_all=True, **twice)
    assert (said, await shop.files()) == ("Edited a (2 replacements)", {"a": b"bba"})
    assert await refused(shop, "glob", pattern="  ") == "pattern is required"
    assert await refused(shop, "grep", pattern="") == "pattern is required"
    assert await refused(shop, "read", file_path="b", workspace="none") == "unknown workspace none"
    assert await refused(shop, "read", file_path="nowhere") == "file not found: nowhere"
    await put(shop, "d/f", b"")
    assert await refused(shop, "read", file_path="d") == "file not found: d"


@pytest.mark.parametrize("tool", ["write", "edit", "grep", "bash"])
async def test_a_workspace_without_a_sandbox_is_read_only_and_nobody_is_asked(
    shop: ToolTenant, tool: str
) -> None:
    given = {
        "write": {"file_path": "a", "content": "x"},
        "edit": {"file_path": "a", "old_string": "x", "new_string": "y"},
        "grep": {"pattern": "x"},
        "bash": {"command": "echo x > a"},
    }[tool]
    with pytest.raises(Forbidden, match=r"\Aworkspace is read-only\Z"):
        await shop.gate(tool, workspace="docs", **given)
    assert await shop.files(DOCS) == {}
    assert not shop.runner.orders
    assert await shop.call("glob", pattern="*", workspace="docs") == "No files found"


async def test_who_is_asked_is_told_by_the_sandbox_that_would_be_used(ports: Ports) -> None:
    attached = [
        {"name": "notes", "workspaceId": NOTES},
        {"name": "docs", "workspaceId": DOCS, "sandbox": EDIT_BOX},
    ]
    shop = await create_tool_tenant(ports, {"sandbox": BOX, "workspaces": attached}, mode="ask")
    write = {"file_path": "a", "content": "x"}
    gate = await shop.gate("write", **write)
    assert (gate.requires_approval, gate.workspace, gate.sandbox, gate.sandbox_revision) == (
        True,
        NOTES,
        BOX,
        1,
    )
    gate = await shop.gate("write", **write, workspace="docs")
    assert (gate.requires_approval, gate.workspace, gate.sandbox) == (False, DOCS, EDIT_BOX)
    assert (await shop.gate("bash", command="true", workspace="docs")).requires_approval
    assert not (await shop.gate("read", file_path="a")).requires_approval
    assert not (await shop.gate("grep", pattern="a")).requires_approval


async def test_bytes_that_are_no_text_are_never_corrupted(shop: ToolTenant) -> None:
    await put(shop, "latin", b"caf\xe9 and \xff\r\n")
    await shop.call("edit", file_path="latin", old_string="and", new_string="und")
    assert await shop.files() == {"latin": b"caf\xe9 und \xff\r\n"}
    assert await shop.type_of("latin") == "application/octet-stream"
    await put(shop, "picture", b"\x89PNG\0\1\2", "image/png")
    assert await shop.call("read", file_path="picture") == (
        "picture is a binary file (image/png, 7 bytes)"
    )


async def test_a_link_is_told_and_never_followed(shop: ToolTenant) -> None:
    await put(shop, "secret", b"gold")
    await put(shop, "link", b"secret", "inode/symlink")
    told = "link is a link to secret; links are not followed"
    assert await refused(shop, "read", file_path="link") == told
    change = {"old_string": "secret", "new_string": "x"}
    assert await refused(shop, "edit", file_path="link", **change) == told
    assert await refused(shop, "grep", pattern="gold", path="link") == told
    assert await shop.call("grep", pattern="gold|secret") == "secret\n"
    assert await shop.call("glob", pattern="*") == "secret\n"
    await shop.call("write", file_path="link", content="plain now")
    assert await shop.files() == {"secret": b"gold", "link": b"plain now"}
    assert await shop.type_of("link") == "text/plain"


async def test_what_can_be_run_stays_so(shop: ToolTenant) -> None:
    await put(shop, "go.sh", b"echo 1\n", "text/plain; executable")
    await shop.call("edit", file_path="go.sh", old_string="1", new_string="2")
    await shop.call("write", file_path="go.sh", content="echo 3\n")
    assert await shop.type_of("go.sh") == "text/plain; executable"
    await shop.call("write", file_path="notes.md", content="# Hi\n")
    assert await shop.type_of("notes.md") == "text/markdown"


async def test_a_name_is_a_file_or_a_directory_and_never_both(shop: ToolTenant) -> None:
    await put(shop, "a/b", b"")
    with pytest.raises(Conflict):
        await shop.call("write", file_path="a", content="x")
    with pytest.raises(Conflict):
        await shop.call("write", file_path="a/b/c", content="x")


async def test_edits_of_different_places_all_land(shop: ToolTenant) -> None:
    words = [f"word{n:02}" for n in range(40)]
    await put(shop, "a", " ".join(words).encode())
    edits = [
        shop.call("edit", file_path="a", old_string=word, new_string=word.upper()) for word in words
    ]
    _, failed = await race(*edits)
    assert not failed
    assert await shop.files() == {"a": " ".join(words).upper().encode()}
    assert len(await shop.history("a")) == len(words) + 1


async def test_of_two_edits_of_one_place_the_second_finds_nothing(shop: ToolTenant) -> None:
    await put(shop, "a", b"one")
    done, failed = await race(
        shop.call("edit", file_path="a", old_string="one", new_string="two"),
        shop.call("edit", file_path="a", old_string="one", new_string="three"),
    )
    assert (len(done), [str(reason) for reason in failed]) == (1, ["old_string not found in a"])


async def test_of_two_writers_one_is_head_and_the_other_in_history(shop: ToolTenant) -> None:
    await asyncio.gather(
        shop.call("write", file_path="a", content="one"),
        shop.call("write", file_path="a", content="two"),
    )
    assert set(await shop.past_contents("a")) == {b"one", b"two"}


async def test_secrets_are_not_stored_and_the_caller_is_told(shop: ToolTenant) -> None:
    await secrets.put(shop.ports, shop.owner, "door", "sesame-open-now")
    said = await shop.call("write", file_path="a", content="say sesame-open-now")
    assert said == "Wrote a (19 bytes)\n[redacted: door]"
    assert await shop.files() == {"a": b"say [REDACTED:door]"}


async def test_limits_hold(shop: ToolTenant) -> None:
    with pytest.raises(WorkspaceTooLarge):
        await shop.call("write", file_path="a", content="x" * (100 * 1024 * 1024 + 1))


async def test_an_edit_that_would_be_too_large_is_refused_before_it_is_made(
    shop: ToolTenant,
) -> None:
    await put(shop, "a", b"x" * 1_000_000)
    with pytest.raises(WorkspaceTooLarge, match="1000000000000 bytes"):
        await shop.call(
            "edit", file_path="a", old_string="x", new_string="y" * 1_000_000, replace_all=True
        )
    assert await shop.files() == {"a": b"x" * 1_000_000}


async def test_a_choice_that_is_left_open_is_told_in_the_schema() -> None:
    told = TOOLS["grep"].schema
    assert told["properties"]["output_mode"]["default"] == "files_with_matches"
    assert told["required"] == ["pattern"]


async def test_the_call_and_the_run_are_in_the_history(shop: ToolTenant) -> None:
    shop.context = structs.replace(shop.context, call_id="toolu_1")
    await shop.call("write", file_path="a", content="x")
    [version] = await shop.history("a")
    assert version.reason == "write a (call toolu_1)"


async def test_globs_find_files_newest_first(shop: ToolTenant) -> None:
    for path in ("src/b.py", "src/a.py", "README.md", ".env", "src/deep/er/c.py"):
        await put(shop, path, b"x")
        advance_clock(shop.ports, 1000)
    await put(shop, "src/b.py", b"y")
    assert await shop.call("glob", pattern="**/*.py") == "src/b.py\nsrc/deep/er/c.py\nsrc/a.py\n"
    assert await shop.call("glob", pattern="*.py", path="src") == "b.py\na.py\n"
    assert await shop.call("glob", pattern="*") == ".env\nREADME.md\n"
    assert await shop.call("glob", pattern="[a]*") == "No files found"
    assert await shop.call("glob", pattern="*", path="nowhere") == "No files found"


async def test_grep_tells_files_lines_or_counts(shop: ToolTenant) -> None:
    await put(shop, "b.txt", b"one\ntwo\nOne two\n")
    await put(shop, "a/x.py", b"two = 2\r\nno\n")
    await put(shop, "a/.hidden", b"two")
    await put(shop, ".git/config", b"two")
    await put(shop, ".gitignore", b"*.txt\ntwo\n")
    await put(shop, "blob", b"two\0")
    assert await shop.call("grep", pattern="two") == ".gitignore\na/.hidden\na/x.py\nb.txt\n"
    content = {"output_mode": "content", "line_numbers": True}
    assert (
        await shop.call("grep", pattern="(?i)^one", **content) == "b.txt:1:one\nb.txt:3:One two\n"
    )
    assert await shop.call("grep", pattern="two$", path="b.txt", output_mode="content") == (
        "two\nOne two\n"
    )
    assert await shop.call("grep", pattern="two", path="a", output_mode="count") == (
        "a/.hidden:1\na/x.py:1\n"
    )
    assert await shop.call("grep", pattern="two", path="b.txt", output_mode="count") == "2\n"
    assert await shop.call("grep", pattern="TWO", path="b.txt", case_insensitive=True) == "b.txt\n"
    assert await shop.call("grep", pattern="two", glob="*.{py,txt}") == "a/x.py\nb.txt\n"
    assert await shop.call("grep", pattern="two", glob="a/*") == "a/.hidden\na/x.py\n"
    assert await shop.call("grep", pattern="three") == "No matches found"
    assert await refused(shop, "grep", pattern="x", path="nowhere") == "file not found: nowhere"
    assert await refused(shop, "grep", pattern="(") == "Invalid pattern: a ( is not closed"


async def test_long_answers_are_cut_within_the_bound(ports: Ports) -> None:
    shop = await create_tool_tenant(ports, outputLimitBytes=100)
    await put(shop, "a", "é".encode() * 300 + b"\n")
    for said in (
        await shop.call("read", file_path="a"),
        await shop.call("grep", pattern="é", output_mode="content"),
    ):
        assert len(said.encode()) <= 100
        assert said.endswith("é\n[output truncated]")


async def test_what_is_no_unicode_is_refused(shop: ToolTenant) -> None:
    for tool, given in {
        "read": {"file_path": "\ud800"},
        "write": {"file_path": "a", "content": "\ud800"},
        "glob": {"pattern": "\ud800"},
        "grep": {"pattern": "\ud800"},
        "bash": {"command": "echo \ud800"},
    }.items():
        assert (await refused(shop, tool, **given)).endswith("is not valid Unicode")
    assert await refused(shop, "read", file_path="a", workspace="\ud800") == (
        "workspace is not valid Unicode"
    )


async def test_a_workspace_is_in_the_schema_where_there_is_a_choice(shop: ToolTenant) -> None:
    both = await tool_access.load_tool_access(shop.ports, shop.owner.tenant, shop.context.config)
    one = ToolAccess(both.sandbox, both.workspaces[:1])
    for name in ("read", "write", "edit", "glob", "grep", "bash"):
        tool = TOOLS[name]
        assert tool.schema_for
        assert tool.schema["additionalProperties"] is False
        assert "workspace" not in tool.schema_for(tool.schema, one)["properties"]
        chosen = tool.schema_for(tool.schema, both)["properties"]["workspace"]
        assert chosen["enum"] == ["notes", "docs"]


async def test_nothing_passes_that_a_tool_does_not_know(shop: ToolTenant) -> None:
    for name in ("read", "write", "edit", "glob", "grep", "bash"):
        with pytest.raises(msgspec.ValidationError):
            TOOLS[name].parse_arguments({"nonsense": 1})


async def test_what_is_gone_is_named(shop: ToolTenant) -> None:
    config = {"workspaces": [{"name": "x", "workspaceId": "ws_gone"}]}
    body = {**shop.agent.body, "config": config}
    shop.context = structs.replace(shop.context, agent=structs.replace(shop.agent, body=body))
    assert config_from_stored(config).workspaces
    with pytest.raises(NotFound, match="Referenced workspace not found: ws_gone"):
        await shop.call("read", file_path="a")
