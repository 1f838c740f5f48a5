"""Runs in sessions, one-request starts and provenance, over every driver."""

from __future__ import annotations

from typing import Any

import pytest

from carrel_client import Conflict, File, NewEntry, NotFound

pytestmark = pytest.mark.anyio

ODD_IDS = ("user/42", "..", "a.jsonl", "Ada ☕ 50%", "x" * 255)


async def create_agent(api: Any) -> Any:
    await api.agents.create("kate", "Kate")
    agent = api.agent("kate")
    await agent.put("SOUL.md", "I am {{AGENT_NAME}}.\n", reason="first words")
    return agent


@pytest.mark.parametrize("id", ODD_IDS)
async def test_any_text_is_a_session_id(api: Any, id: str) -> None:
    agent = await create_agent(api)
    session = await agent.sessions.start(id)
    await session.append("user", "hello")
    assert session.id == id
    chain = await agent.sessions.get(id)
    assert (chain.entry_count, len(await chain.lines())) == (1, 2)
    await chain.delete()
    with pytest.raises(NotFound):
        await agent.sessions.get(id)


async def test_entries_are_appended_together_and_taken_back(api: Any) -> None:
    agent = await create_agent(api)
    session = await agent.sessions.start("chat")
    call = {"type": "tool_use", "name": "search", "input": {"q": "tea"}}
    entries = [
        NewEntry(role="user", content="Is there tea?"),
        NewEntry(role="assistant", item=call, message_id="m-1"),
    ]
    first, second = await session.append_all(entries)
    assert (first.number, second.number, second.item) == (1, 2, call)
    assert second.content == 'search\n{"q":"tea"}'
    assert session.entry_count == 2
    popped = await session.pop()
    assert (popped.number, popped.item) == (2, call)
    assert (await session.append("user", "And?")).number == 3
    assert [entry.number for entry in await session.recent(2)] == [1, 3]
    cleared = await session.clear()
    assert cleared.entry_count == 0
    assert await session.pop() is None
    assert await session.recent() == ()
    await session.close()
    for refused in (session.pop, session.clear):
        with pytest.raises(Conflict):
            await refused()


async def test_a_run_starts_with_its_parts_in_a_session(api: Any) -> None:
    agent = await create_agent(api)
    include = ("files", "prompt", "tools")
    run = await agent.start_run("reply", session_id="chat", include=include, dialect="openai")
    parts = run.parts
    [soul] = [file for file in parts.files if file.path == "SOUL.md"]
    assert isinstance(soul, File)
    assert soul.content == "I am Kate.\n"
    assert parts.prompt == await run.prompt()
    assert {tool["type"] for tool in parts.tools} == {"function"}
    assert run.session_id == "chat"

    again = await agent.start_run(session_id="chat", include=include, if_none_match=parts.etag)
    assert again.parts.not_modified is False  # The tools are in another format.
    same = await agent.start_run(
        "reply", include=include, dialect="openai", if_none_match=parts.etag
    )
    assert (same.parts.not_modified, same.parts.files, same.parts.etag) == (True, None, parts.etag)
    assert (await agent.start_run("plain")).parts is None
    runs = await agent.runs(session_id="chat")
    assert [item.id for item in runs] == [again.id, run.id]


async def test_a_run_ends_with_its_entries_and_its_provenance(api: Any) -> None:
    agent = await create_agent(api)
    run = await agent.start_run("reply", session_id="chat")
    entries = [
        NewEntry(role="user", content="Who?"),
        NewEntry(role="assistant", content="Kate."),
    ]
    await run.finish(entries=entries)
    assert run.status == "completed"
    session = await agent.sessions.get("chat")
    assert session.run_id == run.id
    assert {entry.run_id for entry in await session.recent()} == {run.id}

    chain = await run.provenance()
    assert [(entry.session_id, entry.number) for entry in chain.entries] == [
        *(("chat", 1), ("chat", 2))
    ]
    [soul] = [file for file in chain.files if file.path == "SOUL.md"]
    assert (soul.in_prompt, soul.written.reason) == (True, "first words")
    pinned = [file for file in chain.files if file.file_class == "pinned"]
    assert {file.review.kind for file in pinned} == {"recorded"}
    answer = await session.provenance(2)
    assert answer.run["runId"] == run.id
    assert answer.entries[0].preview == "Kate."
    assert answer.files == chain.files
