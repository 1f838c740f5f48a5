"""Programs that run an agent in each supported runtime."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class RuntimeSnippet(Struct, frozen=True):
    """A program in which `"URL"`, `"KEY"` and `"SLUG"` stand for values."""

    id: str
    name: str
    extras: str
    """Extras of the client that the program needs, in brackets."""
    text: str


_PYTHON: Final = """
from carrel_client import Client, agent_run

client = Client("URL", "KEY")
with agent_run(client, "SLUG") as run:
    print(run.prompt)  # the system prompt, frozen for this run
    print([tool.name for tool in run.tools])
"""

_LANGGRAPH: Final = """
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from carrel_client import Client, agent_run
from carrel_client.langgraph import langchain_tools, record_messages

model = ...  # your chat model
client = Client("URL", "KEY")
with agent_run(client, "SLUG", "user/42") as run:
    prompt, tools = SystemMessage(run.prompt), langchain_tools(run)
    chat = model.bind_tools(tools)
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": chat.invoke([prompt, *state["messages"]])})
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    result = graph.compile().invoke({"messages": [HumanMessage("Hello?")]})
    record_messages(run, result["messages"])
    print(result["messages"][-1].text)
"""

_DEEPAGENTS: Final = """
from deepagents import create_deep_agent
from langchain_core.messages import HumanMessage

from carrel_client import Client, agent_run
from carrel_client.deepagents import CarrelBackend
from carrel_client.langgraph import record_messages

model = ...  # your chat model
client = Client("URL", "KEY")
with agent_run(client, "SLUG", "user/42") as run:
    files = CarrelBackend(client.agent("SLUG"))
    agent = create_deep_agent(model, system_prompt=run.prompt, backend=files)
    result = agent.invoke({"messages": [HumanMessage("Hello?")]})
    record_messages(run, result["messages"])
    print(result["messages"][-1].text)
"""

_PYDANTIC_AI: Final = """
from pydantic_ai import Agent

from carrel_client import Client, agent_run
from carrel_client.pydantic_ai import CarrelCapability

model = ...  # your model
client = Client("URL", "KEY")
with agent_run(client, "SLUG", "user/42") as run:
    agent = Agent(model, capabilities=[CarrelCapability(run)])
    print(agent.run_sync("Hello?").output)
"""

_OPENAI_AGENTS: Final = """
from agents import Runner

from carrel_client import Client, agent_run
from carrel_client.openai_agents import CarrelSession, create_agent

model = ...  # your model
client = Client("URL", "KEY")
with agent_run(client, "SLUG", "user/42") as run:
    session = CarrelSession(client, "SLUG", run=run)
    result = Runner.run_sync(create_agent(run, model=model), "Hello?", session=session)
    print(result.final_output)
"""

_STRANDS: Final = """
from strands import Agent

from carrel_client import Client, agent_run
from carrel_client.strands import agent_options

model = ...  # your model
client = Client("URL", "KEY")
with agent_run(client, "SLUG", "user/42") as run:
    agent = Agent(model, **agent_options(run))
    print(agent("Hello?"))
"""

_GOOGLE_ADK: Final = """
import asyncio

from google.adk.agents import LlmAgent
from google.adk.runners import Runner
from google.genai.types import Content, Part

from carrel_client import AsyncClient, agent_run
from carrel_client.google_adk import CarrelMemories, CarrelSessions, agent_options

model = ...  # your model


async def main():
    client = AsyncClient("URL", "KEY")
    sessions, memories = CarrelSessions(client, "SLUG"), CarrelMemories(client, "SLUG")
    id = sessions.carrel_session_id("chat", "luis", "42")
    async with agent_run(client, "SLUG", id) as run:
        agent = LlmAgent(name="agent", model=model, **agent_options(run))
        services = {"session_service": sessions, "memory_service": memories}
        runner = Runner(app_name="chat", agent=agent, auto_create_session=True, **services)
        message = Content(role="user", parts=[Part(text="Hello?")])
        async for event in runner.run_async(user_id="luis", session_id="42", new_message=message):
            print(event.content)


asyncio.run(main())
"""

_AGENT_FRAMEWORK: Final = """
import asyncio

from agent_framework import Agent

from carrel_client import AsyncClient, agent_run
from carrel_client.agent_framework import CarrelContextProvider

model = ...  # your chat client


async def main():
    client = AsyncClient("URL", "KEY")
    async with agent_run(client, "SLUG", "user/42") as run:
        agent = Agent(model, context_providers=[CarrelContextProvider(run, memories=5)])
        print((await agent.run("Hello?")).text)


asyncio.run(main())
"""

_MEMORY_TOOL: Final = """
from anthropic import Anthropic

from carrel_client import Client
from carrel_client.anthropic import CarrelMemoryTool

model = ...  # the name of a model
client = Client("URL", "KEY")
memory = CarrelMemoryTool(client.agent("SLUG"))  # the agent's directory memory/
message = {"role": "user", "content": "What do you know about me?"}
runner = Anthropic().beta.messages.run_tools(
    model=model, max_tokens=1024, messages=[message], tools=[memory]
)
print(runner.until_done().content)
"""

RUNTIME_SNIPPETS: Final = (
    RuntimeSnippet("python", "Python", "", _PYTHON),
    RuntimeSnippet("langgraph", "LangGraph", "[langgraph]", _LANGGRAPH),
    RuntimeSnippet("deepagents", "deepagents", "[deepagents,langgraph]", _DEEPAGENTS),
    RuntimeSnippet("pydantic-ai", "Pydantic AI", "[pydantic-ai]", _PYDANTIC_AI),
    RuntimeSnippet("openai-agents", "OpenAI Agents", "[openai-agents]", _OPENAI_AGENTS),
    RuntimeSnippet("strands", "Strands", "[strands]", _STRANDS),
    RuntimeSnippet("google-adk", "Google ADK", "[google-adk]", _GOOGLE_ADK),
    RuntimeSnippet("agent-framework", "Agent Framework", "[agent-framework]", _AGENT_FRAMEWORK),
    RuntimeSnippet("memory-stores", "Memory tool", "[anthropic]", _MEMORY_TOOL),
)
