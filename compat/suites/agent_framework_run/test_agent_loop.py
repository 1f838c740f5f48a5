"""An agent of Agent Framework on Carrel: two turns, tools, an approval, a replay, offline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from agent_fixture import SOUL, TOKEN, URL, AgentFixture, answer_approvals, create_agent
from agent_framework import Agent, AgentSession, FileAccessProvider
from offline_model import OfflineModel

from carrel_client import AgentRun, AsyncClient, Client, agent_run
from carrel_client.agent_framework import (
    CarrelContextProvider,
    CarrelFileStore,
    CarrelHistoryProvider,
)

BASH = ("bash", {"command": "echo hi > a.txt"})


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(URL, TOKEN) as client:
        yield client


@pytest.fixture
async def awaiting() -> AsyncIterator[AsyncClient]:
    async with AsyncClient(URL, TOKEN) as awaiting:
        yield awaiting


@pytest.fixture
def agent(client: Client) -> AgentFixture:
    return create_agent(client)


def build_agent(
    client: Any, agent: AgentFixture, run: AgentRun[Any], model: OfflineModel
) -> Agent[Any]:
    """The history is in the run's session, and is written by the history provider alone."""
    providers = [
        CarrelHistoryProvider(client, agent.slug),
        CarrelContextProvider(run, record=False),
    ]
    return Agent(model, context_providers=providers)


async def approve(client: Client, agent: AgentFixture, approved: bool = True) -> None:
    """Answer the first approval that is requested."""
    while not await asyncio.to_thread(answer_approvals, client, agent.slug, approved):
        pass


async def test_two_turns_with_tool_approval_memory_and_replay(
    client: Client, awaiting: AsyncClient, agent: AgentFixture
) -> None:
    model = OfflineModel(("remember", {"content": "Luis drinks tea"}), "Noted.", BASH, "Done.")
    async with agent_run(awaiting, agent.slug, "user/42") as first:
        assert SOUL in first.prompt
        built = build_agent(awaiting, agent, first, model)
        answer = await built.run("I drink tea.", session=AgentSession(session_id="user/42"))
        assert answer.text == "Noted."
    assert client.agent(agent.slug).memories.list()[0].content == "Luis drinks tea"

    client.agent(agent.slug).put("SOUL.md", "You are bold.")
    async with agent_run(awaiting, agent.slug, "user/42") as second:
        assert "You are bold." in second.prompt
        built = build_agent(awaiting, agent, second, model)
        session = AgentSession(session_id="user/42")
        turn = built.run("Write a file.", session=session)
        answer, _ = await asyncio.gather(turn, approve(client, agent))
        assert answer.text == "Done."
    assert client.workspace(agent.workspace).get("a.txt").content == "hi\n"
    assert len(model.requests[-1]) == 7, "the model has seen the first turn"

    entries = client.agent(agent.slug).sessions.get("user/42").recent(20)
    assert [entry.role for entry in entries] == ["user", "assistant", "tool", "assistant"] * 2
    assert {entry.run_id for entry in entries} == {first.id, second.id}
    runs = client.agent(agent.slug).runs(session_id="user/42")
    assert [run.status for run in runs] == ["completed", "completed"]
    assert model.prompts == [first.prompt] * 2 + [second.prompt] * 2

    async with agent_run(awaiting, agent.slug, replay_of=first.id) as replay:
        assert replay.prompt_sha256 == first.prompt_sha256 != second.prompt_sha256
        replayed = OfflineModel("Hello.")
        await build_agent(awaiting, agent, replay, replayed).run("Hello?")
        assert replayed.prompts == [first.prompt]


async def test_denied_call_is_an_error_for_the_model(
    client: Client, awaiting: AsyncClient, agent: AgentFixture
) -> None:
    async with agent_run(awaiting, agent.slug) as run:
        model = OfflineModel(BASH, "A pity.")
        turn = build_agent(awaiting, agent, run, model).run("Write.")
        await asyncio.gather(turn, approve(client, agent, approved=False))
    [result] = model.requests[-1][-1].contents
    assert str(result.result).startswith("Error: ")
    assert "by the test" in str(result.result)


async def test_failed_turn_ends_the_run_as_failed(
    client: Client, awaiting: AsyncClient, agent: AgentFixture
) -> None:
    with pytest.raises(Exception, match="no reply left"):
        async with agent_run(awaiting, agent.slug, "failed") as run:
            provider = CarrelContextProvider(run)
            await Agent(OfflineModel(), context_providers=[provider]).run("Hello?")
    assert client.run(run.id).status == "failed"
    first, last = client.agent(agent.slug).sessions.get("failed").recent()
    assert first.content == "Hello?"
    assert last.content.startswith("Error: ")
    assert last.content.endswith("the model has no reply left")


async def test_provider_alone_records_the_transcript(
    client: Client, awaiting: AsyncClient, agent: AgentFixture
) -> None:
    async with agent_run(awaiting, agent.slug, "alone") as run:
        built = Agent(OfflineModel("Hi.", "Bye."), context_providers=[CarrelContextProvider(run)])
        session = built.create_session()
        await built.run("Hello?", session=session)
        async for _ in built.run("And now?", session=session, stream=True):
            pass
    entries = client.agent(agent.slug).sessions.get("alone").recent()
    assert [entry.content for entry in entries] == ["Hello?", "Hi.", "And now?", "Bye."]
    history = CarrelHistoryProvider(client, agent.slug)
    assert [message.text for message in await history.get_messages("alone")] == [
        "Hello?",
        "Hi.",
        "And now?",
        "Bye.",
    ]


async def test_memories_that_match_are_given_to_the_model(
    client: Client, awaiting: AsyncClient, agent: AgentFixture
) -> None:
    client.agent(agent.slug).memories.remember("Luis drinks tea")
    async with agent_run(awaiting, agent.slug) as run:
        model = OfflineModel("Tea.")
        provider = CarrelContextProvider(run, memories=3)
        await Agent(model, context_providers=[provider]).run("What does Luis drink?")
    assert "- Luis drinks tea" in model.requests[0][0].text


async def test_file_tools_of_the_framework_write_to_the_workspace(
    client: Client, awaiting: AsyncClient, agent: AgentFixture
) -> None:
    store = CarrelFileStore(awaiting.workspace(agent.workspace))
    provider = FileAccessProvider(
        store=store, disable_readonly_tool_approval=True, disable_write_tool_approval=True
    )
    async with agent_run(awaiting, agent.slug) as run:
        model = OfflineModel(
            ("file_access_write", {"file_name": "a.md", "content": "one\ntwo\n"}),
            ("file_access_grep", {"regex_pattern": "TWO"}),
            "Done.",
        )
        providers = [CarrelContextProvider(run), provider]
        await Agent(model, context_providers=providers).run("Write.")
    assert client.workspace(agent.workspace).get("a.md").content == "one\ntwo\n"
    assert "two" in str(model.requests[-1][-1].contents[0].result)


async def test_agent_with_a_blocking_client(client: Client) -> None:
    agent = create_agent(client, "bypass")
    with agent_run(client, agent.slug) as run:
        answer = await build_agent(client, agent, run, OfflineModel(BASH, "Done.")).run("Write.")
        assert answer.text == "Done."
    assert client.workspace(agent.workspace).get("a.txt").content == "hi\n"
