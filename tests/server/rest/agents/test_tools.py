"""The tools of an agent over HTTP: which it has, how they are described, what comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import jsonschema
import pytest
from tests.support.full_app import FullApp, create_tool_config, open_full_app

from carrel.core.access import Permission
from carrel.tools import ALL

pytestmark = pytest.mark.anyio
AGENT = "/v1/agents/kate"
MEMORY = "## People\n- Luis prefers Spanish.\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def desk(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as found:
        yield found


@pytest.fixture
async def ada(desk: FullApp) -> httpx.AsyncClient:
    owner = await desk.owner()
    new = {"slug": "kate", "name": "Kate", "config": await create_tool_config(owner)}
    made = await owner.post("/v1/agents", json=new)
    assert made.status_code == 201, made.text
    put = await owner.put(f"{AGENT}/files/MEMORY.md", json={"content": MEMORY})
    assert put.status_code == 200, put.text
    return owner


async def called(who: httpx.AsyncClient, tool: str, **body: Any) -> dict[str, Any]:
    answer = await who.post(f"{AGENT}/tools/{tool}", json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def names(who: httpx.AsyncClient) -> list[str]:
    return [tool["name"] for tool in (await who.get(f"{AGENT}/tools")).json()["items"]]


async def test_an_agent_has_every_tool_in_order_of_name(ada: httpx.AsyncClient) -> None:
    assert await names(ada) == [tool.name for tool in ALL] == sorted(tool.name for tool in ALL)


async def test_patterns_say_which_tools_it_has_and_the_others_are_not_there(
    ada: httpx.AsyncClient,
) -> None:
    changed = await ada.patch(AGENT, json={"config": {"allowedTools": ["nothing_*"]}})
    assert changed.status_code == 200
    assert await names(ada) == []
    assert (await ada.post(f"{AGENT}/tools/what_do_i_know", json={})).status_code == 404


@pytest.mark.parametrize("tool", ALL, ids=lambda tool: tool.name)
def test_a_schema_is_one_and_strict(tool: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(tool.schema)
    assert tool.schema["additionalProperties"] is False
    assert all("description" in said for said in tool.schema["properties"].values())


async def test_each_dialect_describes_the_same_tools(ada: httpx.AsyncClient) -> None:
    told = {
        dialect: (await ada.get(f"{AGENT}/tools", params={"dialect": dialect})).json()["items"]
        for dialect in ("mcp", "openai", "anthropic")
    }
    for mcp, openai, anthropic in zip(*told.values(), strict=True):
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
    "statusId": "x",
}


@pytest.mark.parametrize("tool", [tool.name for tool in ALL])
async def test_what_a_strict_schema_lets_be_null_is_as_if_left_out(
    ada: httpx.AsyncClient, tool: str
) -> None:
    told = (await ada.get(f"{AGENT}/tools", params={"dialect": "openai"})).json()["items"]
    [strict] = [one["function"]["parameters"] for one in told if one["function"]["name"] == tool]
    arguments = {
        name: None if "anyOf" in said else NEEDED[name]
        for name, said in strict["properties"].items()
    }
    jsonschema.validate(arguments, strict)
    assert "are invalid" not in (await called(ada, tool, arguments=arguments))["content"]


async def test_null_is_no_value_of_what_is_needed_or_not_known(ada: httpx.AsyncClient) -> None:
    for wrong in ({"query": None}, {"query": "x", "colour": None}):
        assert "are invalid" in (await called(ada, "recall", arguments=wrong))["content"]


@pytest.mark.parametrize("after", [2**53, 2**63, 10**30])
async def test_a_number_that_no_entry_has_comes_back_to_the_model(
    ada: httpx.AsyncClient, after: int
) -> None:
    session = (await ada.post(f"{AGENT}/sessions", json={})).json()["id"]
    arguments = {"action": "read_session", "session_id": session, "after": after}
    told = await called(ada, "session_logs", arguments=arguments)
    assert "session_logs are invalid" in told["content"]


async def test_what_is_told_is_json_twice(ada: httpx.AsyncClient) -> None:
    told = await called(ada, "what_do_i_know")
    assert told == {
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
async def test_arguments_that_do_not_fit_come_back_to_the_model(
    ada: httpx.AsyncClient, wrong: dict[str, Any]
) -> None:
    told = await called(ada, "what_do_i_know", arguments=wrong)
    assert told["isError"]
    assert "what_do_i_know are invalid" in told["content"]


@pytest.mark.parametrize("scope", ["shared", "group", "", "MAIN"])
async def test_whatever_is_not_known_to_be_private_is_shared(
    ada: httpx.AsyncClient, scope: str
) -> None:
    told = await called(ada, "what_do_i_know", scope=scope)
    assert told == {
        "content": "what_do_i_know is not available in a shared session",
        "isError": True,
    }


async def test_a_shared_run_is_shared_whatever_else_is_said(ada: httpx.AsyncClient) -> None:
    run = (await ada.post("/v1/runs", json={"agentId": "kate", "scope": "shared"})).json()["runId"]
    assert (await called(ada, "what_do_i_know", runId=run, scope="main"))["isError"]


async def test_in_a_run_an_agent_knows_what_it_knew_when_that_began(ada: httpx.AsyncClient) -> None:
    run = (await ada.post("/v1/runs", json={"agentId": "kate"})).json()["runId"]
    await ada.put(f"{AGENT}/files/MEMORY.md", json={"content": "## Nothing\n"})
    then = await called(ada, "what_do_i_know", runId=run)
    now = await called(ada, "what_do_i_know")
    assert "Luis" in then["content"]
    assert "Luis" not in now["content"]


async def test_the_run_of_another_agent_is_not_there(ada: httpx.AsyncClient) -> None:
    await ada.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
    run = (await ada.post("/v1/runs", json={"agentId": "marco"})).json()["runId"]
    answer = await ada.post(f"{AGENT}/tools/what_do_i_know", json={"runId": run})
    assert answer.status_code == 404


@pytest.mark.parametrize("tool", [tool.name for tool in ALL if tool.writes])
async def test_a_key_that_may_only_read_cannot_call_what_writes(
    desk: FullApp, ada: httpx.AsyncClient, tool: str
) -> None:
    reader = await desk.key(ada, Permission.WORKSPACE_READ)
    assert (await reader.post(f"{AGENT}/tools/{tool}", json={})).status_code == 403
