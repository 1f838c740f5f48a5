"""Structured results of the tools that work in workspaces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import pytest
from msgspec import structs
from tests.support.stores import open_ports
from tests.support.tool_fixture import ToolTenant, create_tool_tenant
from tests.support.unsandboxed_provider import PersistentUnsandboxedProvider

from carrel.actions.files.file_commit import commit_files
from carrel.actions.policy import policies
from carrel.actions.sandbox import command_output, workspace_files
from carrel.core.errors import Forbidden, NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.overlay.file_changes import ChangeKind, FileChange
from carrel.ports import Ports
from carrel.tools.calls import run_call
from carrel.tools.registry import ALL_TOOLS

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def ports(tmp_path: File) -> AsyncIterator[Ports]:
    async with open_ports(tmp_path) as opened:
        yield opened


@pytest.fixture
async def tools(ports: Ports) -> ToolTenant:
    return await create_tool_tenant(ports, timeout=20, outputLimitBytes=2000)


async def put(tools: ToolTenant, path: str, content: bytes) -> None:
    await workspace_files.write(tools.workspace_files(), Path(path), content)


async def result_of(tools: ToolTenant, tool: str, /, **arguments: Any) -> dict[str, Any]:
    structured = (await tools.reply(tool, **arguments)).structured
    assert isinstance(structured, dict)
    return structured


async def test_a_command_returns_its_streams_and_its_changes(tools: ToolTenant) -> None:
    await put(tools, "old", b"1")
    await put(tools, "gone", b"1")
    command = "echo out; echo err >&2; echo 2 > old; mkdir d; echo 3 > d/new; rm gone; exit 3"
    result = await result_of(tools, "bash", command=command)
    assert result.pop("durationMs") >= 0
    assert result == {
        **{"stdout": "out\n", "stderr": "err\n", "exitCode": 3, "timedOut": False},
        "truncated": False,
        "changed": [
            {"path": "d/new", "version": 1, "change": "created"},
            {"path": "gone", "version": 2, "change": "deleted"},
            {"path": "old", "version": 2, "change": "modified"},
        ],
        **{"notes": [], "outputFiles": []},
    }


async def test_a_repeated_call_returns_the_same_changes(tools: ToolTenant) -> None:
    first, again = [
        await run_call(tools.context, "bash", {"command": "echo x >> a"}, "call-1")
        for _ in range(2)
    ]
    assert first.structured == again.structured
    result: Any = first.structured
    assert result["changed"] == [{"path": "a", "version": 1, "change": "created"}]


async def test_long_output_is_a_file_of_the_workspace(tools: ToolTenant) -> None:
    reply = await tools.reply("bash", command="seq 1000; seq 5 >&2")
    result: Any = reply.structured
    [path] = result["outputFiles"]
    assert path.startswith(".carrel/output/call_")
    assert f"[stdout was cut; the file {path} has 3893 bytes of it]" in reply.content
    assert result["truncated"] and result["stdout"].endswith("[output truncated]")
    assert len(result["stdout"].encode()) == 2000
    assert result["stderr"] == "1\n2\n3\n4\n5\n"
    text = (await tools.files())[path].decode()
    assert text == "".join(f"{n}\n" for n in range(1, 1001))
    assert "     1\t1\n" in await tools.call("read", file_path=path)


async def test_a_workspace_without_room_for_long_output_is_named(tools: ToolTenant) -> None:
    policy = await policies.get(tools.ports, tools.owner)
    shared = structs.replace(policy.shared_limits, max_files=1)
    await policies.put(tools.ports, tools.owner, structs.replace(policy, shared_limits=shared))
    await put(tools, "only", b"x")
    reply = await tools.reply("bash", command="seq 1000")
    result: Any = reply.structured
    assert result["truncated"] and result["outputFiles"] == []
    assert "[stdout was not saved: " in reply.content
    assert set(await tools.files()) == {"only"}


async def test_output_of_exactly_the_limit_is_whole(tools: ToolTenant) -> None:
    for size, is_cut in ((2000, False), (2001, True)):
        result = await result_of(tools, "bash", command=f"head -c {size} /dev/zero | tr '\\0' x")
        assert (result["truncated"], bool(result["outputFiles"])) == (is_cut, is_cut)


async def test_the_saved_output_ends_with_its_limit(
    tools: ToolTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_output, "MAX_SAVED_BYTES", 3000)
    [path] = (await result_of(tools, "bash", command="seq 2000"))["outputFiles"]
    saved = (await tools.files())[path]
    assert len(saved) <= 3000
    assert saved.endswith(b"[output truncated]")


async def test_only_the_newest_files_of_long_output_stay(
    tools: ToolTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_output, "MAX_SAVED_FILES", 4)
    await put(tools, ".carrel/output/notes.txt", b"written by an agent")
    saved: list[str] = []
    for _ in range(3):
        result = await result_of(tools, "bash", command="seq 1000; seq 1000 >&2")
        saved += result["outputFiles"]
        stored = {path for path in await tools.files() if path.endswith((".stdout.txt", "err.txt"))}
        assert stored == set(saved[-4:])
    assert ".carrel/output/notes.txt" in await tools.files()


async def test_a_secret_in_long_output_is_redacted_in_the_file(tools: ToolTenant) -> None:
    key = "ghp_" + "a1B2" * 9
    [path] = (await result_of(tools, "bash", command=f"seq 1000; echo {key}"))["outputFiles"]
    assert key.encode() not in (await tools.files())[path]


async def test_a_call_has_its_own_time_limit_directory_and_variables(tools: ToolTenant) -> None:
    await put(tools, "a b/x", b"1")
    result = await result_of(
        tools, "bash", command="pwd; ls; echo $GREETING", cwd="/a b/", env={"GREETING": "it's"}
    )
    lines = result["stdout"].splitlines()
    assert (lines[0].rpartition("/")[2], lines[1:]) == ("a b", ["x", "it's"])
    assert tools.runner.orders[-1].env["GREETING"] == "it's"
    assert "it's" not in tools.runner.orders[-1].command
    result = await result_of(tools, "bash", command="exec sleep 60", timeout=1)
    assert (result["timedOut"], result["exitCode"]) == (True, None)
    assert tools.runner.orders[-1].limits.seconds == 1
    result = await result_of(tools, "bash", command="echo never", cwd="missing")
    assert (result["exitCode"], result["stdout"]) == (1, "")
    assert "missing" in result["stderr"]


@pytest.mark.parametrize("name", ["-", "-x", "d"])
async def test_a_directory_is_that_of_the_workspace_whatever_its_name(
    tools: ToolTenant, name: str
) -> None:
    await put(tools, f"{name}/file", b"1")
    await put(tools, "elsewhere/d/other", b"1")
    result = await result_of(tools, "bash", command="ls", cwd=name, env={"CDPATH": "elsewhere"})
    assert (result["exitCode"], result["stdout"]) == (0, "file\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"timeout": 21}, "timeout must be from 1 to 20 seconds"),
        ({"timeout": 0}, "timeout must be from 1 to 20 seconds"),
        ({"cwd": "../x"}, "directory traversal"),
        ({"env": {"A B": "x"}}, "not a name"),
        ({"env": {"A": "x\0"}}, "without NUL"),
        ({"env": {"A": "\ud800"}}, "Unicode"),
        ({"env": {f"A{n}": "" for n in range(65)}}, "64 variables"),
        ({"env": {"A": "x" * 33_000}}, "32768 bytes"),
    ],
)
async def test_options_outside_of_policy_are_refused_before_anybody_is_asked(
    tools: ToolTenant, arguments: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem):
        await tools.gate("bash", command="true", **arguments)
    assert not tools.runner.orders


async def test_variables_of_the_sandbox_cannot_be_replaced(ports: Ports) -> None:
    tools = await create_tool_tenant(ports, envVars={"TOKEN": "from-the-sandbox"})
    for name in ("TOKEN", "PATH", "HOME"):
        with pytest.raises(Forbidden, match=f"{name} is set by the sandbox"):
            await tools.gate("bash", command="true", env={name: "x"})


async def test_a_persistent_instance_is_kept_for_a_call_with_variables(ports: Ports) -> None:
    runner = PersistentUnsandboxedProvider()
    tools = await create_tool_tenant(ports, runner=runner, persistent=True)
    result = await result_of(tools, "bash", command='printf "$A"', env={"A": "it's\n$HOME"})
    assert result["stdout"] == "it's\n$HOME"
    assert "A" not in runner.orders[-1].env
    assert result["notes"] == []
    await runner.close()


async def test_the_reason_of_a_commit_has_no_variables(tools: ToolTenant) -> None:
    await tools.call("bash", command="echo $KEY > a", env={"KEY": "hunter2hunter2"})
    [version] = await tools.history("a")
    assert "hunter2" not in version.reason


async def test_read_says_how_many_lines_there_are_and_where_to_go_on(tools: ToolTenant) -> None:
    await put(tools, "n", b"".join(b"line %d\n" % n for n in range(1, 401)))
    first = await result_of(tools, "read", file_path="n")
    assert (first["firstLine"], first["totalLines"], first["version"]) == (1, 400, 1)
    assert first["nextOffset"] == first["lastLine"] + 1 < 400
    line_count, following = 0, 1
    while following:
        reply = await tools.reply("read", file_path="n", offset=following)
        part: Any = reply.structured
        assert len(reply.content.encode()) <= 2000
        assert f"{following:6}\tline {following}\n" in reply.content
        line_count += part["lastLine"] - part["firstLine"] + 1
        following = part["nextOffset"]
    assert line_count == 400
    end = await result_of(tools, "read", file_path="n", offset=401)
    assert (end["totalLines"], end["nextOffset"]) == (400, None)


async def test_read_of_one_long_line_goes_on_after_it(tools: ToolTenant) -> None:
    await put(tools, "n", b"x" * 5000 + b"\nend")
    first = await tools.reply("read", file_path="n")
    assert first.content.endswith("[output truncated]")
    assert first.structured["nextOffset"] == 2  # type: ignore[index]
    last = await result_of(tools, "read", file_path="n", offset=2)
    assert (last["totalLines"], last["lastLine"], last["nextOffset"]) == (2, 2, None)


async def test_read_counts_the_lines_of_an_empty_and_of_a_binary_file(tools: ToolTenant) -> None:
    await put(tools, "empty", b"")
    await put(tools, "blob", b"\0" * 9)
    empty = await result_of(tools, "read", file_path="empty")
    assert (empty["totalLines"], empty["nextOffset"], empty["binary"]) == (0, None, False)
    blob = await result_of(tools, "read", file_path="blob")
    assert (blob["binary"], blob["size"], "totalLines" in blob) == (True, 9, False)


async def test_lines_of_a_large_file_are_counted(ports: Ports) -> None:
    tools = await create_tool_tenant(ports)
    await put(tools, "large", b"0123456789abcde\n" * 200_000)
    result = await result_of(tools, "read", file_path="large", limit=3)
    assert (result["totalLines"], result["nextOffset"]) == (200_000, 4)


async def test_a_directory_is_listed_with_sizes(tools: ToolTenant) -> None:
    await put(tools, "src/app.py", b"12345")
    await put(tools, "src/lib/a.py", b"123")
    await put(tools, "README.md", b"1")
    change = FileChange(ChangeKind.MAKE_DIRECTORY, Path("empty"))
    await commit_files(tools.ports, (tools.scope(),), tools.owner, [change])
    text = await tools.call("ls")
    assert text == ("         1  README.md\n         0  empty/\n         8  src/\n")
    result = await result_of(tools, "ls", path="/src/")
    assert [(entry["path"], entry["type"], entry["size"]) for entry in result["entries"]] == [
        ("src/app.py", "file", 5),
        ("src/lib", "directory", 3),
    ]
    assert (result["path"], result["count"], result["truncated"]) == ("src", 2, False)
    assert await tools.call("ls", path="empty") == "The directory is empty"
    with pytest.raises(NotFound, match="directory not found: none"):
        await tools.call("ls", path="none")
    with pytest.raises(ValidationError, match=r"README\.md is a file"):
        await tools.call("ls", path="README.md")


async def test_a_long_listing_is_cut(tools: ToolTenant) -> None:
    await asyncio.gather(*(put(tools, f"{n:050}", b"") for n in range(60)))
    for tool, arguments, name in (("ls", {}, "entries"), ("glob", {"pattern": "*"}, "paths")):
        reply = await tools.reply(tool, **arguments)
        result: Any = reply.structured
        assert (result["count"], result["truncated"]) == (60, True)
        assert 0 < len(result[name]) < 60
        assert len(reply.content.encode()) <= 2000


async def test_a_glob_knows_braces(tools: ToolTenant) -> None:
    for path in ("a.py", "b.ts", "src/c.tsx", "src/d{x}.md"):
        await put(tools, path, b"")

    async def glob_paths(pattern: str) -> set[str]:
        return set((await result_of(tools, "glob", pattern=pattern))["paths"])

    assert await glob_paths("**/*.{py,ts,tsx}") == {"a.py", "b.ts", "src/c.tsx"}
    assert await glob_paths("{src/*,b}.ts{,x}") == {"b.ts", "src/c.tsx"}
    assert await glob_paths("src/d{x}.md") == set()
    assert await glob_paths("src/d?x?.md") == {"src/d{x}.md"}


TEXT = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\nMATCH\nnine\nMATCH\n"


async def test_grep_shows_lines_around_matches(tools: ToolTenant) -> None:
    await put(tools, "a.txt", TEXT)
    content: dict[str, Any] = {"output_mode": "content", "line_numbers": True}
    assert await tools.call("grep", pattern="two|five", after_context=1, **content) == (
        "a.txt:2:two\na.txt-3-three\n--\na.txt:5:five\na.txt-6-six\n"
    )
    assert await tools.call("grep", pattern="MATCH", context=1, path="a.txt", **content) == (
        "7-seven\n8:MATCH\n9-nine\n10:MATCH\n"
    )
    reply = await tools.reply("grep", pattern="four", before_context=2, **content)
    assert reply.structured == {
        "truncated": False,
        "lines": [
            {"path": "a.txt", "line": 2, "text": "two", "context": True},
            {"path": "a.txt", "line": 3, "text": "three", "context": True},
            {"path": "a.txt", "line": 4, "text": "four"},
        ],
    }


async def test_grep_stops_after_a_number_of_rows(tools: ToolTenant) -> None:
    for name in "abc":
        await put(tools, name, b"x\nx\n")
    for mode, key in (
        ("files_with_matches", "files"),
        ("content", "lines"),
        ("count", "counts"),
    ):
        reply = await tools.reply("grep", pattern="x", output_mode=mode, head_limit=2)
        result: Any = reply.structured
        assert (len(result[key]), result["truncated"]) == (2, True)
        assert reply.content.endswith("[first 2; there are more]")
    assert not (await result_of(tools, "grep", pattern="x", head_limit=3))["truncated"]


async def test_grep_finds_matches_that_span_lines(tools: ToolTenant) -> None:
    await put(tools, "a.py", b"def f(\n    x,\n):\n    pass\n\ndef g(): pass\n")
    arguments: dict[str, Any] = {"pattern": r"def \w+\([^)]*x", "output_mode": "content"}
    assert await tools.call("grep", **arguments) == "No matches found"
    assert await tools.call("grep", **arguments, multiline=True) == "a.py:def f(\na.py:    x,\n"
    assert await tools.call("grep", pattern="^def.*pass$", multiline=True) == "a.py\n"
    count = await result_of(tools, "grep", pattern=r"\bpass$", output_mode="count", multiline=True)
    assert count["counts"] == [{"path": "a.py", "count": 2}]


async def test_grep_across_lines_names_files_that_are_too_large(
    tools: ToolTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.actions.sandbox.grep.BATCH_BYTES", 10)
    await put(tools, "large", b"x" * 11)
    reply = await tools.reply("grep", pattern="x", multiline=True)
    assert reply.content == "No matches found\n[not searched, too large: large]"
    assert reply.structured == {"truncated": False, "files": [], "skipped": ["large"]}


async def test_writes_and_edits_return_the_version(tools: ToolTenant) -> None:
    written = await result_of(tools, "write", file_path="a", content="x x")
    assert written == {"path": "a", "version": 1, "size": 3, "redacted": []}
    edited = await result_of(
        tools, "edit", file_path="a", old_string="x", new_string="yy", replace_all=True
    )
    assert edited == {"path": "a", "version": 2, "size": 5, "redacted": [], "replacements": 2}


def test_schemas_are_derived_from_their_types_once() -> None:
    """Deriving those of one agent's tools takes milliseconds, at each cold start."""
    for tool in ALL_TOOLS:
        assert tool.schema is tool.schema
        assert tool.output_schema is tool.output_schema
