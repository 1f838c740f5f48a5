"""The file tools: results, refusals and concurrent edits."""

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
TRAVERSAL = "Invalid path: directory traversal not allowed"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def ports(tmp_path: File) -> AsyncIterator[Ports]:
    async with open_ports(tmp_path) as opened:
        yield opened


@pytest.fixture
async def tools(ports: Ports) -> ToolTenant:
    return await create_tool_tenant(ports)


async def put(tools: ToolTenant, path: str, content: bytes, type: str = "text/plain") -> None:
    stack, intent = (tools.scope(),), WriteOptions(type=type)
    await files.put(tools.ports, stack, Path(path), content, tools.owner, intent)


async def refusal_of(tools: ToolTenant, tool: str, /, **arguments: object) -> str:
    with pytest.raises(Refusal) as problem:
        await tools.call(tool, **arguments)
    return str(problem.value)


async def test_a_file_is_written_read_and_edited(tools: ToolTenant) -> None:
    assert await tools.call("write", file_path="/a//./b.txt", content="é\nzwei\n") == (
        "Wrote a/b.txt (8 bytes)"
    )
    assert await tools.call("read", file_path="a/b.txt") == "     1\té\n     2\tzwei\n"
    output = await tools.call("edit", file_path="a/b.txt", old_string="zwei", new_string="$& \\1")
    assert output == "Edited a/b.txt (1 replacement)"
    assert await tools.files() == {"a/b.txt": "é\n$& \\1\n".encode()}
    [newest, oldest] = await tools.history("a/b.txt")
    assert (newest.author, newest.reason) == (tools.owner.name, "edit a/b.txt")
    assert oldest.reason == "write a/b.txt"


async def test_read_honours_offset_and_limit(tools: ToolTenant) -> None:
    await put(tools, "n", b"".join(b"%d\n" % n for n in range(1, 2102)))
    assert await tools.call("read", file_path="n", offset=2101) == "  2101\t2101\n"
    assert await tools.call("read", file_path="n", offset=9, limit=1) == (
        "     9\t9\n[lines 9-9 of 2101; continue with offset 10]"
    )
    assert await tools.call("read", file_path="n", offset=-1, limit=0) == (
        "".join(f"{n:6}\t{n}\n" for n in range(1, 2001))
        + "[lines 1-2000 of 2101; continue with offset 2001]"
    )
    assert await tools.call("read", file_path="n", offset=5000) == "[the file has 2101 lines]"


@pytest.mark.parametrize("path", ["../a", "a/../../b", "a/..", "/.."])
async def test_a_path_outside_the_workspace_is_refused(tools: ToolTenant, path: str) -> None:
    assert await refusal_of(tools, "read", file_path=path) == TRAVERSAL
    assert await refusal_of(tools, "write", file_path=path, content="") == TRAVERSAL
    assert await refusal_of(tools, "glob", pattern="*", path=path) == TRAVERSAL
    assert await refusal_of(tools, "grep", pattern="a", path=path) == TRAVERSAL


async def test_invalid_arguments_are_refused_in_a_fixed_order(tools: ToolTenant) -> None:
    must = "file_path must reference a file"
    assert await refusal_of(tools, "write", file_path=" / ", content="x") == must
    assert await refusal_of(tools, "edit", file_path=".", old_string="", new_string="") == must
    same = {"old_string": "a", "new_string": "a"}
    empty = {"old_string": "", "new_string": ""}
    assert await refusal_of(tools, "edit", file_path="a", **empty) == "old_string must not be empty"
    assert await refusal_of(tools, "edit", file_path="a", **same) == (
        "old_string and new_string are identical"
    )
    other = {"old_string": "a", "new_string": "b"}
    assert await refusal_of(tools, "edit", file_path="a", **other) == "file not found: a"
    await put(tools, "a", b"xx")
    assert await refusal_of(tools, "edit", file_path="a", **other) == "old_string not found in a"
    await put(tools, "a", b"aaaaa")
    twice = {"old_string": "aa", "new_string": "b"}
    assert await refusal_of(tools, "edit", file_path="a", **twice) == (
        "old_string is not unique (2 matches); add context or set replace_all"
    )
    output = await tools.call("edit", file_path="a", replace_all=True, **twice)
    assert (output, await tools.files()) == ("Edited a (2 replacements)", {"a": b"bba"})
    assert await refusal_of(tools, "glob", pattern="  ") == "pattern is required"
    assert await refusal_of(tools, "grep", pattern="") == "pattern is required"
    assert (
        await refusal_of(tools, "read", file_path="b", workspace="none") == "unknown workspace none"
    )
    assert await refusal_of(tools, "read", file_path="nowhere") == "file not found: nowhere"
    await put(tools, "d/f", b"")
    assert await refusal_of(tools, "read", file_path="d") == "file not found: d"


@pytest.mark.parametrize("tool", ["write", "edit", "grep", "bash"])
async def test_a_workspace_without_a_sandbox_is_read_only(tools: ToolTenant, tool: str) -> None:
    arguments = {
        "write": {"file_path": "a", "content": "x"},
        "edit": {"file_path": "a", "old_string": "x", "new_string": "y"},
        "grep": {"pattern": "x"},
        "bash": {"command": "echo x > a"},
    }[tool]
    with pytest.raises(Forbidden, match=r"\Aworkspace is read-only\Z"):
        await tools.gate(tool, workspace="docs", **arguments)
    assert await tools.files(DOCS) == {}
    assert not tools.runner.orders
    assert await tools.call("glob", pattern="*", workspace="docs") == "No files found"


async def test_the_sandbox_that_would_run_a_call_decides_about_its_approval(ports: Ports) -> None:
    attached = [
        {"name": "notes", "workspaceId": NOTES},
        {"name": "docs", "workspaceId": DOCS, "sandbox": EDIT_BOX},
    ]
    tools = await create_tool_tenant(ports, {"sandbox": BOX, "workspaces": attached}, mode="ask")
    write = {"file_path": "a", "content": "x"}
    gate = await tools.gate("write", **write)
    assert (gate.requires_approval, gate.workspace, gate.sandbox, gate.expected_version) == (
        True,
        NOTES,
        BOX,
        0,
    )
    gate = await tools.gate("write", **write, workspace="docs")
    assert (gate.requires_approval, gate.workspace, gate.sandbox) == (False, DOCS, EDIT_BOX)
    assert (await tools.gate("bash", command="true", workspace="docs")).requires_approval
    assert not (await tools.gate("read", file_path="a")).requires_approval
    assert not (await tools.gate("grep", pattern="a")).requires_approval


async def test_bytes_that_are_not_text_are_never_corrupted(tools: ToolTenant) -> None:
    await put(tools, "latin", b"caf\xe9 and \xff\r\n")
    await tools.call("edit", file_path="latin", old_string="and", new_string="und")
    assert await tools.files() == {"latin": b"caf\xe9 und \xff\r\n"}
    assert await tools.type_of("latin") == "application/octet-stream"
    await put(tools, "picture", b"\x89PNG\0\1\2", "image/png")
    assert await tools.call("read", file_path="picture") == (
        "picture is a binary file (image/png, 7 bytes)"
    )


async def test_a_link_is_reported_and_never_followed(tools: ToolTenant) -> None:
    await put(tools, "secret", b"gold")
    await put(tools, "link", b"secret", "inode/symlink")
    refusal = "link is a link to secret; links are not followed"
    assert await refusal_of(tools, "read", file_path="link") == refusal
    change = {"old_string": "secret", "new_string": "x"}
    assert await refusal_of(tools, "edit", file_path="link", **change) == refusal
    assert await refusal_of(tools, "grep", pattern="gold", path="link") == refusal
    assert await tools.call("grep", pattern="gold|secret") == "secret\n"
    assert await tools.call("glob", pattern="*") == "secret\n"
    await tools.call("write", file_path="link", content="plain now")
    assert await tools.files() == {"secret": b"gold", "link": b"plain now"}
    assert await tools.type_of("link") == "text/plain"


async def test_an_executable_file_stays_executable(tools: ToolTenant) -> None:
    await put(tools, "go.sh", b"echo 1\n", "text/plain; executable")
    await tools.call("edit", file_path="go.sh", old_string="1", new_string="2")
    await tools.call("write", file_path="go.sh", content="echo 3\n")
    assert await tools.type_of("go.sh") == "text/plain; executable"
    await tools.call("write", file_path="notes.md", content="# Hi\n")
    assert await tools.type_of("notes.md") == "text/markdown"


async def test_a_name_is_a_file_or_a_directory_and_never_both(tools: ToolTenant) -> None:
    await put(tools, "a/b", b"")
    with pytest.raises(Conflict):
        await tools.call("write", file_path="a", content="x")
    with pytest.raises(Conflict):
        await tools.call("write", file_path="a/b/c", content="x")


async def test_edits_of_different_words_all_land(tools: ToolTenant) -> None:
    words = [f"word{n:02}" for n in range(40)]
    await put(tools, "a", " ".join(words).encode())
    edits = [
        tools.call("edit", file_path="a", old_string=word, new_string=word.upper())
        for word in words
    ]
    _, failed = await race(*edits)
    assert not failed
    assert await tools.files() == {"a": " ".join(words).upper().encode()}
    assert len(await tools.history("a")) == len(words) + 1


async def test_of_two_edits_of_the_same_text_the_second_is_refused(tools: ToolTenant) -> None:
    await put(tools, "a", b"one")
    done, failed = await race(
        tools.call("edit", file_path="a", old_string="one", new_string="two"),
        tools.call("edit", file_path="a", old_string="one", new_string="three"),
    )
    assert (len(done), [str(reason) for reason in failed]) == (1, ["old_string not found in a"])


async def test_of_two_concurrent_writes_one_is_head_and_the_other_is_in_history(
    tools: ToolTenant,
) -> None:
    await asyncio.gather(
        tools.call("write", file_path="a", content="one"),
        tools.call("write", file_path="a", content="two"),
    )
    assert set(await tools.past_contents("a")) == {b"one", b"two"}


async def test_secrets_are_redacted_and_the_output_names_them(tools: ToolTenant) -> None:
    await secrets.put(tools.ports, tools.owner, "door", "sesame-open-now")
    output = await tools.call("write", file_path="a", content="say sesame-open-now")
    assert output == "Wrote a (19 bytes)\n[redacted: door]"
    assert await tools.files() == {"a": b"say [REDACTED:door]"}


async def test_a_file_over_the_size_limit_is_refused(tools: ToolTenant) -> None:
    with pytest.raises(WorkspaceTooLarge):
        await tools.call("write", file_path="a", content="x" * (100 * 1024 * 1024 + 1))


async def test_an_edit_that_would_be_too_large_is_refused_before_it_is_built(
    tools: ToolTenant,
) -> None:
    await put(tools, "a", b"x" * 1_000_000)
    with pytest.raises(WorkspaceTooLarge, match="1000000000000 bytes"):
        await tools.call(
            "edit", file_path="a", old_string="x", new_string="y" * 1_000_000, replace_all=True
        )
    assert await tools.files() == {"a": b"x" * 1_000_000}


async def test_an_optional_argument_has_its_default_in_the_schema() -> None:
    schema = TOOLS["grep"].schema
    assert schema["properties"]["output_mode"]["default"] == "files_with_matches"
    assert schema["required"] == ["pattern"]


async def test_the_call_and_the_run_are_in_the_history(tools: ToolTenant) -> None:
    tools.context = structs.replace(tools.context, call_id="toolu_1")
    await tools.call("write", file_path="a", content="x")
    [version] = await tools.history("a")
    assert version.reason == "write a (call toolu_1)"


async def test_globs_find_files_newest_first(tools: ToolTenant) -> None:
    for path in ("src/b.py", "src/a.py", "README.md", ".env", "src/deep/er/c.py"):
        await put(tools, path, b"x")
        advance_clock(tools.ports, 1000)
    await put(tools, "src/b.py", b"y")
    assert await tools.call("glob", pattern="**/*.py") == "src/b.py\nsrc/deep/er/c.py\nsrc/a.py\n"
    assert await tools.call("glob", pattern="*.py", path="src") == "b.py\na.py\n"
    assert await tools.call("glob", pattern="*") == ".env\nREADME.md\n"
    assert await tools.call("glob", pattern="[a]*") == "No files found"
    assert await tools.call("glob", pattern="*", path="nowhere") == "No files found"


async def test_grep_returns_files_lines_or_counts(tools: ToolTenant) -> None:
    await put(tools, "b.txt", b"one\ntwo\nOne two\n")
    await put(tools, "a/x.py", b"two = 2\r\nno\n")
    await put(tools, "a/.hidden", b"two")
    await put(tools, ".git/config", b"two")
    await put(tools, ".gitignore", b"*.txt\ntwo\n")
    await put(tools, "blob", b"two\0")
    assert await tools.call("grep", pattern="two") == ".gitignore\na/.hidden\na/x.py\nb.txt\n"
    content = {"output_mode": "content", "line_numbers": True}
    assert (
        await tools.call("grep", pattern="(?i)^one", **content) == "b.txt:1:one\nb.txt:3:One two\n"
    )
    assert await tools.call("grep", pattern="two$", path="b.txt", output_mode="content") == (
        "two\nOne two\n"
    )
    assert await tools.call("grep", pattern="two", path="a", output_mode="count") == (
        "a/.hidden:1\na/x.py:1\n"
    )
    assert await tools.call("grep", pattern="two", path="b.txt", output_mode="count") == "2\n"
    assert await tools.call("grep", pattern="TWO", path="b.txt", case_insensitive=True) == "b.txt\n"
    assert await tools.call("grep", pattern="two", glob="*.{py,txt}") == "a/x.py\nb.txt\n"
    assert await tools.call("grep", pattern="two", glob="a/*") == "a/.hidden\na/x.py\n"
    assert await tools.call("grep", pattern="three") == "No matches found"
    assert await refusal_of(tools, "grep", pattern="x", path="nowhere") == "file not found: nowhere"
    assert await refusal_of(tools, "grep", pattern="(") == "Invalid pattern: a ( is not closed"


async def test_long_output_is_truncated_within_the_limit(ports: Ports) -> None:
    tools = await create_tool_tenant(ports, outputLimitBytes=100)
    await put(tools, "a", "é".encode() * 300 + b"\n")
    for output in (
        await tools.call("read", file_path="a"),
        await tools.call("grep", pattern="é", output_mode="content"),
    ):
        assert len(output.encode()) <= 100
        assert output.endswith("é\n[output truncated]")


async def test_arguments_that_are_not_unicode_are_refused(tools: ToolTenant) -> None:
    for tool, arguments in {
        "read": {"file_path": "\ud800"},
        "write": {"file_path": "a", "content": "\ud800"},
        "glob": {"pattern": "\ud800"},
        "grep": {"pattern": "\ud800"},
        "bash": {"command": "echo \ud800"},
    }.items():
        assert (await refusal_of(tools, tool, **arguments)).endswith("is not valid Unicode")
    assert await refusal_of(tools, "read", file_path="a", workspace="\ud800") == (
        "workspace is not valid Unicode"
    )


async def test_the_schema_has_a_workspace_argument_only_if_there_are_several(
    tools: ToolTenant,
) -> None:
    both = await tool_access.load_tool_access(tools.ports, tools.owner.tenant, tools.context.config)
    single = ToolAccess(both.sandbox, both.workspaces[:1])
    for name in ("read", "write", "edit", "glob", "grep", "bash"):
        tool = TOOLS[name]
        assert tool.schema_for
        assert tool.schema["additionalProperties"] is False
        assert "workspace" not in tool.schema_for(tool.schema, single)["properties"]
        argument = tool.schema_for(tool.schema, both)["properties"]["workspace"]
        assert argument["enum"] == ["notes", "docs"]


async def test_unknown_arguments_are_refused(tools: ToolTenant) -> None:
    for name in ("read", "write", "edit", "glob", "grep", "bash"):
        with pytest.raises(msgspec.ValidationError):
            TOOLS[name].parse_arguments({"nonsense": 1})


async def test_a_missing_workspace_is_named_in_the_refusal(tools: ToolTenant) -> None:
    config = {"workspaces": [{"name": "x", "workspaceId": "ws_gone"}]}
    body = {**tools.agent.body, "config": config}
    tools.context = structs.replace(tools.context, agent=structs.replace(tools.agent, body=body))
    assert config_from_stored(config).workspaces
    with pytest.raises(NotFound, match="Referenced workspace not found: ws_gone"):
        await tools.call("read", file_path="a")
