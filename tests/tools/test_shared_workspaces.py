"""Tools of a shared session on an attached workspace: private files are withheld."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.tool_fixture import ToolTenant, create_tool_tenant

from carrel.core.errors import Forbidden, NotFound
from carrel.core.identifiers import Path
from carrel.core.runs import Audience
from carrel.ports import Ports
from carrel.tools.calls import open_tool_context, run_call
from carrel.tools.tool import ToolReply

pytestmark = pytest.mark.anyio
PRIVATE = ("MEMORY.md", "USER.md", "notes/2026-11-18.md", "memory/luis.md", "dreams.md")
CANARY = "zanzibar"


@pytest.fixture
async def tools(anywhere: Ports) -> ToolTenant:
    """A shared session; the workspace has private files and a plain one."""
    tools = await create_tool_tenant(anywhere)
    for path in PRIVATE:
        await tools.call("write", file_path=path, content=f"{CANARY}\n")
    await tools.call("write", file_path="report.csv", content="a,1\n")
    tools.context = replace(tools.context, audience=Audience.SHARED)
    return tools


async def private_files(tools: ToolTenant) -> dict[str, bytes]:
    return {path: text for path, text in (await tools.files()).items() if path in PRIVATE}


async def call_by_id(tools: ToolTenant, scope: str, **arguments: Any) -> ToolReply:
    context = await open_tool_context(tools.ports, tools.owner, tools.agent.id, scope=scope)
    return await run_call(context, "bash", arguments, call_id="same")


async def test_file_tools_withhold_private_files_and_work_on_plain_ones(tools: ToolTenant) -> None:
    before = await tools.files()
    for path in (*PRIVATE, "memory.MD", "notes", "notes/absent.md"):
        calls: dict[str, dict[str, Any]] = {
            "read": {},
            "write": {"content": "x"},
            "edit": {"old_string": CANARY, "new_string": "x"},
        }
        for tool, arguments in calls.items():
            with pytest.raises(Forbidden) as refusal:
                await tools.call(tool, file_path=path, **arguments)
            assert str(refusal.value) == f"{path} is not available in a shared session"
        if "/" not in path:
            with pytest.raises(Forbidden):
                await tools.call("grep", pattern="zan", path=path)
    assert await tools.call("grep", pattern="zan|a,") == "report.csv\n"
    assert await tools.call("glob", pattern="**") == "report.csv\n"
    assert await tools.call("glob", pattern="*", path="notes") == "No files found"
    assert await tools.files() == before
    assert await tools.call("read", file_path="report.csv") == "     1\ta,1\n"
    await tools.call("edit", file_path="report.csv", old_string="a", new_string="b")
    await tools.call("write", file_path="docs/MEMORY.md", content="plain")
    assert (await tools.files())["report.csv"] == b"b,1\n"
    assert "plain" in await tools.call("read", file_path="docs/MEMORY.md")


async def test_a_listing_counts_no_private_file(tools: ToolTenant) -> None:
    main = replace(tools.context, audience=Audience.MAIN)
    shared, tools.context = tools.context, main
    await tools.call("write", file_path=".carrel/output/a.txt", content=CANARY)
    tools.context = shared
    assert await tools.call("ls") == "         4  report.csv\n"
    with pytest.raises(NotFound):
        await tools.call("ls", path=".carrel")
    await tools.call("write", file_path=".carrel/shared-output/b.txt", content="ab")
    assert await tools.call("ls") == "         2  .carrel/\n         4  report.csv\n"


async def test_a_command_sees_no_private_file_and_can_neither_replace_nor_delete_one(
    tools: ToolTenant,
) -> None:
    before = await private_files(tools)
    output = await tools.call("bash", command="find . -type f; cat report.csv MEMORY.md notes/*")
    assert "./report.csv\na,1\n" in output
    assert CANARY not in output
    assert not any(path in output.splitlines() for path in (f"./{path}" for path in PRIVATE))
    command = "rm -rf *; echo mine > MEMORY.md; mkdir user.MD; echo x > user.MD/y; echo x > memory"
    output = await tools.call("bash", command=command)
    expected = "MEMORY.md, memory, user.MD/y"
    assert output == f"[warning: not available in a shared session, not saved: {expected}]"
    assert await tools.files() == before
    assert await tools.call("bash", command="echo b,2 > report.csv") == ""
    assert await tools.files() == {**before, "report.csv": b"b,2\n"}


async def test_a_shared_call_never_gets_the_result_of_a_private_call_with_the_same_id(
    tools: ToolTenant,
) -> None:
    arguments = {"command": "cat MEMORY.md || echo withheld"}
    assert CANARY in (await call_by_id(tools, "main", **arguments)).content
    shared = await call_by_id(tools, "shared", **arguments)
    assert CANARY not in shared.content
    assert "withheld" in shared.content
    assert (await call_by_id(tools, "shared", **arguments)).content == shared.content


async def test_an_agents_own_file_that_is_not_listed_is_absent_in_a_shared_session(
    tools: ToolTenant,
) -> None:
    context = tools.context
    assert await context.read_text(Path("USER.md")) is None
    assert await context.read_text(Path("GUARDRAILS.md")) is not None
    assert Path("USER.md") not in await context.list_paths()
    main = replace(context, audience=Audience.MAIN)
    assert Path("USER.md") in await main.list_paths()


async def test_long_output_of_a_main_session_is_withheld_from_shared_ones(
    anywhere: Ports,
) -> None:
    tools = await create_tool_tenant(anywhere, outputLimitBytes=2000)
    await tools.call("write", file_path="notes/a.md", content=f"{CANARY}\n" * 400)
    main = tools.context
    saved: dict[Audience, str] = {}
    for audience in (Audience.MAIN, Audience.SHARED):
        tools.context = replace(main, audience=audience)
        command = "cat notes/a.md 2>/dev/null || seq 1000"
        result: Any = (await tools.reply("bash", command=command)).structured
        [saved[audience]] = result["outputFiles"]
    with pytest.raises(Forbidden):
        await tools.call("read", file_path=saved[Audience.MAIN])
    assert "1000" in await tools.call("read", file_path=saved[Audience.SHARED], offset=990)
    assert await tools.call("grep", pattern=CANARY) == "No matches found"
    assert CANARY not in await tools.call("bash", command="cat .carrel/*/*")
    assert saved[Audience.MAIN] not in await tools.call("glob", pattern="**")
