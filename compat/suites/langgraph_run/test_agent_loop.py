"""A LangGraph agent on Carrel, with an offline model: two turns, tools, an approval, a replay."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from agent_fixture import SOUL, TOKEN, URL, AgentFixture, answer_approvals, create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolCall
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from carrel_client import AgentRun, AsyncClient, Client, agent_run
from carrel_client.langgraph import CarrelSaver, CarrelStore, langchain_tools, record_messages


def call(name: str, **arguments: Any) -> AIMessage:
    """A message of the model that calls a tool."""
    tool_call = ToolCall(name=name, args=arguments, id=f"call_{secrets.token_hex(4)}")
    return AIMessage("", tool_calls=[tool_call])


def build_graph(run: AgentRun[Any], files: Any, *replies: AIMessage, **options: Any) -> Any:
    """An agent that calls the run's tools; the model gives these replies."""
    model = GenericFakeChatModel(messages=iter(replies))
    prompts: list[str] = options.setdefault("prompts", [])

    def ask(state: MessagesState) -> dict[str, Any]:
        prompts.append(run.prompt)
        return {"messages": [model.invoke([SystemMessage(run.prompt), *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("model", ask)
    graph.add_node("tools", ToolNode(langchain_tools(run, interrupts=True)))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=CarrelSaver(files), store=CarrelStore(files))


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(URL, TOKEN) as client:
        yield client


@pytest.fixture
def agent(client: Client) -> AgentFixture:
    return create_agent(client)


def last_text(result: dict[str, Any]) -> str:
    return str(result["messages"][-1].text)


def test_two_turns_with_tool_approval_memory_and_replay(
    client: Client, agent: AgentFixture
) -> None:
    files, thread = client.workspace(agent.state), {"configurable": {"thread_id": "user/42"}}
    with agent_run(client, agent.slug, "user/42") as first:
        assert SOUL in first.prompt
        remember = call("remember", content="Luis drinks tea")
        graph = build_graph(first, files, remember, AIMessage("Noted."))
        result = graph.invoke({"messages": [HumanMessage("I drink tea.")]}, thread)
        assert last_text(result) == "Noted."
        record_messages(first, result["messages"])
    assert client.agent(agent.slug).memories.list()[0].content == "Luis drinks tea"

    client.agent(agent.slug).put("SOUL.md", "You are bold.")
    with agent_run(client, agent.slug, "user/42") as second:
        assert "You are bold." in second.prompt
        graph = build_graph(
            second, files, call("bash", command="echo hi > a.txt"), AIMessage("Done.")
        )
        result = graph.invoke({"messages": [HumanMessage("Write a file.")]}, thread)
        [interrupt] = result["__interrupt__"]
        assert interrupt.value["tool"] == "bash"
        assert answer_approvals(client, agent.slug) == 1
        result = graph.invoke(Command(resume=True), thread)
        assert last_text(result) == "Done."
        assert len(result["messages"]) == 8, "the checkpoint has the first turn too"
        record_messages(second, result["messages"][4:])
    assert client.workspace(agent.workspace).get("a.txt").content == "hi\n"

    session = client.agent(agent.slug).sessions.get("user/42")
    roles = [entry.role for entry in session.recent(20)]
    assert roles == ["user", "assistant", "tool", "assistant"] * 2
    runs = client.agent(agent.slug).runs(session_id="user/42")
    assert [run.status for run in runs] == ["completed", "completed"]

    with agent_run(client, agent.slug, replay_of=first.id) as replay:
        assert replay.prompt_sha256 == first.prompt_sha256 != second.prompt_sha256


def test_denied_call_is_an_error_for_the_model(client: Client, agent: AgentFixture) -> None:
    files, thread = client.workspace(agent.state), {"configurable": {"thread_id": "denied"}}
    with agent_run(client, agent.slug) as run:
        graph = build_graph(run, files, call("bash", command="rm -r ."), AIMessage("A pity."))
        graph.invoke({"messages": [HumanMessage("Clean up.")]}, thread)
        answer_approvals(client, agent.slug, approved=False)
        result = graph.invoke(Command(resume=True), thread)
        [message] = [item for item in result["messages"] if item.type == "tool"]
        assert (message.status, "by the test" in message.content) == ("error", True)


def test_failed_turn_ends_the_run_as_failed(client: Client, agent: AgentFixture) -> None:
    thread = {"configurable": {"thread_id": "failed"}}
    with pytest.raises(RuntimeError), agent_run(client, agent.slug, "failed") as run:
        graph = build_graph(run, client.workspace(agent.state))
        graph.invoke({"messages": [HumanMessage("Hello?")]}, thread)
    assert client.run(run.id).status == "failed"
    [entry] = client.agent(agent.slug).sessions.get("failed").recent()
    assert entry.content.startswith("Error: RuntimeError")


def test_agent_with_an_awaiting_client(client: Client) -> None:
    agent = create_agent(client, "bypass")

    async def turn() -> None:
        async with AsyncClient(URL, TOKEN) as awaiting, agent_run(awaiting, agent.slug) as run:
            files = awaiting.workspace(agent.state)
            replies = (call("bash", command="echo hi > a.txt"), AIMessage("Done."))
            graph = build_graph(run, files, *replies)
            thread = {"configurable": {"thread_id": "awaiting"}}
            result = await graph.ainvoke({"messages": [HumanMessage("Write.")]}, thread)
            assert last_text(result) == "Done."

    asyncio.run(turn())
    assert client.workspace(agent.workspace).get("a.txt").content == "hi\n"
