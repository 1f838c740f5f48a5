"""An agent's tools for pydantic-ai."""

from __future__ import annotations

from typing import Any, Final

from pydantic_ai import RunContext, ToolDefinition, ToolReturn
from pydantic_ai.exceptions import ApprovalRequired, ToolFailed
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from carrel_client.drivers import await_steps, steps_of
from carrel_client.runtimes.agent_run import AgentRun, RunTool
from carrel_client.runtimes.call_ids import call_id
from carrel_client.tools import ToolReply

_ANY_ARGUMENTS: Final = SchemaValidator(core_schema.any_schema())
"""The server checks the arguments; its refusal goes to the model."""


class CarrelToolset(AbstractToolset[Any]):
    """The tools of a run's agent; calls run on the server, in this run.

    A call that needs an approval waits until a person has answered. With ``defer_approvals`` the
    agent's run ends with a ``DeferredToolRequests`` instead, whose metadata has the approval;
    resume with ``DeferredToolResults`` after the answer. A call runs once, also when it is resumed.
    """

    def __init__(
        self, run: AgentRun[Any], *, defer_approvals: bool = False, id: str = "carrel"
    ) -> None:
        self._run, self._defers, self._id = run, defer_approvals, id

    @property
    def id(self) -> str | None:
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {tool.name: self._toolset_tool(tool) for tool in self._run.tools}

    def _toolset_tool(self, tool: RunTool) -> ToolsetTool[Any]:
        definition = ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=dict(tool.parameters),
        )
        return ToolsetTool(
            toolset=self, tool_def=definition, max_retries=1, args_validator=_ANY_ARGUMENTS
        )

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        call = steps_of(
            self._run.call_tool,
            name,
            tool_args,
            call_id=call_id(self._run.id, ctx.tool_call_id, name, tool_args),
            wait=not self._defers or ctx.tool_call_approved,
        )
        reply: ToolReply = await await_steps(self._run._driver, call)
        if reply.approval is not None:
            raise ApprovalRequired(metadata={"approval": reply.approval.id, "tool": name})
        if reply.is_error:
            raise ToolFailed(reply.content)
        return ToolReturn(return_value=reply.content, metadata=reply.structured)
