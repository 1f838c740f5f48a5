"""A run for an ADK agent: prompt, tools and transcript."""

from __future__ import annotations

from typing import Any

from google.adk.agents.invocation_context import InvocationContext
from google.adk.events import Event
from google.adk.plugins import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from carrel_client.drivers import await_steps, steps_of
from carrel_client.google_adk.content_texts import content_role, content_text
from carrel_client.runtimes.agent_run import AgentRun, RunTool
from carrel_client.tools import ToolReply


def agent_options(run: AgentRun[Any]) -> dict[str, Any]:
    """The prompt and tools of a run: ``LlmAgent(model=…, **agent_options(run))``.

    Placeholders in the prompt are left as they are. ``RunPlugin(run)`` in the app's plugins records
    the transcript.
    """

    def instruction(context: object) -> str:
        # ADK would fill in placeholders of a text.
        return run.prompt

    return {"instruction": instruction, "tools": adk_tools(run)}


def adk_tools(run: AgentRun[Any]) -> list[BaseTool]:
    """The tools of a run's agent; calls run on the server, in this run."""
    return [CarrelTool(run, tool) for tool in run.tools]


class CarrelTool(BaseTool):
    """One tool of an agent. A call that needs an approval waits until a person has answered."""

    def __init__(self, run: AgentRun[Any], tool: RunTool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._run, self._tool = run, tool

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name,
            description=self.description,
            parameters_json_schema=dict(self._tool.parameters),
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        """Call the tool in the run; the id of the model's call makes it run once."""
        options = {"call_id": tool_context.function_call_id}
        steps = steps_of(self._run.call_tool, self.name, args, **options)
        reply: ToolReply = await await_steps(self._run._driver, steps)
        return {"error" if reply.is_error else "result": reply.content}


class RunPlugin(BasePlugin):
    """Records the messages and events of an app for the run's session.

    Leave it out where a ``CarrelSessions`` writes them to the same session.
    """

    def __init__(self, run: AgentRun[Any], name: str = "carrel") -> None:
        super().__init__(name=name)
        self._run = run

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> None:
        self._record(user_message, "user")

    async def on_event_callback(
        self, *, invocation_context: InvocationContext, event: Event
    ) -> None:
        if event.content and event.content.parts and not event.partial:
            self._record(event.content, event.author, event.id)

    def _record(self, content: types.Content, author: str, message_id: str | None = None) -> None:
        item = content.model_dump(mode="json", exclude_none=True)
        text = content_text(content) or None
        role = content_role(content, author)
        self._run.record(role, text, item=item, message_id=message_id)
