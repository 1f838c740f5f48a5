"""A run of a Carrel agent as an agent of the OpenAI Agents SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agents import Agent, FunctionTool, RunContextWrapper
from agents.sandbox import Manifest
from agents.sandbox.entries import BaseEntry, File
from agents.tool_context import ToolContext

from carrel_client.drivers import await_steps, steps_of
from carrel_client.file_models import File as CarrelFile
from carrel_client.runtimes.agent_run import AgentRun, RunTool
from carrel_client.runtimes.call_ids import call_id
from carrel_client.tools import ToolReply


def create_agent(run: AgentRun[Any], *, interrupts: bool = False, **options: Any) -> Agent[Any]:
    """An agent with the frozen prompt and the tools of a run; ``options`` are those of Agent.

    ``tools`` among them are added. Give a ``CarrelSession`` of the run to the Runner, so that the
    items are in its transcript.
    """
    tools = [*agent_tools(run, interrupts=interrupts), *options.pop("tools", ())]
    return Agent(**{"name": run.agent, "instructions": run.prompt, **options, "tools": tools})


def agent_tools(run: AgentRun[Any], *, interrupts: bool = False) -> list[FunctionTool]:
    """The tools of a run's agent; calls run on the server, in this run.

    A call that needs an approval waits until a person has answered. With ``interrupts`` it
    interrupts the Runner instead; approve it there and resume after the person's answer, which
    decides. A call runs once, also when it is resumed.
    """
    return [_function_tool(run, tool, interrupts=interrupts) for tool in run.tools]


async def load_manifest(run: AgentRun[Any], *, root: str = "/workspace") -> Manifest:
    """The frozen files of a run as the manifest of a sandbox."""
    entries: dict[str | Path, BaseEntry] = {}
    for row in run.files:
        if isinstance(row, CarrelFile):
            content = row.data
        else:
            read = steps_of(run.run.workspace.read_bytes, row.path)
            content = await await_steps(run._driver, read)
        entries[row.path] = File(content=content)
    return Manifest(root=root, entries=entries)


def _function_tool(run: AgentRun[Any], tool: RunTool, *, interrupts: bool) -> FunctionTool:
    async def call(tool_call_id: str, arguments: Mapping[str, Any], *, wait: bool) -> ToolReply:
        id = call_id(run.id, tool_call_id, tool.name, arguments)
        steps = steps_of(run.call_tool, tool.name, arguments, call_id=id, wait=wait)
        reply: ToolReply = await await_steps(run._driver, steps)
        return reply

    async def invoke(context: ToolContext[Any], text: str) -> str:
        try:
            arguments = json.loads(text or "{}")
        except ValueError:
            arguments = None
        if not isinstance(arguments, dict):
            return "Error: the arguments are not a JSON object"
        return (await call(context.tool_call_id, arguments, wait=True)).content

    async def needs_approval(
        context: RunContextWrapper[Any], arguments: dict[str, Any], tool_call_id: str
    ) -> bool:
        return (await call(tool_call_id, arguments, wait=False)).approval is not None

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=dict(tool.parameters),
        on_invoke_tool=invoke,
        strict_json_schema=False,
        needs_approval=needs_approval if interrupts else False,
    )
