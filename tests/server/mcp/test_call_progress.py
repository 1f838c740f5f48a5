"""Completion of paths, progress of calls and log messages over MCP."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import LOG_LEVEL_META_KEY, PromptReference, ResourceTemplateReference
from tests.server.mcp.test_wire import HEAD, rpc_request
from tests.support.mcp_clients import MODERN, MODES, McpServer

from carrel.server.mcp.call_progress import LogLevel

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("mode", MODES)
Reference = PromptReference | ResourceTemplateReference
STAGES = ["started", "waiting for other commands", "reading the files", "running", "saving changes"]


async def agent_with_bash(server: McpServer) -> str:
    """Create an agent that runs commands without approval; return its slug."""
    async with server.as_() as owner:
        mode = {"permissionMode": "bypass"}
        sandbox = await owner.post("/accounts/me/sandboxes", json={"name": "free", "config": mode})
        assert sandbox.status_code == 201, sandbox.text
        workspace = (await owner.post("/accounts/me/workspaces", json={"name": "w"})).json()
    attached = [{"name": "w", "workspaceId": workspace["workspaceId"]}]
    config = {"sandbox": sandbox.json()["sandboxId"], "workspaces": attached}
    return await server.agent(config=config)


async def put_files(server: McpServer, slug: str, *paths: str) -> None:
    async with server.as_() as owner:
        for path in paths:
            url = f"/v1/agents/{slug}/files/{path}"
            assert (await owner.put(url, json={"content": "x"})).status_code == 200


def file_template(slug: str) -> ResourceTemplateReference:
    return ResourceTemplateReference(uri=f"carrel://agents/{slug}/files/{{+path}}")


def log_level(level: str) -> Any:
    return {LOG_LEVEL_META_KEY: level}


@both
async def test_paths_are_completed_from_the_files_that_the_caller_may_see(
    server: McpServer, mode: str
) -> None:
    slug = await server.agent()
    await put_files(server, slug, "notes/b.md", "notes/a.md", "guide/start.md")
    argument = {"name": "path", "value": "notes/"}
    async with server.client(slug, mode) as client:
        completion = (await client.complete(file_template(slug), argument)).completion
        assert (completion.values, completion.total, completion.has_more) == (
            ["notes/a.md", "notes/b.md"],
            2,
            False,
        )
    async with server.client(slug, mode, query="?scope=shared") as client:
        completion = (await client.complete(file_template(slug), argument)).completion
        assert (completion.values, completion.total) == ([], 0)


async def test_more_than_a_hundred_paths_are_counted(server: McpServer) -> None:
    slug = await server.agent()
    async with server.as_() as owner:
        writes = [{"op": "put", "path": f"many/{n:03}.md", "content": "x"} for n in range(101)]
        sent = await owner.post(f"/v1/agents/{slug}/commits", json={"writes": writes})
        assert sent.status_code == 200, sent.text
    async with server.client(slug) as client:
        result = await client.complete(file_template(slug), {"name": "path", "value": "many/"})
    completion = result.completion
    assert (len(completion.values), completion.total, completion.has_more) == (100, 101, True)


@both
async def test_the_scope_of_the_prompt_is_completed_and_nothing_else(
    server: McpServer, mode: str
) -> None:
    slug, other = await server.agent(), await server.agent()
    references: list[tuple[Reference, str, list[str]]] = [
        (PromptReference(name="system"), "scope", ["shared"]),
        (PromptReference(name="system"), "colour", []),
        (PromptReference(name="missing"), "scope", []),
        (file_template(other), "path", []),
        (file_template(slug), "name", []),
    ]
    async with server.client(slug, mode) as client:
        for reference, name, values in references:
            result = await client.complete(reference, {"name": name, "value": "s"})
            assert result.completion.values == values


@both
async def test_a_client_that_asks_for_progress_receives_the_stages_of_a_command(
    server: McpServer, mode: str
) -> None:
    slug = await agent_with_bash(server)
    reports: list[tuple[float, str | None]] = []

    async def receive(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, message))

    async with server.client(slug, mode) as client:
        call = {"command": "echo secret > a.txt"}
        done = await client.call_tool("bash", call, progress_callback=receive)
        assert not done.is_error, done
    # A stage that lasts is reported again.
    assert list(dict.fromkeys(message for _, message in reports)) == [*STAGES, "finished"]
    assert [number for number, _ in reports] == list(range(1, len(reports) + 1))


async def test_without_a_progress_token_a_response_is_plain_json(server: McpServer) -> None:
    slug = await server.agent()
    call = rpc_request("tools/call", name="who_am_i", arguments={})
    token: dict[str, Any] = {"_meta": {"progressToken": 7}}
    with_token = rpc_request("tools/call", name="who_am_i", arguments={}, **token)
    async with server.as_() as wire:
        for body, media_type in ((call, "application/json"), (with_token, "text/event-stream")):
            answer = await wire.post(f"/mcp/agents/{slug}", json=body, headers=HEAD)
            assert answer.headers["content-type"].partition(";")[0] == media_type


async def test_log_messages_name_stages_and_no_contents(server: McpServer) -> None:
    slug = await agent_with_bash(server)
    messages: list[Any] = []

    async def receive(params: Any) -> None:
        messages.append((params.level, params.logger, params.data))

    async with server.client(slug, MODERN, logging_callback=receive) as client:
        await client.call_tool("bash", {"command": "true"}, meta=log_level("info"))
        stages = list(dict.fromkeys(data["stage"] for _, _, data in messages))
        assert stages == [*STAGES, "finished"]
        assert {row[:2] for row in messages} == {("info", "carrel.tools")}
        assert all(data.keys() == {"tool", "stage"} for _, _, data in messages)
        messages.clear()
        await client.call_tool("bash", {"command": "true"}, meta=log_level("error"))
        await client.call_tool("bash", {"command": "true"})
    assert messages == []


async def test_a_client_with_a_handshake_finds_completions_and_may_set_a_log_level(
    server: McpServer,
) -> None:
    async with server.client(await server.agent(), "legacy") as client:
        assert client.server_capabilities.completions is not None
        assert client.server_capabilities.logging is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            await client.set_logging_level("info")


def test_a_log_level_includes_itself_and_what_is_more_severe() -> None:
    level = LogLevel()
    assert (level.includes("notice"), level.includes("warning")) == (False, True)
    level.set("debug")
    assert level.includes("debug")
