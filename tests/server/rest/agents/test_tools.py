"""An agent's tools over REST: lists, schemas and results."""

from __future__ import annotations

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
