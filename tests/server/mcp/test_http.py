"""MCP over HTTP with the official client: tools, files, prompt, subscriptions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path as File
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import TextContent, TextResourceContents
from tests.support.mcp_clients import MODES, McpServer, meta, run_mcp_server, text_of

pytestmark = pytest.mark.anyio
both = pytest.mark.parametrize("mode", MODES)


async def write(server: McpServer, slug: str, path: str, content: str) -> None:
    async with server.as_() as owner:
        put = await owner.put(f"/v1/agents/{slug}/files/{path}", json={"content": content})
        assert put.status_code == 200, put.text


@both
async def test_the_tool_list_equals_the_rest_list(server: McpServer, mode: str) -> None:
    slug = await server.agent()
    async with server.as_() as owner, server.client(slug, mode) as client:
        tools = [
            tool.model_dump(by_alias=True, exclude_none=True)
            for tool in (await client.list_tools()).tools
        ]
        assert tools == (await owner.get(f"/v1/agents/{slug}/tools")).json()["items"]
        by_name = {tool["name"]: tool["annotations"] for tool in tools}
        assert by_name["workspace_read"] == {"readOnlyHint": True, "openWorldHint": False}
        assert by_name["workspace_write"] == {
            **{"readOnlyHint": False, "openWorldHint": False},
            **{"destructiveHint": True, "idempotentHint": True},
        }
        assert all("outputSchema" in tool for tool in tools)
        await owner.patch(f"/v1/agents/{slug}", json={"config": {"allowedTools": ["workspace_r*"]}})
    async with server.client(slug, mode) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["workspace_read"]
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool("workspace_list", {})


@both
async def test_a_tool_returns_text_and_structured_content(server: McpServer, mode: str) -> None:
    slug = await server.agent()
    async with server.client(slug, mode) as client:
        key = f"{slug}/é"
        done = await client.call_tool("workspace_write", {"key": key, "value": "é"})
        assert not done.is_error
        assert done.structured_content == {"status": "written", "key": key, "version": 1}
        listed = await client.call_tool("workspace_list", {"prefix": slug})
        assert text_of(listed).startswith(f'[{{"key":"{key}"')
        assert listed.structured_content is not None
        assert [item["key"] for item in listed.structured_content["items"]] == [key]


@both
async def test_recoverable_errors_are_returned_to_the_model(server: McpServer, mode: str) -> None:
    slug = await server.agent()
    reader = await server.key(kind="service", scopes=["workspace:read"])
    async with server.client(slug, mode) as client:
        for arguments in ({}, {"key": 1}, {"key": "x", "colour": "red"}):
            wrong = await client.call_tool("workspace_read", arguments)
            assert wrong.is_error
            assert "are invalid" in text_of(wrong)
        gone = await client.call_tool("workspace_read", {"key": "x"})
        assert (gone.is_error, text_of(gone)) == (True, "no such item: 'x'")
        with pytest.raises(MCPError, match="no tool 'nothing'"):
            await client.call_tool("nothing", {})
    async with server.client(slug, mode, reader) as client:
        forbidden = await client.call_tool("remember", {"content": "x"})
        assert (forbidden.is_error, "workspace:write" in text_of(forbidden)) == (True, True)


async def test_a_damaged_resource_is_corrupt_by_name(tmp_path: File) -> None:
    with run_mcp_server(tmp_path) as server:
        slug = await server.agent()
        await write(server, slug, "notes/a.md", "bytes that decay")
        with closing(sqlite3.connect(tmp_path / "carrel.db")) as db:
            change = "UPDATE content SET body = ? WHERE body = ?"
            assert db.execute(change, (b"bytes that decax", b"bytes that decay")).rowcount
            db.commit()
        async with server.client(slug, MODES[0]) as client:
            with pytest.raises(MCPError, match=r"notes/a\.md") as raised:
                await client.read_resource(f"carrel://agents/{slug}/files/notes/a.md")
        assert raised.value.error.data["error"] == "corrupt"


@both
async def test_files_are_resources(server: McpServer, mode: str) -> None:
    slug = await server.agent()
    await write(server, slug, "notes/ü b.md", "for {{AGENT_NAME}}")
    async with server.client(slug, mode) as client:
        rows = {row.name: row for row in (await client.list_resources()).resources}
        row = rows["notes/ü b.md"]
        assert row.uri == f"carrel://agents/{slug}/files/notes/%C3%BC%20b.md"
        assert row.mime_type == "text/markdown"
        assert "GUARDRAILS.md" in rows
        [content] = (await client.read_resource(row.uri)).contents
        assert isinstance(content, TextResourceContents)
        assert (content.text, content.uri) == (f"for {slug}", row.uri)
        [template, _] = (await client.list_resource_templates()).resource_templates
        assert template.uri_template == f"carrel://agents/{slug}/files/{{+path}}"
        for wrong in ("nothing.md", "../x", "", "%FF", "a%00b"):
            with pytest.raises(MCPError, match="no such resource"):
                await client.read_resource(f"carrel://agents/{slug}/files/{wrong}")
        for wrong in ("carrel://agents/other/files/SOUL.md", "file:///etc/passwd", "x"):
            with pytest.raises(MCPError, match="no such resource"):
                await client.read_resource(wrong)


@both
async def test_many_files_are_listed_in_pages(server: McpServer, mode: str) -> None:
    slug = await server.agent()
    for n in range(205):
        await write(server, slug, f"many/{n:03}.md", "x")
    async with server.client(slug, mode) as client:
        names: list[str] = []
        cursor = None
        pages = 0
        while pages == 0 or cursor:
            page = await client.list_resources(cursor=cursor)
            names += [row.name for row in page.resources]
            cursor, pages = page.next_cursor, pages + 1
        assert (pages, len(names), names) == (2, len(set(names)), sorted(names))
        assert [name for name in names if name.startswith("many/")] == [
            f"many/{n:03}.md" for n in range(205)
        ]
        with pytest.raises(MCPError, match="cursor"):
            await client.list_resources(cursor="!")


def prompt_text(result: Any) -> str:
    [message] = result.messages
    assert isinstance(message.content, TextContent)
    return message.content.text


@both
async def test_the_system_prompt_is_a_prompt(server: McpServer, mode: str) -> None:
    slug = await server.agent()
    await write(server, slug, "MEMORY.md", "canary")
    async with server.as_() as owner, server.client(slug, mode) as client:
        [prompt] = (await client.list_prompts()).prompts
        assert prompt.name == "system"
        for scope in ("main", "shared"):
            text = (await owner.get(f"/v1/agents/{slug}/prompt", params={"scope": scope})).json()
            assert prompt_text(await client.get_prompt("system", {"scope": scope})) == text["text"]
        assert "canary" in prompt_text(await client.get_prompt("system"))
        assert "canary" not in prompt_text(await client.get_prompt("system", {"scope": "party"}))
        for name, arguments in (("other", {}), ("system", {"colour": "red"})):
            with pytest.raises(MCPError):
                await client.get_prompt(name, arguments)


@both
async def test_a_shared_scope_in_the_url_cannot_be_overridden(server: McpServer, mode: str) -> None:
    slug = await server.agent()
    await write(server, slug, "MEMORY.md", "## People\n- canary\n")
    uri = f"carrel://agents/{slug}/files/MEMORY.md"
    main = meta(scope="main")
    async with server.client(slug, mode, query="?scope=shared") as client:
        result = await client.call_tool("what_do_i_know", {}, meta=main)
        assert (result.is_error, "shared session" in text_of(result)) == (True, True)
        names = [row.name for row in (await client.list_resources(meta=main)).resources]
        assert "MEMORY.md" not in names
        assert "SOUL.md" in names
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource(uri, meta=main)
        assert "canary" not in prompt_text(
            await client.get_prompt("system", {"scope": "main"}, meta=main)
        )
    async with server.client(slug, mode) as client:
        shared = meta(scope="shared")
        assert (await client.call_tool("what_do_i_know", {}, meta=shared)).is_error
        assert not (await client.call_tool("what_do_i_know", {})).is_error
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource(uri, meta=shared)


@both
async def test_a_run_reads_its_snapshot(server: McpServer, mode: str) -> None:
    slug = await server.agent()
    await write(server, slug, "MEMORY.md", "## Then\n- then\n")
    async with server.as_() as owner:
        run = (await owner.post("/v1/runs", json={"agentId": slug})).json()["runId"]
        private = (await owner.post("/v1/runs", json={"agentId": slug, "scope": "shared"})).json()
    await write(server, slug, "MEMORY.md", "## Now\n- now\n")
    uri = f"carrel://agents/{slug}/files/MEMORY.md"
    async with server.client(slug, mode, query=f"?run={run}") as client:
        [content] = (await client.read_resource(uri)).contents
        assert isinstance(content, TextResourceContents)
        assert "then" in content.text
        assert "then" in prompt_text(await client.get_prompt("system"))
        assert "then" in text_of(await client.call_tool("what_do_i_know", {}))
        with pytest.raises(MCPError, match="differs from that of this connection"):
            await client.call_tool("what_do_i_know", {}, meta=meta(run=private["runId"]))
        with pytest.raises(MCPError, match="is not shared"):
            await client.get_prompt("system", {"scope": "shared"})
    async with server.client(slug, mode) as client:
        shared = meta(run=private["runId"])
        assert (await client.call_tool("what_do_i_know", {}, meta=shared)).is_error
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource(uri, meta=shared)
        for wrong in (meta(run="run_none"), meta(session="x"), meta(scope=1)):
            with pytest.raises(MCPError):
                await client.call_tool("who_am_i", {}, meta=wrong)


@both
async def test_a_call_with_an_id_runs_once(server: McpServer, mode: str) -> None:
    slug = await server.agent()
    async with server.client(slug, mode) as client:
        named = meta(call="call-1")
        for _ in range(2):
            done = await client.call_tool(
                "workspace_write", {"key": slug, "value": "v"}, meta=named
            )
            assert done.structured_content == {"status": "written", "key": slug, "version": 1}
        other = await client.call_tool("workspace_write", {"key": slug, "value": "w"}, meta=named)
        assert (other.is_error, "used for a different call" in text_of(other)) == (True, True)


@both
async def test_an_agents_own_key_works_only_on_its_agent(server: McpServer, mode: str) -> None:
    slug, other = await server.agent(), await server.agent()
    token = await server.own_key(slug)
    async with server.client(slug, mode, token) as client:
        result = await client.call_tool("who_am_i", {})
        assert result.structured_content is not None
        assert result.structured_content["agent_id"] == slug
    async with server.as_(token) as wire:
        assert (await wire.post(f"/mcp/agents/{other}", json={})).status_code == 404


async def test_a_listening_client_receives_changes(server: McpServer) -> None:
    slug, other = await server.agent(), await server.agent()
    await write(server, slug, "notes/a.md", "1")
    uri = f"carrel://agents/{slug}/files/notes/a.md"
    async with (
        server.client(slug) as client,
        client.listen(resources_list_changed=True, resource_subscriptions=[uri]) as changes,
    ):
        await write(server, other, "notes/a.md", "of another")
        await write(server, slug, "notes/b.md", "new, and not asked for")
        assert type(await anext(changes)).__name__ == "ResourcesListChanged"
        await write(server, slug, "notes/a.md", "2")
        changed = await anext(changes)
        assert getattr(changed, "uri", None) == uri


async def test_capabilities_match_the_supported_notifications(server: McpServer) -> None:
    slug = await server.agent()
    async with server.client(slug, "auto") as client:
        capabilities = client.server_capabilities
        assert capabilities.resources is not None
        assert (capabilities.resources.subscribe, capabilities.resources.list_changed) == (
            True,
            True,
        )
        assert capabilities.tools is not None
        assert not capabilities.tools.list_changed
    async with server.client(slug, "legacy") as client:
        capabilities = client.server_capabilities
        assert capabilities.resources is not None
        assert not (capabilities.resources.subscribe or capabilities.resources.list_changed)
