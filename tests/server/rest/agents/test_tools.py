"""An agent's tools over REST: lists, schemas and results."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import jsonschema
import pytest
from tests.support.full_app import FullApp, create_tool_config, open_full_app

from carrel.core.access import Permission
from carrel.tools.registry import ALL_TOOLS

pytestmark = pytest.mark.anyio
AGENT = "/v1/agents/kate"
MEMORY = "## People\n- Luis prefers Spanish.\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    new = {"slug": "kate", "name": "Kate", "config": await create_tool_config(owner)}
    created = await owner.post("/v1/agents", json=new)
    assert created.status_code == 201, created.text
    put = await owner.put(f"{AGENT}/files/MEMORY.md", json={"content": MEMORY})
    assert put.status_code == 200, put.text
    return owner


async def call_tool(client: httpx.AsyncClient, tool: str, **body: Any) -> dict[str, Any]:
    answer = await client.post(f"{AGENT}/tools/{tool}", json=body)
    assert answer.status_code == 200, answer.text
    result: dict[str, Any] = answer.json()
    return result


async def names(client: httpx.AsyncClient) -> list[str]:
    return [tool["name"] for tool in (await client.get(f"{AGENT}/tools")).json()["items"]]


async def test_an_agent_has_every_tool_in_order_of_name(ada: httpx.AsyncClient) -> None:
    assert (
        await names(ada)
        == [tool.name for tool in ALL_TOOLS]
        == sorted(tool.name for tool in ALL_TOOLS)
    )


async def test_allowed_tools_patterns_hide_all_other_tools(
    ada: httpx.AsyncClient,
) -> None:
    changed = await ada.patch(AGENT, json={"config": {"allowedTools": ["nothing_*"]}})
    assert changed.status_code == 200
    assert await names(ada) == []
    assert (await ada.post(f"{AGENT}/tools/what_do_i_know", json={})).status_code == 404


@pytest.mark.parametrize("tool", ALL_TOOLS, ids=lambda tool: tool.name)
def test_every_tool_schema_is_valid_and_strict(tool: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(tool.schema)
    assert tool.schema["additionalProperties"] is False
    assert all("description" in schema for schema in tool.schema["properties"].values())


@pytest.mark.parametrize("tool", ALL_TOOLS, ids=lambda tool: tool.name)
def test_every_tool_has_an_output_schema_of_an_object(tool: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(tool.output_schema)
    assert tool.output_schema["type"] == "object"
    assert tool.results or tool.name == "approval_result"
    assert "$ref" not in json.dumps(tool.output_schema)


CALLS: dict[str, list[dict[str, Any]]] = {
    "forget": [{"id": "MEMORY"}],
    "memory": [
        {"command": "view", "path": "/memories"},
        {"command": "create", "path": "/memories/a", "file_text": "x"},
        {"command": "view", "path": "/memories/a"},
        {"command": "str_replace", "path": "/memories/a", "old_str": "x", "new_str": "y"},
        {"command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": "z"},
        {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"},
        {"command": "delete", "path": "/memories/b"},
    ],
    "memory_checkpoint": [{}, {}],
    "memory_history": [{}, {"include_diff": True}],
    "memory_search": [{"query": "luis"}],
    "my_stats": [{}],
    "recall": [{"query": "luis"}],
    "remember": [{"content": "Luis likes tea", "tags": ["tea"]}],
    "session_logs": [
        {"action": "list_sessions"},
        {"action": "read_session", "session_id": "SESSION"},
        {"action": "read_session", "session_id": "none"},
        {"action": "search", "query": "hello"},
        {"action": "recent", "session_id": "SESSION"},
    ],
    "skill": [{}, {"name": "pdf"}, {"name": "pdf", "path": "x.md"}],
    "what_do_i_know": [{}],
    "who_am_i": [{}],
    "workspace_write": [{"key": "k", "value": "v"}],
    "workspace_read": [{"key": "k"}],
    "workspace_list": [{}],
    "workspace_publish": [{"key": "k", "target_agent_id": "team"}],
    "workspace_delete": [{"key": "k"}],
    "write": [{"file_path": "a.txt", "content": "x\ny\n"}],
    "read": [{"file_path": "a.txt", "limit": 1}],
    "edit": [{"file_path": "a.txt", "old_string": "x", "new_string": "z"}],
    "ls": [{}],
    "glob": [{"pattern": "*.{txt,md}"}],
    "grep": [
        {"pattern": "y", "output_mode": mode, "context": 1}
        for mode in ("files_with_matches", "content", "count")
    ],
    "bash": [{"command": "true"}],
}
"""Calls whose results stand for all results; they run in order.

Results of bash, async_status and of calls that need an approval are validated in tests/tools.
"""


async def test_real_results_fit_the_output_schemas(ada: httpx.AsyncClient) -> None:
    tools = (await ada.get(f"{AGENT}/tools")).json()["items"]
    schemas = {tool["name"]: tool["outputSchema"] for tool in tools}
    assert schemas.keys() - CALLS.keys() == {"approval_result", "async_status"}
    await ada.post("/v1/agents", json={"slug": "team", "name": "Team", "isShared": True})
    skill = {"content": "---\nname: pdf\ndescription: Reads it\n---\n"}
    await ada.put(f"{AGENT}/files/skills/pdf/SKILL.md", json=skill)
    await ada.put(f"{AGENT}/files/skills/pdf/x.md", json={"content": "x"})
    session = (await ada.post(f"{AGENT}/sessions", json={})).json()["id"]
    entry = {"role": "user", "content": "hello"}
    await ada.post(f"{AGENT}/sessions/{session}/entries", json=entry)
    remembered = await call_tool(ada, "remember", arguments={"content": "to be forgotten"})
    values = {"SESSION": session, "MEMORY": remembered["structured"]["id"]}
    valid: set[str] = set()
    for name, calls in CALLS.items():
        for arguments in calls:
            sent = {key: values.get(str(value), value) for key, value in arguments.items()}
            reply = await call_tool(ada, name, arguments=sent)
            if not reply["isError"]:
                jsonschema.validate(reply["structured"], schemas[name])
                valid.add(name)
    assert CALLS.keys() - valid == {"bash"}, "this server has no sandbox"


async def test_each_dialect_describes_the_same_tools(ada: httpx.AsyncClient) -> None:
    by_dialect = {
        dialect: (await ada.get(f"{AGENT}/tools", params={"dialect": dialect})).json()["items"]
        for dialect in ("mcp", "openai", "anthropic")
    }
    for mcp, openai, anthropic in zip(*by_dialect.values(), strict=True):
        assert mcp["name"] == openai["function"]["name"] == anthropic["name"]
        assert mcp["inputSchema"] == anthropic["input_schema"]
        strict = openai["function"]["parameters"]
        assert set(strict["required"]) == set(strict["properties"])
        jsonschema.Draft202012Validator.check_schema(strict)
    assert (await ada.get(f"{AGENT}/tools", params={"dialect": "klingon"})).status_code == 400


NEEDED = {
    **{"query": "x", "content": "x", "id": "mem_1", "action": "list_sessions"},
    **{"key": "x", "value": "x", "target_agent_id": "agt_1"},
    **{"file_path": "x", "old_string": "x", "new_string": "y", "pattern": "x", "command": "true"},
    **{"statusId": "x", "approval_id": "x"},
}


@pytest.mark.parametrize("tool", [tool.name for tool in ALL_TOOLS])
async def test_a_null_optional_argument_counts_as_omitted(
    ada: httpx.AsyncClient, tool: str
) -> None:
    items = (await ada.get(f"{AGENT}/tools", params={"dialect": "openai"})).json()["items"]
    [strict] = [
        item["function"]["parameters"] for item in items if item["function"]["name"] == tool
    ]
    arguments = {
        name: None if "anyOf" in schema else schema.get("enum", [NEEDED[name]])[-1]
        for name, schema in strict["properties"].items()
    }
    jsonschema.validate(arguments, strict)
    assert "are invalid" not in (await call_tool(ada, tool, arguments=arguments))["content"]


async def test_null_for_a_required_or_unknown_argument_is_refused(ada: httpx.AsyncClient) -> None:
    for wrong in ({"query": None}, {"query": "x", "colour": None}):
        assert "are invalid" in (await call_tool(ada, "recall", arguments=wrong))["content"]


@pytest.mark.parametrize("after", [2**53, 2**63, 10**30])
async def test_an_out_of_range_number_is_reported_to_the_model(
    ada: httpx.AsyncClient, after: int
) -> None:
    session = (await ada.post(f"{AGENT}/sessions", json={})).json()["id"]
    arguments = {"action": "read_session", "session_id": session, "after": after}
    result = await call_tool(ada, "session_logs", arguments=arguments)
    assert "session_logs are invalid" in result["content"]


async def test_a_result_is_json_text_and_structured_content(ada: httpx.AsyncClient) -> None:
    result = await call_tool(ada, "what_do_i_know")
    assert result == {
        "content": '{"workspace_dir":"carrel://agents/kate","sections":[{"heading":"People",'
        '"bullets":["Luis prefers Spanish."],"extra_bullets":null}],"truncated":false}',
        "isError": False,
        "structured": {
            "workspace_dir": "carrel://agents/kate",
            "sections": [
                {"heading": "People", "bullets": ["Luis prefers Spanish."], "extra_bullets": None}
            ],
            "truncated": False,
        },
    }


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"limit": "many"}, {"section": 3}, {"colour": "red"}, {"limit": 51}]
)
async def test_invalid_arguments_are_reported_to_the_model(
    ada: httpx.AsyncClient, wrong: dict[str, Any]
) -> None:
    result = await call_tool(ada, "what_do_i_know", arguments=wrong)
    assert result["isError"]
    assert "what_do_i_know are invalid" in result["content"]


@pytest.mark.parametrize("scope", ["shared", "group", "", "MAIN"])
async def test_an_unknown_scope_is_shared(ada: httpx.AsyncClient, scope: str) -> None:
    result = await call_tool(ada, "what_do_i_know", scope=scope)
    assert result == {
        "content": "what_do_i_know is not available in a shared session",
        "isError": True,
    }


async def test_a_shared_run_overrides_the_requested_scope(ada: httpx.AsyncClient) -> None:
    run = (await ada.post("/v1/runs", json={"agentId": "kate", "scope": "shared"})).json()["runId"]
    assert (await call_tool(ada, "what_do_i_know", runId=run, scope="main"))["isError"]


async def test_a_tool_in_a_run_reads_the_runs_snapshot(ada: httpx.AsyncClient) -> None:
    run = (await ada.post("/v1/runs", json={"agentId": "kate"})).json()["runId"]
    await ada.put(f"{AGENT}/files/MEMORY.md", json={"content": "## Nothing\n"})
    then = await call_tool(ada, "what_do_i_know", runId=run)
    now = await call_tool(ada, "what_do_i_know")
    assert "Luis" in then["content"]
    assert "Luis" not in now["content"]


async def test_the_run_of_another_agent_is_404(ada: httpx.AsyncClient) -> None:
    await ada.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
    run = (await ada.post("/v1/runs", json={"agentId": "marco"})).json()["runId"]
    answer = await ada.post(f"{AGENT}/tools/what_do_i_know", json={"runId": run})
    assert answer.status_code == 404


@pytest.mark.parametrize("tool", [tool.name for tool in ALL_TOOLS if tool.writes])
async def test_a_read_only_key_cannot_call_a_writing_tool(
    server: FullApp, ada: httpx.AsyncClient, tool: str
) -> None:
    reader = await server.key(ada, Permission.WORKSPACE_READ)
    assert (await reader.post(f"{AGENT}/tools/{tool}", json={})).status_code == 403
