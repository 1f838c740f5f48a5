"""A run as a runtime uses it, over every driver: start, tools, transcript and end."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.drivers import Awaited

from carrel_client.errors import InvalidResponse
from carrel_client.runtimes.agent_run import agent_run, tool_from_definition

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def running(api: Any, agent: str, *args: Any, **options: Any) -> AsyncIterator[Any]:
    """The block of a run, over any driver."""
    if not isinstance(api, Awaited):
        async with agent_run(api, agent, *args, **options) as run:
            yield run
        return
    block = agent_run(api._resource, agent, *args, **options)
    run = await asyncio.to_thread(block.__enter__)
    try:
        yield Awaited(run)
    except BaseException:
        await asyncio.to_thread(block.__exit__, *sys.exc_info())
        raise
    await asyncio.to_thread(block.__exit__, None, None, None)


@pytest.fixture
async def ada(api: Any) -> Any:
    await api.agents.create("ada", "Ada")
    return api.agent("ada")


async def statuses(api: Any) -> list[str]:
    return [run.status for run in await api.agent("ada").runs()]


async def test_run_starts_with_prompt_tools_and_frozen_files(api: Any, ada: Any) -> None:
    await ada.put("SOUL.md", "Be kind.")
    async with running(api, "ada", "user/42") as run:
        assert "Be kind." in run.prompt
        assert run.prompt_sha256 == hashlib.sha256(run.prompt.encode()).hexdigest()
        assert {"remember", "recall"} <= {tool.name for tool in run.tools}
        soul = next(file for file in run.files if file.path == "SOUL.md")
        assert soul.content == "Be kind."
        assert (run.session_id, run.agent, run.is_finished) == ("user/42", "ada", False)
    assert await statuses(api) == ["completed"]


async def test_entries_are_in_the_session_after_the_run(api: Any, ada: Any) -> None:
    async with running(api, "ada", "user/42") as run:
        run.record("user", "Hello?")
        await run.flush()
        session = await ada.sessions.get("user/42")
        assert [entry.content for entry in await session.recent()] == ["Hello?"]
        run.record("assistant", "Hi!", item={"type": "message", "text": "Hi!"})
    entries = await session.recent()
    assert [(entry.role, entry.run_id) for entry in entries] == [
        ("user", run.id),
        ("assistant", run.id),
    ]
    assert entries[1].item == {"type": "message", "text": "Hi!"}


async def test_more_entries_than_one_request_takes_are_sent_in_order(api: Any, ada: Any) -> None:
    async with running(api, "ada", "long") as run:
        for number in range(2001):
            run.record("user", str(number))
    session = await ada.sessions.get("long")
    assert session.entry_count == 2001
    assert [entry.content for entry in await session.recent(1002)][:2] == ["999", "1000"]


async def test_error_ends_the_run_as_failed_and_is_an_entry(api: Any, ada: Any) -> None:
    with pytest.raises(ValueError, match="no such model"):
        async with running(api, "ada", "user/42"):
            raise ValueError("no such model")
    assert await statuses(api) == ["failed"]
    [entry] = await (await ada.sessions.get("user/42")).recent()
    assert (entry.role, entry.content) == ("system", "Error: ValueError: no such model")


async def test_interrupt_ends_the_run_as_cancelled(api: Any, ada: Any) -> None:
    with pytest.raises(asyncio.CancelledError):
        async with running(api, "ada"):
            raise asyncio.CancelledError
    assert await statuses(api) == ["cancelled"]


async def test_run_that_was_finished_in_its_block_keeps_its_status(api: Any, ada: Any) -> None:
    async with running(api, "ada") as run:
        await run.finish("failed", error="the model gave up")
        assert run.is_finished
    assert await statuses(api) == ["failed"]


async def test_own_error_is_raised_when_the_run_cannot_be_ended(api: Any, ada: Any) -> None:
    with pytest.raises(KeyError):
        async with running(api, "ada", "user/42") as run:
            await run.run.cancel()
            raise KeyError("mine")
    assert await statuses(api) == ["cancelled"]


async def test_tool_is_called_in_the_run(api: Any, ada: Any) -> None:
    async with running(api, "ada", "user/42") as run:
        reply = await run.call_tool("remember", {"content": "Luis likes tea"}, call_id="call_1")
        again = await run.call_tool("remember", {"content": "Luis likes tea"}, call_id="call_1")
        assert not reply.is_error
        assert again == reply
        unknown = await run.call_tool("recall", {"nothing": 1})
        assert unknown.is_error
    assert [memory.content for memory in await ada.memories.list()] == ["Luis likes tea"]


async def test_call_that_needs_approval_waits_for_the_answer(api: Any, ada: Any) -> None:
    sandbox = await api.sandboxes.create("usual", {"permissionMode": "ask"})
    site = await api.workspaces.create("site")
    attached = [{"name": "site", "workspaceId": site.id}]
    await api.agents.change("ada", config={"sandbox": sandbox.id, "workspaces": attached})
    arguments = {"file_path": "a.txt", "content": "hello"}
    async with running(api, "ada", "user/42") as run:
        waiting = await run.call_tool("write", arguments, call_id="call_1", wait=False)
        assert waiting.approval.status == "requested"
        await api.approvals.answer(waiting.approval.id, True)
        reply = await run.call_tool("write", arguments, call_id="call_1")
        assert (reply.is_error, reply.structured["version"]) == (False, 1)
        denied = await run.call_tool("write", {**arguments, "file_path": "b.txt"}, wait=False)
        await api.approvals.answer(denied.approval.id, False, "not today")
        approval = await api.approvals.get(denied.approval.id)
        assert "not today" in approval.result.content


async def test_replay_has_the_same_prompt(api: Any, ada: Any) -> None:
    async with running(api, "ada", "user/42") as first:
        await ada.put("SOUL.md", "Be bold.")
    async with running(api, "ada", "user/43") as second:
        assert second.prompt_sha256 != first.prompt_sha256
    async with running(api, "ada", replay_of=first.id) as replay:
        assert replay.prompt_sha256 == first.prompt_sha256
        assert replay.run.replay_of == first.id


@pytest.mark.parametrize("dialect", ["mcp", "openai", "anthropic"])
async def test_tools_are_the_same_in_every_dialect(api: Any, ada: Any, dialect: str) -> None:
    async with running(api, "ada", dialect=dialect) as run:
        tool = next(tool for tool in run.tools if tool.name == "remember")
        assert tool.description
        assert "content" in tool.parameters["properties"]
        assert tool_from_definition(tool.definition) == tool


@pytest.mark.parametrize("definition", [{"name": "a"}, {"inputSchema": {}}, {"function": None}])
def test_definition_without_its_fields_is_refused(definition: Mapping[str, Any]) -> None:
    with pytest.raises(InvalidResponse):
        tool_from_definition(definition)
