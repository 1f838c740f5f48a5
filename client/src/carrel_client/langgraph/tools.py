"""An agent's tools for LangChain and LangGraph, and their messages in the transcript."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from langchain_core.messages import BaseMessage, message_to_dict
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, ToolException
from langgraph.types import interrupt
from pydantic import PrivateAttr

from carrel_client.drivers import Steps, await_steps, run_steps, steps_of
from carrel_client.runtimes.agent_run import AgentRun, RunTool
from carrel_client.tools import ToolReply

ROLES: Final = {"human": "user", "ai": "assistant", "tool": "tool"}
"""Role of an entry by the type of a message; system messages are not recorded."""
_CALL_ID: ContextVar[str | None] = ContextVar("carrel_call_id", default=None)


def langchain_tools(run: AgentRun[Any], *, interrupts: bool = False) -> list[BaseTool]:
    """The tools of a run's agent; calls run on the server, in this run.

    A call that needs an approval waits until a person has answered. With ``interrupts`` it
    interrupts the graph instead, with the approval as value; resume the graph after the answer.
    The id of the model's call makes it run once, also when the graph is resumed.
    """
    return [CarrelTool.of_run(run, tool, interrupts=interrupts) for tool in run.tools]


def record_messages(run: AgentRun[Any], messages: Iterable[BaseMessage]) -> None:
    """Record messages for the run's session, tool calls included; system messages are omitted."""
    for message in messages:
        if message.type in ROLES:
            item = message_to_dict(message)
            run.record(ROLES[message.type], str(message.text), item=item, message_id=message.id)


class CarrelTool(BaseTool):
    """One tool of an agent."""

    handle_tool_error: Any = True
    _carrel_run: Any = PrivateAttr(default=None)
    _interrupts: bool = PrivateAttr(default=False)

    @classmethod
    def of_run(cls, run: AgentRun[Any], tool: RunTool, *, interrupts: bool) -> CarrelTool:
        created = cls(
            name=tool.name, description=tool.description, args_schema=dict(tool.parameters)
        )
        created._carrel_run, created._interrupts = run, interrupts
        return created

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        with _call_id_of(input):
            return super().invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        with _call_id_of(input):
            return await super().ainvoke(input, config, **kwargs)

    def _run(self, *args: Any, **arguments: Any) -> str:
        while True:
            reply = run_steps(self._carrel_run._driver, self._call(arguments))
            if reply.approval is None:
                return _content(reply)
            _interrupt_for(reply)

    async def _arun(self, *args: Any, **arguments: Any) -> str:
        while True:
            reply = await await_steps(self._carrel_run._driver, self._call(arguments))
            if reply.approval is None:
                return _content(reply)
            _interrupt_for(reply)

    def _call(self, arguments: dict[str, Any]) -> Steps[ToolReply]:
        own = {name: value for name, value in arguments.items() if name != "run_manager"}
        options = {"call_id": _CALL_ID.get(), "wait": not self._interrupts}
        reply: ToolReply = yield from steps_of(
            self._carrel_run.call_tool, self.name, own, **options
        )
        return reply


@contextmanager
def _call_id_of(input: Any) -> Iterator[None]:
    is_call = isinstance(input, dict) and input.get("type") == "tool_call"
    token = _CALL_ID.set(input["id"] if is_call else None)
    try:
        yield
    finally:
        _CALL_ID.reset(token)


def _content(reply: ToolReply) -> str:
    if reply.is_error:
        raise ToolException(reply.content)
    return reply.content


def _interrupt_for(reply: ToolReply) -> None:
    approval = reply.approval
    assert approval is not None
    interrupt({"approval": approval.id, "tool": approval.tool, "input": dict(approval.input)})
