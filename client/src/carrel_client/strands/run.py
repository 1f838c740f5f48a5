"""A run for a Strands agent: prompt, tools and transcript."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strands.hooks import BeforeToolCallEvent, HookProvider, HookRegistry, MessageAddedEvent
from strands.types._events import ToolResultEvent
from strands.types.content import Message
from strands.types.session import encode_bytes_values
from strands.types.tools import AgentTool, ToolGenerator, ToolResult, ToolSpec, ToolUse

from carrel_client.drivers import await_steps, steps_of
from carrel_client.runtimes.agent_run import AgentRun, RunTool
from carrel_client.strands.message_texts import message_role, message_text
from carrel_client.tools import ToolReply


def agent_options(
    run: AgentRun[Any], *, interrupts: bool = False, record: bool = True
) -> dict[str, Any]:
    """The prompt, tools and hooks of a run: ``Agent(model=…, **agent_options(run))``.

    A call that needs an approval waits until a person has answered. With ``interrupts`` it
    interrupts the agent instead, with the approval as reason; resume the agent after the answer.
    With ``record`` the messages are in the session after the run; leave it out where a
    ``CarrelSessionRepository`` writes them to the same session.
    """
    return {
        "system_prompt": run.prompt,
        "tools": strands_tools(run),
        "hooks": [RunHooks(run, interrupts=interrupts, record=record)],
    }


def strands_tools(run: AgentRun[Any]) -> list[AgentTool]:
    """The tools of a run's agent; calls run on the server, in this run."""
    return [CarrelTool(run, tool) for tool in run.tools]


class CarrelTool(AgentTool):
    """One tool of an agent. The id of the model's call makes it run once."""

    def __init__(self, run: AgentRun[Any], tool: RunTool) -> None:
        super().__init__()
        self._run, self._tool = run, tool

    @property
    def tool_name(self) -> str:
        return self._tool.name

    @property
    def tool_spec(self) -> ToolSpec:
        return {
            "name": self._tool.name,
            "description": self._tool.description,
            "inputSchema": {"json": dict(self._tool.parameters)},
        }

    @property
    def tool_type(self) -> str:
        return "carrel"

    async def stream(
        self, tool_use: ToolUse, invocation_state: dict[str, Any], **kwargs: Any
    ) -> ToolGenerator:
        reply = await self.call(tool_use)
        result: ToolResult = {
            "toolUseId": tool_use["toolUseId"],
            "status": "error" if reply.is_error else "success",
            "content": [{"text": reply.content}],
        }
        yield ToolResultEvent(result)

    async def call(self, tool_use: ToolUse | Mapping[str, Any], *, wait: bool = True) -> ToolReply:
        """Call the tool in the run. Without ``wait`` the reply may have an open approval."""
        options = {"call_id": tool_use["toolUseId"], "wait": wait}
        steps = steps_of(self._run.call_tool, self._tool.name, tool_use["input"], **options)
        reply: ToolReply = await await_steps(self._run._driver, steps)
        return reply


class RunHooks(HookProvider):
    """Records an agent's messages for the run's session, and interrupts for approvals."""

    def __init__(
        self, run: AgentRun[Any], *, interrupts: bool = False, record: bool = True
    ) -> None:
        self._run, self._interrupts, self._record = run, interrupts, record

    def register_hooks(self, registry: HookRegistry, **kwargs: Any) -> None:
        if self._record:
            registry.add_callback(MessageAddedEvent, self._record_message)
        if self._interrupts:
            registry.add_callback(BeforeToolCallEvent, self._interrupt_for_approval)

    def _record_message(self, event: MessageAddedEvent[Any]) -> None:
        message: Message = event.message
        item = encode_bytes_values(dict(message))
        self._run.record(message_role(message), message_text(message) or None, item=item)

    async def _interrupt_for_approval(self, event: BeforeToolCallEvent) -> None:
        """Call the tool; if its approval is open, interrupt. The tool itself gets the reply."""
        if not isinstance(event.selected_tool, CarrelTool):
            return
        reply = await event.selected_tool.call(event.tool_use, wait=False)
        if reply.approval is not None:
            approval = reply.approval
            reason = {"approval": approval.id, "tool": approval.tool, "input": dict(approval.input)}
            event.interrupt(f"approval {approval.id}", reason=reason)
