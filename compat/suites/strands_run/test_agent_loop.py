"""A Strands agent on Carrel, with an offline model: two turns, tools, an approval, a replay."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from agent_fixture import SOUL, TOKEN, URL, AgentFixture, answer_approvals, create_agent
from offline_model import OfflineModel
from strands import Agent
from strands.session import RepositorySessionManager

from carrel_client import AgentRun, AsyncClient, Client, agent_run
from carrel_client.strands import CarrelSessionRepository, agent_options

BASH = ("bash", {"command": "echo hi > a.txt"})


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(URL, TOKEN) as client:
        yield client


@pytest.fixture
def agent(client: Client) -> AgentFixture:
    return create_agent(client)


def build_agent(run: AgentRun[Any], model: OfflineModel, **options: Any) -> Agent:
    run_options = agent_options(run, interrupts=options.pop("interrupts", False))
    return Agent(model=model, callback_handler=None, **run_options, **options)


def entries(client: Client, agent: AgentFixture, session: str) -> list[tuple[str, str]]:
    matches = client.agent(agent.slug).sessions.get(session).recent(50)
    return [(entry.role, entry.content.split("\n")[0]) for entry in matches]


def test_two_turns_with_tool_approval_memory_and_replay(
    client: Client, agent: AgentFixture
) -> None:
    remember = ("remember", {"content": "Luis drinks tea"})
    model = OfflineModel(remember, "Noted.", BASH, "Done.")
    with agent_run(client, agent.slug, "user/42") as first:
        assert SOUL in first.prompt
        strands = build_agent(first, model)
        assert str(strands("I drink tea.")).strip() == "Noted."
    assert client.agent(agent.slug).memories.list()[0].content == "Luis drinks tea"

    client.agent(agent.slug).put("SOUL.md", "You are bold.")
    with agent_run(client, agent.slug, "user/42") as second:
        assert "You are bold." in second.prompt
        strands = build_agent(second, model, messages=strands.messages, interrupts=True)
        result = strands("Write a file.")
        assert result.stop_reason == "interrupt"
        [interrupt] = result.interrupts or []
        assert interrupt.reason["tool"] == "bash"
        assert answer_approvals(client, agent.slug) == 1
        answer: Any = [{"interruptResponse": {"interruptId": interrupt.id, "response": "yes"}}]
        assert str(strands(answer)).strip() == "Done."
    assert client.workspace(agent.workspace).get("a.txt").content == "hi\n"

    roles = [role for role, _ in entries(client, agent, "user/42")]
    assert roles == ["user", "assistant", "tool", "assistant"] * 2
    runs = client.agent(agent.slug).runs(session_id="user/42")
    assert [run.status for run in runs] == ["completed", "completed"]
    assert model.prompts == [first.prompt] * 2 + [second.prompt] * 2

    with agent_run(client, agent.slug, replay_of=first.id) as replay:
        assert replay.prompt_sha256 == first.prompt_sha256 != second.prompt_sha256
        replayed = OfflineModel("Hello.")
        build_agent(replay, replayed)("Hello?")
        assert replayed.prompts == [first.prompt]


def test_call_waits_for_its_approval(client: Client, agent: AgentFixture) -> None:
    def approve() -> None:
        deadline = time.monotonic() + 60
        while not answer_approvals(client, agent.slug) and time.monotonic() < deadline:
            pass

    with agent_run(client, agent.slug) as run:
        person = threading.Thread(target=approve)
        person.start()
        build_agent(run, OfflineModel(BASH, "Done."))("Write a file.")
        person.join()
    assert client.workspace(agent.workspace).get("a.txt").content == "hi\n"


def test_denied_call_is_an_error_for_the_model(client: Client, agent: AgentFixture) -> None:
    with agent_run(client, agent.slug) as run:
        strands = build_agent(run, OfflineModel(BASH, "A pity."), interrupts=True)
        [interrupt] = strands("Write a file.").interrupts or []
        answer_approvals(client, agent.slug, approved=False)
        answer: Any = [{"interruptResponse": {"interruptId": interrupt.id, "response": "no"}}]
        strands(answer)
        block = next(
            block["toolResult"]
            for message in strands.messages
            for block in message["content"]
            if "toolResult" in block
        )
        assert block["status"] == "error"
        assert "by the test" in block["content"][0]["text"]


def test_failed_turn_ends_the_run_as_failed(client: Client, agent: AgentFixture) -> None:
    with pytest.raises(RuntimeError), agent_run(client, agent.slug, "failed") as run:
        build_agent(run, OfflineModel())("Hello?")
    assert client.run(run.id).status == "failed"
    assert [text for _, text in entries(client, agent, "failed")] == [
        "Hello?",
        "Error: RuntimeError: the model has no reply left",
    ]


def test_session_manager_and_run_share_a_session(client: Client, agent: AgentFixture) -> None:
    for text, reply in (("I am Luis.", "Hello, Luis."), ("Who am I?", "Luis.")):
        with agent_run(client, agent.slug, "user/43") as run:
            repository = CarrelSessionRepository(client, agent.slug)
            strands = Agent(
                agent_id=agent.slug,
                model=OfflineModel(reply),
                session_manager=RepositorySessionManager("user/43", repository),
                callback_handler=None,
                **agent_options(run, record=False),
            )
            strands(text)
    assert len(strands.messages) == 4
    transcript = [entry for entry in entries(client, agent, "user/43") if entry[0] != "system"]
    assert transcript == [
        ("user", "I am Luis."),
        ("assistant", "Hello, Luis."),
        ("user", "Who am I?"),
        ("assistant", "Luis."),
    ]


async def test_agent_with_an_awaiting_client(client: Client) -> None:
    agent = create_agent(client, "bypass")
    async with AsyncClient(URL, TOKEN) as awaiting, agent_run(awaiting, agent.slug) as run:
        await build_agent(run, OfflineModel(BASH, "Done.")).invoke_async("Write a file.")
    assert client.workspace(agent.workspace).get("a.txt").content == "hi\n"
