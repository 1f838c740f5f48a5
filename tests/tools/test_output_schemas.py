"""Whatever its arguments are, a tool's structured result fits its output schema."""

from __future__ import annotations

import asyncio
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.support.tool_fixture import BOX, DOCS, EDIT_BOX, NOTES, ToolTenant, create_tool_tenant

from carrel.actions.sessions import sessions
from carrel.core.runs import Audience
from carrel.ports import Ports
from carrel.server.mcp.tools import reply_to_result
from carrel.tools.calls import run_call
from carrel.tools.registry import ALL_TOOLS

pytestmark = pytest.mark.anyio
TOOLS = [tool for tool in ALL_TOOLS if tool.name != "async_status"]
"""That one needs a persistent sandbox; its results are validated by its own tests."""
PATHS = ("a.txt", "blob", "d", "d/b.txt", "", "../x", "none", "/a.txt", "a\\b", "long.txt")
OWN_PATHS = ("/memories", "/memories/a", "/memories/notes/b.md", "/memories/d/c", "/x")
TEXTS = ("", "x", "one\ntwo\n", "two", "é\r\n", "ghp_" + "a1B2" * 9, "(", "\\w+", "**/*.{txt,md}")
COMMANDS = (
    "true",
    "echo out; echo err >&2; exit 3",
    "seq 2000",
    "kill $$",
    "touch new; rm -f a.txt",
)
VALUES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("file_path", "cwd"), PATHS),
    **dict.fromkeys(("old_path", "new_path"), OWN_PATHS),
    "path": PATHS + OWN_PATHS,
    "workspace": ("", "notes", "docs", "asks", "none"),
    "key": ("k", "k2", ""),
    "session_id": ("talk", "none"),
    "view_range": ([1, 2], [2, -1], [9, 1]),
    "env": ({}, {"A": "x"}, {"A B": "x"}),
    "timeout": (5, 0, 10**20),
    "tags": ([], ["a", "b"]),
    "target_agent_id": ("none",),
}
"""Values of arguments that are more likely to lead to a result than any others."""


@pytest.fixture
async def tools(anywhere: Ports) -> ToolTenant:
    attached = [
        {"name": "notes", "workspaceId": NOTES, "sandbox": BOX},
        {"name": "docs", "workspaceId": DOCS, "sandbox": None},
        {"name": "asks", "workspaceId": DOCS, "sandbox": EDIT_BOX},
    ]
    config = {"sandbox": BOX, "workspaces": attached, "workspaceGit": {"enabled": True}}
    tools = await create_tool_tenant(anywhere, config, outputLimitBytes=2000)
    await tools.call("write", file_path="blob", content="\0", workspace="notes")
    await tools.call("write", file_path="long.txt", content="line\n" * 2000, workspace="notes")
    await sessions.start(tools.ports, tools.owner, tools.agent.id, id="talk")
    return tools


def argument(name: str, schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    anything: st.SearchStrategy[Any] = st.sampled_from([None, 0, -1, 3, 2.5, "x", [], {}, True])
    if name == "command":
        usual = st.sampled_from(schema.get("enum", COMMANDS))
    elif "enum" in schema:
        usual = st.sampled_from(schema["enum"])
    elif name in VALUES:
        usual = st.sampled_from(VALUES[name])
    elif schema.get("type") == "integer":
        usual = st.integers(schema.get("minimum", -2), min(schema.get("maximum", 50), 50))
    else:
        usual = st.booleans() if schema.get("type") == "boolean" else st.sampled_from(TEXTS)
    return st.integers(0, 19).flatmap(lambda n: anything if n == 0 else usual)


@st.composite
def calls(draw: st.DrawFn) -> tuple[Any, dict[str, Any]]:
    tool = draw(st.sampled_from(TOOLS))
    properties = tool.schema["properties"]
    required = tool.schema["required"]
    optional = st.sets(st.sampled_from(sorted(properties))) if properties else st.just(set())
    names = sorted((draw(optional) | set(required)) - {"wait", "background"})
    return tool, {name: draw(argument(name, properties[name])) for name in names}


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(call=calls(), audience=st.sampled_from([Audience.MAIN, Audience.MAIN, Audience.SHARED]))
async def test_every_result_fits_the_output_schema(
    tools: ToolTenant, call: tuple[Any, dict[str, Any]], audience: Audience
) -> None:
    tool, arguments = call
    context = replace(tools.context, audience=audience)
    async with asyncio.timeout(30):
        reply = await run_call(context, tool.name, arguments)
    result = reply_to_result(reply)
    assert result.is_error == reply.is_error
    if reply.structured is not None:
        jsonschema.validate(reply.structured, tool.output_schema)
    if not reply.is_error:
        jsonschema.validate(result.structured_content, tool.output_schema)
