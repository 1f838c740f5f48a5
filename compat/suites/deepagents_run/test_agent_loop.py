"""A deep agent on Carrel, with an offline model: two turns, commands, an approval, a replay."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from agent_fixture import SOUL, TOKEN, URL, AgentFixture, answer_approvals, create_agent
from deepagents import create_deep_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall

from carrel_client import AgentRun, Client, agent_run
from carrel_client.deepagents import CarrelSandbox
from carrel_client.langgraph import CarrelSaver, CarrelStore, langchain_tools, record_messages

THREAD: Any = {"configurable": {"thread_id": "user/42"}}


class OfflineModel(GenericFakeChatModel):
    """Gives replies in order, and keeps what it was asked."""

    prompts: list[str]

    def bind_tools(self, tools: Any, **options: Any) -> OfflineModel:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> Any:
        self.prompts.append(str(messages[0].text))
        return super()._generate(messages, *args, **options)


def call(name: str, **arguments: Any) -> AIMessage:
    """A message of the model that calls a tool."""
    tool_call = ToolCall(name=name, args=arguments, id=f"call_{secrets.token_hex(4)}")
    return AIMessage("", tool_calls=[tool_call])


def build_agent(client: Client, run: AgentRun[Any], agent: AgentFixture, *replies: Any) -> Any:
    files = client.workspace(agent.state)
    tools = [tool for tool in langchain_tools(run) if tool.name in {"remember", "recall"}]
    return create_deep_agent(
        OfflineModel(messages=iter(replies), prompts=[]),
        tools=tools,
        system_prompt=run.prompt,
        backend=CarrelSandbox(client, agent.slug, agent.workspace, run=run),
        checkpointer=CarrelSaver(files),
        store=CarrelStore(files),
    )


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(URL, TOKEN, timeout=60) as client:
        yield client


def approve_one(agent: str, is_done: threading.Event) -> None:
    """Approve the first call that waits, as a person would from elsewhere."""
    with Client(URL, TOKEN) as person:
        while not is_done.wait(0.05):
            if answer_approvals(person, agent):
                return


def tool_texts(messages: list[BaseMessage]) -> list[str]:
    return [str(message.text) for message in messages if message.type == "tool"]


def test_two_turns_with_files_approval_memory_and_replay(client: Client) -> None:
    agent = create_agent(client)
    with agent_run(client, agent.slug, "user/42") as first:
        assert SOUL in first.prompt
        replies = [
            call("write_file", file_path="/workspace/a.md", content="one\ntwo\n"),
            call("edit_file", file_path="/workspace/a.md", old_string="two", new_string="three"),
            call("remember", content="Luis drinks tea"),
            AIMessage("Done."),
        ]
        deep = build_agent(client, first, agent, *replies)
        result = deep.invoke({"messages": [HumanMessage("Write a file.")]}, THREAD)
        assert result["messages"][-1].text == "Done."
        record_messages(first, result["messages"])
    files = client.workspace(agent.workspace)
    assert files.get("a.md").content == "one\nthree\n"
    assert client.agent(agent.slug).memories.list()[0].content == "Luis drinks tea"

    client.agent(agent.slug).put("SOUL.md", "You are bold.")
    is_done = threading.Event()
    person = threading.Thread(target=approve_one, args=(agent.slug, is_done))
    person.start()
    with agent_run(client, agent.slug, "user/42") as second:
        replies = [call("execute", command="cat /workspace/a.md; echo x > b"), AIMessage("Read.")]
        deep = build_agent(client, second, agent, *replies)
        result = deep.invoke({"messages": [HumanMessage("Read it.")]}, THREAD)
        assert "one\nthree" in tool_texts(result["messages"])[-1]
        record_messages(second, result["messages"][-4:])
    is_done.set()
    person.join()
    assert files.get("b").content == "x\n"

    session = client.agent(agent.slug).sessions.get("user/42")
    assert [entry.role for entry in session.recent(4)] == ["user", "assistant", "tool", "assistant"]
    assert [run.status for run in client.agent(agent.slug).runs()] == ["completed", "completed"]
    with agent_run(client, agent.slug, replay_of=first.id) as replay:
        assert replay.prompt_sha256 == first.prompt_sha256 != second.prompt_sha256


def test_prompt_reaches_the_model(client: Client) -> None:
    agent = create_agent(client, "bypass")
    model = OfflineModel(messages=iter([AIMessage("Hi!")]), prompts=[])
    with agent_run(client, agent.slug) as run:
        backend = CarrelSandbox(client, agent.slug, agent.workspace, run=run)
        deep = create_deep_agent(model, system_prompt=run.prompt, backend=backend)
        deep.invoke({"messages": [HumanMessage("Hello?")]})
        assert model.prompts[0].startswith(run.prompt)


def test_failed_turn_ends_the_run_as_failed(client: Client) -> None:
    agent = create_agent(client)
    with pytest.raises(RuntimeError), agent_run(client, agent.slug, "failed") as run:
        deep = build_agent(client, run, agent)
        deep.invoke({"messages": [HumanMessage("Hello?")]}, THREAD)
    assert client.run(run.id).status == "failed"
