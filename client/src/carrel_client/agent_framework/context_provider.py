"""A run for Agent Framework: prompt, tools, memories and transcript of one run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from agent_framework import (
    AgentSession,
    ContextProvider,
    Message,
    SessionContext,
    SupportsAgentRun,
)

from carrel_client.agent_framework.messages import message_item, message_role, message_text
from carrel_client.agent_framework.tools import framework_tools
from carrel_client.drivers import await_steps, steps_of
from carrel_client.runtimes.agent_run import AgentRun
from carrel_client.tools import ToolReply

_MAX_QUERY_CHARACTERS: Final = 500


class CarrelContextProvider(ContextProvider):
    """An Agent Framework ``ContextProvider`` that gives an agent what its run has.

    The frozen prompt becomes its instructions, and its tools are called in the run. With
    ``record`` the messages are in the session after the run; leave it out where a
    ``CarrelHistoryProvider`` writes them to the same session. With ``memories``, up to that many
    which match the input are given to the model.
    """

    def __init__(
        self,
        run: AgentRun[Any],
        source_id: str = "carrel",
        *,
        record: bool = True,
        memories: int = 0,
    ) -> None:
        super().__init__(source_id)
        self._run, self._records, self._memories = run, record, memories
        self._tools = framework_tools(run)

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        context.extend_instructions(self.source_id, self._run.prompt)
        context.extend_tools(self.source_id, self._tools)
        self._record(context.input_messages)
        question = " ".join(message.text for message in context.input_messages)
        if self._memories and question.strip():
            await self._add_memories(context, question[:_MAX_QUERY_CHARACTERS])

    async def after_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        self._record(context.response.messages if context.response else ())

    def _record(self, messages: Iterable[Message]) -> None:
        if self._records:
            for message in messages:
                text = message_text(message) or None
                self._run.record(
                    message_role(message),
                    text,
                    item=message_item(message),
                    message_id=message.message_id,
                )

    async def _add_memories(self, context: SessionContext, question: str) -> None:
        arguments = {"query": question, "limit": self._memories}
        steps = steps_of(self._run.call_tool, "recall", arguments)
        reply: ToolReply = await await_steps(self._run._driver, steps)
        memories = (reply.structured or {}).get("memories", ())
        lines = [f"- {memory['content']}" for memory in memories]
        if lines:
            text = "\n".join(["Memories of earlier conversations:", *lines])
            context.extend_messages(self, [Message("user", [text])])
