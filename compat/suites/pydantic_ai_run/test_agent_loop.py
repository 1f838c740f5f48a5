"""A pydantic-ai agent on Carrel, with an offline model: two turns, tools, an approval, a replay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from agent_fixture import SOUL, TOKEN, URL, AgentFixture, answer_approvals, create_agent
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from carrel_client import AsyncClient, Client, agent_run
from carrel_client.pydantic_ai import CarrelCapability, CarrelSandbox, load_messages

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(URL, TOKEN) as client:
        yield client


@pytest.fixture
def agent(client: Client) -> AgentFixture:
    return create_agent(client)


class ScriptedModel:
    """Gives these replies, and keeps what it was asked with."""

    def __init__(self, *replies: ToolCallPart | TextPart) -> None:
        self.replies = iter(replies)
        self.instructions: list[str | None] = []
        self.tools: set[str] = set()
        self.model = FunctionModel(self.reply)

    def reply(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.instructions.append(info.instructions)
        self.tools = {tool.name for tool in info.function_tools}
        return ModelResponse([next(self.replies)])


def tool_results(messages: list[ModelMessage]) -> list[ToolReturnPart]:
    parts = [part for message in messages for part in message.parts]
    return [part for part in parts if isinstance(part, ToolReturnPart)]


async def test_two_turns_with_tool_approval_memory_and_replay(
    client: Client, agent: AgentFixture
) -> None:
    model = ScriptedModel(
        ToolCallPart("remember", {"content": "Luis drinks tea"}), TextPart("Noted.")
    )
    with agent_run(client, agent.slug, "user/42") as first:
        runtime: Agent[Any, Any] = Agent(model.model, capabilities=[CarrelCapability(first)])
        result = await runtime.run("I drink tea.")
        assert result.output == "Noted."
    assert model.instructions == [first.prompt] * 2
    assert SOUL in first.prompt
    assert {tool.name for tool in first.tools} == model.tools
    assert client.agent(agent.slug).memories.list()[0].content == "Luis drinks tea"

    client.agent(agent.slug).put("SOUL.md", "You are bold.")
    model = ScriptedModel(ToolCallPart("bash", {"command": "echo hi > a.txt"}), TextPart("Done."))
    history = await load_messages(client, agent.slug, "user/42")
    assert [type(message) for message in history] == [ModelRequest, ModelResponse] * 2
    with agent_run(client, agent.slug, "user/42") as second:
        capability = CarrelCapability(second, defer_approvals=True)
        runtime = Agent(
            model.model, capabilities=[capability], output_type=[str, DeferredToolRequests]
        )
        result = await runtime.run("Write a file.", message_history=history)
        [call] = result.output.approvals
        [metadata] = result.output.metadata.values()
        assert (call.tool_name, metadata["tool"]) == ("bash", "bash")
        assert answer_approvals(client, agent.slug) == 1
        result = await runtime.run(
            message_history=result.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={call.tool_call_id: True}),
        )
        assert result.output == "Done."
    assert client.workspace(agent.workspace).get("a.txt").content == "hi\n"
    assert len(await load_messages(client, agent.slug, "user/42")) == 8

    session = client.agent(agent.slug).sessions.get("user/42")
    roles = [entry.role for entry in session.recent(20)]
    assert roles == ["user", "assistant", "tool", "assistant"] * 2
    runs = client.agent(agent.slug).runs(session_id="user/42")
    assert [run.status for run in runs] == ["completed", "completed"]

    with agent_run(client, agent.slug, replay_of=first.id) as replay:
        assert replay.prompt_sha256 == first.prompt_sha256 != second.prompt_sha256


async def test_denied_call_is_a_failed_result_for_the_model(
    client: Client, agent: AgentFixture
) -> None:
    model = ScriptedModel(ToolCallPart("bash", {"command": "rm -r ."}), TextPart("A pity."))
    with agent_run(client, agent.slug) as run:
        runtime: Agent[Any, Any] = Agent(
            model.model,
            capabilities=[CarrelCapability(run, defer_approvals=True)],
            output_type=[str, DeferredToolRequests],
        )
        result = await runtime.run("Clean up.")
        [call] = result.output.approvals
        answer_approvals(client, agent.slug, approved=False)
        result = await runtime.run(
            message_history=result.all_messages(),
            deferred_tool_results=DeferredToolResults(approvals={call.tool_call_id: True}),
        )
        [answer] = tool_results(result.new_messages())
        assert (answer.outcome, "by the test" in str(answer.content)) == ("failed", True)


async def test_failed_turn_leaves_its_messages_and_its_error(
    client: Client, agent: AgentFixture
) -> None:
    model = ScriptedModel(ToolCallPart("who_am_i", {}))
    with pytest.raises(RuntimeError), agent_run(client, agent.slug, "failed") as run:
        await Agent(model.model, capabilities=[CarrelCapability(run)]).run("Who are you?")
    assert client.run(run.id).status == "failed"
    entries = client.agent(agent.slug).sessions.get("failed").recent()
    assert [entry.role for entry in entries] == ["user", "assistant", "tool", "system"]
    assert entries[-1].content.startswith("Error: RuntimeError")


async def test_agent_with_an_awaiting_client_works_in_a_workspace(client: Client) -> None:
    agent = create_agent(client, "bypass")
    async with AsyncClient(URL, TOKEN) as awaiting, agent_run(awaiting, agent.slug) as run:
        backend = CarrelSandbox(awaiting, agent.slug, agent.workspace, run=run)
        capability = CarrelCapability(run, workspace=backend)
        model = TestModel(call_tools=["shout"])
        runtime: Agent[Any, Any] = Agent(model, capabilities=[capability])

        @runtime.tool
        async def shout(ctx: RunContext[Any]) -> str:
            await ctx.workspace.write_text("a.txt", "hi")
            done = await ctx.workspace.run("tr a-z A-Z < a.txt | tee b.txt", shell=True)
            return done.stdout

        result = await runtime.run("Shout.")
        assert [part.content for part in tool_results(result.new_messages())] == ["HI"]
    assert client.workspace(agent.workspace).get("b.txt").content == "HI"
