"""What needs a client that can be asked at any time, and files that only a program writes."""

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
from tests.actions.cast import founded, joined
from tests.worlds import WORLDS

from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.overlay import stacks
from carrel.core.access import Actor, CredentialKind, granted
from carrel.core.identifiers import Path
from carrel.ports import Ports
from carrel.server.mcp import Subscriptions, Visit, made
from carrel.tools import ALL
from carrel.tools.approved_calls import run_approvals
from carrel.tools.tool import ApprovalCheck, Tool, ToolArguments, ToolContext

pytestmark = pytest.mark.anyio
FAILED: list[BaseException] = []


def tell(failure: BaseException) -> str:
    FAILED.append(failure)
    return "req_1"


class Arguments(ToolArguments, frozen=True):
    pass


async def _run(sitting: ToolContext, asked: Arguments) -> object:
    return "done"


async def _gate(sitting: ToolContext, asked: Arguments) -> ApprovalCheck:
    return ApprovalCheck(asks=True)


async def _breaks(sitting: ToolContext, asked: Arguments) -> object:
    raise ZeroDivisionError("canary")


LAUNCH = Tool("launch", "Launches.", Arguments, _run, writes=True, gate=_gate)
BREAKS = Tool("breaks", "Breaks.", Arguments, _breaks)


@pytest.fixture
async def world(tmp_path: File, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Ports]:
    monkeypatch.setattr("carrel.tools.calls.ALL", (BREAKS, LAUNCH, *ALL))
    FAILED.clear()
    async with WORLDS["memory"](tmp_path) as opened:
        stop = asyncio.Event()
        running = asyncio.create_task(run_approvals(opened, stop))
        yield opened
        stop.set()
        await running


@asynccontextmanager
async def visited(world: Ports, actor: Actor, mode: str, **more: Any) -> AsyncIterator[Client]:
    async def visiting(ctx: Any) -> Visit:
        return Visit(world, actor, "kate")

    subscriptions = Subscriptions()
    server = made(visiting, tell, asyncio.Event(), subscriptions)
    try:
        async with Client(server, mode=mode, **more) as client:
            yield client
    finally:
        await subscriptions.close()


async def hired(world: Ports, **facts: Any) -> Actor:
    _, owner = await founded(world)
    await agents.create(world, owner, NewAgent("kate", "Kate", **facts))
    return owner


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_person_is_asked_in_the_middle_of_a_call(
    world: Ports, mode: str, approved: bool
) -> None:
    owner = await hired(world)

    async def person(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"approved": approved, "reason": "since"})

    async with visited(world, owner, mode, elicitation_callback=person) as client:
        told = await client.call_tool("launch", {})
    assert told.is_error is not approved
    [content] = told.content
    expected = "done" if approved else "Error: denied by a person: since"
    assert getattr(content, "text", None) == expected


async def test_only_those_are_asked_whose_answer_would_count(world: Ports) -> None:
    owner = await hired(world)
    _, member = await joined(world, owner, "bob")
    agent = (await agents.get(world, owner, "kate")).id
    itself = Actor(
        owner.tenant,
        "key_1",
        granted(CredentialKind.AGENT, None, None),
        CredentialKind.AGENT,
        agent=agent,
    )
    asked = []

    async def person(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action="accept", content={"approved": True})

    for who in (member, itself):
        for mode in ("legacy", "auto"):
            async with visited(world, who, mode, elicitation_callback=person) as client:
                told = await client.call_tool("launch", {})
                assert told.structured_content is not None
                assert told.structured_content["approval"]["status"] == "requested"
    assert asked == []


async def test_the_agents_own_person_is_asked(world: Ports) -> None:
    _, owner = await founded(world)
    bob, member = await joined(world, owner, "bob")
    await agents.create(world, owner, NewAgent("kate", "Kate", human=bob.id))

    async def person(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"approved": True})

    async with visited(world, member, "auto", elicitation_callback=person) as client:
        assert not (await client.call_tool("launch", {})).is_error


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_file_that_is_no_text_is_read_as_bytes(world: Ports, mode: str) -> None:
    owner = await hired(world)
    stack = await stacks.agent_stack(world, owner, "kate")
    content, kind = bytes(range(256)), WriteOptions(type="application/octet-stream")
    await files.put(world, stack, Path("a.bin"), content, owner, kind)
    async with visited(world, owner, mode) as client:
        rows = {row.name: row for row in (await client.list_resources()).resources}
        assert rows["a.bin"].mime_type == "application/octet-stream"
        [found] = (await client.read_resource(rows["a.bin"].uri)).contents
        assert isinstance(found, BlobResourceContents)
        assert b64decode(found.blob) == content


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_of_a_failure_the_client_learns_an_id_alone(world: Ports, mode: str) -> None:
    owner = await hired(world)
    async with visited(world, owner, mode) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("breaks", {})
    assert caught.value.data == {"correlationId": "req_1"}
    assert "canary" not in str(caught.value)
    assert [type(one) for one in FAILED] == [ZeroDivisionError]


async def test_a_change_reaches_whoever_listens_however_the_layers_move(world: Ports) -> None:
    owner = await hired(world)
    stack = await stacks.agent_stack(world, owner, "kate")
    uri = "carrel://agents/kate/files/SOUL.md"
    async with (
        visited(world, owner, "auto") as client,
        client.listen(resource_subscriptions=[uri], resources_list_changed=True) as heard,
    ):
        await files.put(world, stack[-1:], Path("SOUL.md"), b"from the defaults", owner)
        assert getattr(await anext(heard), "uri", None) == uri
        await files.put(world, stack, Path("new.md"), b"x", owner)
        assert type(await anext(heard)).__name__ == "ResourcesListChanged"
    assert FAILED == []


async def test_a_stream_ends_when_its_agent_is_gone(world: Ports) -> None:
    owner = await hired(world)
    defaults = await stacks.defaults_stack(world, owner)
    async with (
        visited(world, owner, "auto") as client,
        client.listen(resources_list_changed=True) as heard,
    ):
        await agents.delete(world, owner, "kate")
        await files.put(world, defaults, Path("new.md"), b"x", owner)
        assert [change async for change in heard] == []
    assert FAILED == []
