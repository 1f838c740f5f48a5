"""An ADK agent on Carrel, with an offline model: two turns, tools, an approval, a replay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from agent_fixture import SOUL, TOKEN, URL, AgentFixture, answer_approvals, create_agent
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.tools import load_artifacts, load_memory
from google.genai import types
from offline_model import OfflineModel

from carrel_client import AgentRun, AsyncClient, Client, agent_run
from carrel_client.google_adk import (
    CarrelArtifacts,
    CarrelMemories,
    CarrelSessions,
    RunPlugin,
    agent_options,
)

BASH = ("bash", {"command": "echo hi > a.txt"})
CHAT = {"user_id": "luis", "session_id": "chat"}


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


def build_runner(
    client: Any, agent: AgentFixture, run: AgentRun[Any], model: OfflineModel, **options: Any
) -> Runner:
    record, tools = options.get("record", True), options.get("tools", [])
    run_options = agent_options(run)
    run_options["tools"] += tools
    root = LlmAgent(name="ada", model=model, **run_options)
    return Runner(
        app=App(name="app", root_agent=root, plugins=[RunPlugin(run)] if record else []),
        session_service=CarrelSessions(client, agent.slug),
        artifact_service=CarrelArtifacts(client.workspace(agent.workspace)),
        memory_service=CarrelMemories(client, agent.slug),
        auto_create_session=True,
    )


async def ask(runner: Runner, text: str) -> str:
    """The text of the last event of a turn."""
    message, last = types.Content(role="user", parts=[types.Part(text=text)]), ""
    async for event in runner.run_async(new_message=message, **CHAT):
        if event.content and event.content.parts and event.content.parts[0].text:
            last = event.content.parts[0].text
    return last


async def approve(client: Client, agent: AgentFixture, approved: bool = True) -> None:
    """Answer the first approval that is requested."""
    while not await asyncio.to_thread(answer_approvals, client, agent.slug, approved):
        pass


async def test_two_turns_with_tool_approval_memory_and_replay(
    client: Client, awaiting: AsyncClient, agent: AgentFixture
) -> None:
    model = OfflineModel.of(("remember", {"content": "Luis drinks tea"}), "Noted.", BASH, "Done.")
    async with agent_run(awaiting, agent.slug, "user/42") as first:
        assert SOUL in first.prompt
        runner = build_runner(awaiting, agent, first, model)
        assert await ask(runner, "I drink tea.") == "Noted."
    assert client.agent(agent.slug).memories.list()[0].content == "Luis drinks tea"

    client.agent(agent.slug).put("SOUL.md", "You are bold, {name}.")
    async with agent_run(awaiting, agent.slug, "user/42") as second:
        assert "You are bold, {name}." in second.prompt
        runner = build_runner(awaiting, agent, second, model)
        answer, _ = await asyncio.gather(ask(runner, "Write a file."), approve(client, agent))
        assert answer == "Done."
    assert client.workspace(agent.workspace).get("a.txt").content == "hi\n"
    session = await runner.session_service.get_session(app_name="app", **CHAT)
    assert session and len(session.events) == 8, "the session has the first turn too"
    assert len(model._requests[-1].contents) == 7

    recorded = client.agent(agent.slug).sessions.get("user/42").recent(20)
    assert [entry.role for entry in recorded] == ["user", "assistant", "tool", "assistant"] * 2
    assert recorded[3].content == "Noted."
    runs = client.agent(agent.slug).runs(session_id="user/42")
    assert [run.status for run in runs] == ["completed", "completed"]
    assert [first.prompt in prompt for prompt in model.prompts] == [True, True, False, False]
    assert [second.prompt in prompt for prompt in model.prompts] == [False, False, True, True]

    async with agent_run(awaiting, agent.slug, replay_of=first.id) as replay:
        assert replay.prompt_sha256 == first.prompt_sha256 != second.prompt_sha256
        replayed = OfflineModel.of("Hello.")
        await ask(build_runner(awaiting, agent, replay, replayed), "Hello?")
        assert first.prompt in replayed.prompts[0]


async def test_denied_call_is_an_error_for_the_model(
    client: Client, awaiting: AsyncClient, agent: AgentFixture
) -> None:
    async with agent_run(awaiting, agent.slug) as run:
        runner = build_runner(awaiting, agent, run, OfflineModel.of(BASH, "A pity."))
        await asyncio.gather(ask(runner, "Write."), approve(client, agent, approved=False))
        session = await runner.session_service.get_session(app_name="app", **CHAT)
        assert session
        [response] = [
            response for event in session.events for response in event.get_function_responses()
        ]
        assert "by the test" in (response.response or {})["error"]


async def test_failed_turn_ends_the_run_as_failed(
    client: Client, awaiting: AsyncClient, agent: AgentFixture
) -> None:
    with pytest.raises(RuntimeError):
        async with agent_run(awaiting, agent.slug, "failed") as run:
            await ask(build_runner(awaiting, agent, run, OfflineModel.of()), "Hello?")
    assert client.run(run.id).status == "failed"
    entries = client.agent(agent.slug).sessions.get("failed").recent()
    assert entries[0].content == "Hello?"
    assert entries[-1].content == "Error: RuntimeError: the model has no reply left"


async def test_session_service_and_run_share_a_session(
    client: Client, awaiting: AsyncClient, agent: AgentFixture
) -> None:
    id = CarrelSessions.carrel_session_id("app", "luis", "chat")
    async with agent_run(awaiting, agent.slug, id) as run:
        runner = build_runner(awaiting, agent, run, OfflineModel.of("Hi."), record=False)
        assert await ask(runner, "Hello?") == "Hi."
    entries = client.agent(agent.slug).sessions.get(id).recent()
    assert [(entry.role, entry.content) for entry in entries[-2:]] == [
        ("user", "Hello?"),
        ("assistant", "Hi."),
    ]
    assert {entry.run_id for entry in entries} == {run.id}


async def test_tools_of_adk_use_the_services(
    client: Client, awaiting: AsyncClient, agent: AgentFixture
) -> None:
    """ADK's own tools find artifacts and memories."""
    replies = (
        ("load_memory", {"query": "tea"}),
        ("load_artifacts", {"artifact_names": ["menu.txt"]}),
        "Green tea.",
    )
    async with agent_run(awaiting, agent.slug) as run:
        model = OfflineModel.of(*replies)
        tools = [load_memory, load_artifacts]
        runner = build_runner(awaiting, agent, run, model, tools=tools)
        await runner.session_service.create_session(app_name="app", **CHAT)
        assert runner.artifact_service and runner.memory_service
        menu = types.Part(text="green tea, black tea")
        await runner.artifact_service.save_artifact(
            app_name="app", filename="menu.txt", artifact=menu, **CHAT
        )
        other = await runner.session_service.create_session(app_name="app", user_id="luis")
        other.events.append(_event("I like green tea."))
        await runner.memory_service.add_session_to_memory(other)
        assert await ask(runner, "Which tea do I like?") == "Green tea."
    contents = model._requests[-1].model_dump_json(include={"contents"})
    assert "I like green tea." in contents
    assert "green tea, black tea" in contents


async def test_agent_with_a_blocking_client(client: Client) -> None:
    agent = create_agent(client, "bypass")
    with agent_run(client, agent.slug) as run:
        runner = build_runner(client, agent, run, OfflineModel.of(BASH, "Done."))
        assert await ask(runner, "Write a file.") == "Done."
    assert client.workspace(agent.workspace).get("a.txt").content == "hi\n"


def _event(text: str) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    return Event(author="user", content=content)
