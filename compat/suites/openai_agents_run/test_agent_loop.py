"""An agent of the OpenAI SDK on Carrel, with an offline model: two turns, approval, replay."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from agent_fixture import SOUL, TOKEN, URL, AgentFixture, answer_approvals, create_agent
from agents import Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from carrel_client import AsyncClient, Client, agent_run
from carrel_client.openai_agents import CarrelSession, load_manifest
from carrel_client.openai_agents import create_agent as openai_agent

set_tracing_disabled(True)
NUMBERS = itertools.count(1)


def call(name: str, **arguments: Any) -> Any:
    return [function_call(name, arguments, call_id=f"call_{next(NUMBERS)}")]


def say(text: str) -> Any:
    return [assistant_message(text)]


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(URL, TOKEN) as client:
        yield client


@pytest.fixture
def agent(client: Client) -> AgentFixture:
    return create_agent(client)


def test_two_turns_with_tool_approval_memory_and_replay(
    client: Client, agent: AgentFixture
) -> None:
    with agent_run(client, agent.slug, "user/42") as first:
        model = ScriptedModel([call("remember", content="Luis drinks tea"), say("Noted.")])
        session = CarrelSession(client, agent.slug, run=first)
        runtime = openai_agent(first, model=model)
        result = Runner.run_sync(runtime, "I drink tea.", session=session)
        assert result.final_output == "Noted."
    assert {sent.system_instructions for sent in model.calls} == {first.prompt}
    assert SOUL in first.prompt
    assert {tool.name for tool in model.calls[0].tools} == {tool.name for tool in first.tools}
    assert client.agent(agent.slug).memories.list()[0].content == "Luis drinks tea"

    client.agent(agent.slug).put("SOUL.md", "You are bold.")
    with agent_run(client, agent.slug, "user/42") as second:
        model = ScriptedModel([call("bash", command="echo hi > a.txt"), say("Done.")])
        session = CarrelSession(client, agent.slug, run=second)
        runtime = openai_agent(second, model=model, interrupts=True)
        result = Runner.run_sync(runtime, "Write a file.", session=session)
        [item] = result.interruptions
        assert item.name == "bash"
        assert answer_approvals(client, agent.slug) == 1
        state = result.to_state()
        state.approve(item)
        result = Runner.run_sync(runtime, state, session=session)
        assert result.final_output == "Done."
    assert len(model.calls[0].input) == 5, "the session has the first turn too"
    assert client.workspace(agent.workspace).get("a.txt").content == "hi\n"

    session_of_agent = client.agent(agent.slug).sessions.get("user/42")
    entries = session_of_agent.recent(20)
    turn = ["user", "assistant", "tool", "assistant"]
    assert [entry.role for entry in entries] == turn * 2
    assert [entry.run_id for entry in entries] == [first.id] * 4 + [second.id] * 4
    runs = client.agent(agent.slug).runs(session_id="user/42")
    assert [run.status for run in runs] == ["completed", "completed"]

    with agent_run(client, agent.slug, replay_of=first.id) as replay:
        assert replay.prompt_sha256 == first.prompt_sha256 != second.prompt_sha256


def test_denied_call_is_an_error_for_the_model(client: Client, agent: AgentFixture) -> None:
    with agent_run(client, agent.slug) as run:
        model = ScriptedModel([call("bash", command="rm -r ."), say("A pity.")])
        runtime = openai_agent(run, model=model, interrupts=True)
        result = Runner.run_sync(runtime, "Clean up.")
        answer_approvals(client, agent.slug, approved=False)
        state = result.to_state()
        state.approve(result.interruptions[0])
        result = Runner.run_sync(runtime, state)
        [output] = [item["output"] for item in result.to_input_list() if "output" in item]
        assert "by the test" in str(output)


def test_failed_turn_ends_the_run_as_failed(client: Client, agent: AgentFixture) -> None:
    with pytest.raises(Exception, match="script"), agent_run(client, agent.slug, "bad") as run:
        session = CarrelSession(client, agent.slug, run=run)
        Runner.run_sync(openai_agent(run, model=ScriptedModel([])), "Hello?", session=session)
    assert client.run(run.id).status == "failed"
    entries = client.agent(agent.slug).sessions.get("bad").recent()
    assert [entry.role for entry in entries] == ["user", "system"]
    items = asyncio.run(CarrelSession(client, agent.slug, "bad").get_items())
    assert [item.get("content") for item in items] == ["Hello?"]


def test_agent_with_an_awaiting_client(client: Client) -> None:
    agent = create_agent(client, "bypass")

    async def turn() -> Any:
        async with AsyncClient(URL, TOKEN) as awaiting, agent_run(awaiting, agent.slug) as run:
            model = ScriptedModel([call("bash", command="echo hi > a.txt"), say("Done.")])
            session = CarrelSession(awaiting, agent.slug, run=run)
            await Runner.run(openai_agent(run, model=model), "Write.", session=session)
            return await load_manifest(run)

    manifest = asyncio.run(turn())
    assert client.workspace(agent.workspace).get("a.txt").content == "hi\n"
    assert manifest.entries["SOUL.md"].content == SOUL.encode()
