"""An agent's tools for Agent Framework."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

from agent_framework import FunctionTool

from carrel_client.drivers import await_steps, steps_of
from carrel_client.runtimes.agent_run import AgentRun, RunTool
from carrel_client.tools import ToolReply

_CALL_ID: Final[ContextVar[str | None]] = ContextVar("carrel_call_id", default=None)


def framework_tools(run: AgentRun[Any]) -> list[FunctionTool]:
    """The tools of a run's agent; calls run on the server, in this run.

    A call that needs an approval waits until a person has answered.
    """
    return [CarrelTool(run, tool) for tool in run.tools]


class CarrelTool(FunctionTool):
    """One tool of an agent. The id of the model's call makes it run once."""

    def __init__(self, run: AgentRun[Any], tool: RunTool) -> None:
        async def call(**arguments: Any) -> str:
            options = {"call_id": _CALL_ID.get()}
            steps = steps_of(run.call_tool, tool.name, arguments, **options)
            reply: ToolReply = await await_steps(run._driver, steps)
            # An exception would hide the reason from the model.
            return f"Error: {reply.content}" if reply.is_error else reply.content

        super().__init__(
            name=tool.name,
            description=tool.description,
            func=call,
            input_model=dict(tool.parameters),
        )

    async def invoke(self, *, tool_call_id: str | None = None, **options: Any) -> Any:
        """As FunctionTool.invoke."""
        token = _CALL_ID.set(tool_call_id)
        try:
            return await super().invoke(tool_call_id=tool_call_id, **options)
        finally:
            _CALL_ID.reset(token)
