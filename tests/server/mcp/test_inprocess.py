"""MCP in process: elicitation, binary files, failures and subscriptions."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path as File
from typing import Any

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import BlobResourceContents, ElicitResult
from tests.support.stores import open_ports
from tests.support.tenants import add_person, create_tenant

from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import stacks
from carrel.core.access import Actor, CredentialKind, effective_permissions
from carrel.core.identifiers import Path
from carrel.ports import Ports
from carrel.server.mcp import McpRequest, Subscriptions, create_server
from carrel.tools.approved_calls import run_approvals
from carrel.tools.registry import ALL_TOOLS
from carrel.tools.tool import ApprovalCheck, Tool, ToolArguments, ToolContext

pytestmark = pytest.mark.anyio
FAILED: list[BaseException] = []


def record_failure(failure: BaseException) -> str:
    FAILED.append(failure)
    return "req_1"


class Arguments(ToolArguments, frozen=True):
    pass


async def _run(context: ToolContext, arguments: Arguments) -> object:
    return "done"


async def _gate(context: ToolContext, arguments: Arguments) -> ApprovalCheck:
    return ApprovalCheck(requires_approval=True)


async def _breaks(context: ToolContext, arguments: Arguments) -> object:
    raise ZeroDivisionError("canary")


LAUNCH = Tool("launch", "Launches.", Arguments, _run, writes=True, approval_check=_gate)
BREAKS = Tool("breaks", "Breaks.", Arguments, _breaks)


@pytest.fixture
async def ports(tmp_path: File, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ports]:
    monkeypatch.setattr("carrel.tools.calls.ALL_TOOLS", (BREAKS, LAUNCH, *ALL_TOOLS))
    FAILED.clear()
    async with open_ports(tmp_path) as opened:
        stop = asyncio.Event()
        running = asyncio.create_task(run_approvals(opened, stop))
        yield opened
        stop.set()
        await running


@asynccontextmanager
async def connect(ports: Ports, actor: Actor, mode: str, **more: Any) -> AsyncIterator[Client]:
    async def resolve_request(ctx: Any) -> McpRequest:
        return McpRequest(ports, actor, "kate")

    subscriptions = Subscriptions()
    server = create_server(resolve_request, record_failure, asyncio.Event(), subscriptions)
    try:
        async with Client(server, mode=mode, **more) as client:
            yield client
    finally:
        await subscriptions.close()


async def create_agent(ports: Ports, **facts: Any) -> Actor:
    _, owner = await create_tenant(ports)
    await agents.create(ports, owner, NewAgent("kate", "Kate", **facts))
    return owner


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_person_is_asked_in_the_middle_of_a_call(
    ports: Ports, mode: str, approved: bool
) -> None:
    owner = await create_agent(ports)

    async def person(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"approved": approved, "reason": "since"})

    async with connect(ports, owner, mode, elicitation_callback=person) as client:
        result = await client.call_tool("launch", {})
    assert result.is_error is not approved
    [content] = result.content
    expected = "done" if approved else "Error: denied by a person: since"
    assert getattr(content, "text", None) == expected


async def test_only_callers_who_may_answer_are_asked(ports: Ports) -> None:
    owner = await create_agent(ports)
    _, member = await add_person(ports, owner, "bob")
    agent = (await agents.patch(ports, owner, "kate", {"is_shared": True})).id
    itself = Actor(
        owner.tenant,
        "key_1",
        effective_permissions(CredentialKind.AGENT, None, None),
        CredentialKind.AGENT,
        agent=agent,
    )
    messages = []

    async def person(context: Any, params: Any) -> ElicitResult:
        messages.append(params.message)
        return ElicitResult(action="accept", content={"approved": True})

    for actor in (member, itself):
        for mode in ("legacy", "auto"):
            async with connect(ports, actor, mode, elicitation_callback=person) as client:
                result = await client.call_tool("launch", {})
                assert result.structured_content is not None
                assert result.structured_content["approval"]["status"] == "requested"
    assert messages == []


async def test_the_agents_own_person_is_asked(ports: Ports) -> None:
    _, owner = await create_tenant(ports)
    bob, member = await add_person(ports, owner, "bob")
    await agents.create(ports, owner, NewAgent("kate", "Kate", human=bob.id))

    async def person(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"approved": True})

    async with connect(ports, member, "auto", elicitation_callback=person) as client:
        assert not (await client.call_tool("launch", {})).is_error


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_binary_file_is_read_as_bytes(ports: Ports, mode: str) -> None:
    owner = await create_agent(ports)
    stack = await stacks.agent_stack(ports, owner, "kate")
    content, kind = bytes(range(256)), WriteOptions(type="application/octet-stream")
    await files.put(ports, stack, Path("a.bin"), content, owner, kind)
    async with connect(ports, owner, mode) as client:
        rows = {row.name: row for row in (await client.list_resources()).resources}
        assert rows["a.bin"].mime_type == "application/octet-stream"
        [contents] = (await client.read_resource(rows["a.bin"].uri)).contents
        assert isinstance(contents, BlobResourceContents)
        assert b64decode(contents.blob) == content


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_failure_returns_only_a_correlation_id(ports: Ports, mode: str) -> None:
    owner = await create_agent(ports)
    async with connect(ports, owner, mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("breaks", {})
    assert caught.value.data == {"error": "internal_error", "correlationId": "req_1"}
    assert "canary" not in str(caught.value)
    assert [type(failure) for failure in FAILED] == [ZeroDivisionError]


async def test_a_listener_receives_changes_of_every_layer(ports: Ports) -> None:
    owner = await create_agent(ports)
    stack = await stacks.agent_stack(ports, owner, "kate")
    uri = "carrel://agents/kate/files/SOUL.md"
    async with (
        connect(ports, owner, "auto") as client,
        client.listen(resource_subscriptions=[uri], resources_list_changed=True) as changes,
    ):
        await files.put(ports, stack[-1:], Path("SOUL.md"), b"from the defaults", owner)
        assert getattr(await anext(changes), "uri", None) == uri
        await files.put(ports, stack, Path("new.md"), b"x", owner)
        assert type(await anext(changes)).__name__ == "ResourcesListChanged"
    assert FAILED == []


async def test_a_stream_ends_when_its_agent_is_deleted(ports: Ports) -> None:
    owner = await create_agent(ports)
    defaults = await stacks.defaults_stack(ports, owner)
    async with (
        connect(ports, owner, "auto") as client,
        client.listen(resources_list_changed=True) as changes,
    ):
        await agents.delete(ports, owner, "kate")
        await files.put(ports, defaults, Path("new.md"), b"x", owner)
        assert [change async for change in changes] == []
    assert FAILED == []


async def test_results_are_structured_by_the_tools_output_schemas(ports: Ports) -> None:
    owner = await create_agent(ports)
    async with connect(ports, owner, "auto") as client:
        tools = (await client.list_tools()).tools
        assert all(tool.output_schema for tool in tools)
        arguments = {"command": "create", "path": "/memories/a.md", "file_text": "x"}
        created = await client.call_tool("memory", arguments)
        expected = {"path": "/memories/a.md", "type": "file", "version": 1, "redacted": []}
        assert created.structured_content == expected
        result = (await client.call_tool("memory_search", {"query": "x"})).structured_content
        assert result is not None
        assert [hit["path"] for hit in result["results"]] == ["/memories/memory/a.md"]
