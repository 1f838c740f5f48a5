"""A run of a Carrel agent as a capability of a pydantic-ai agent."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef

from carrel_client.pydantic_ai.toolset import CarrelToolset
from carrel_client.pydantic_ai.transcript import record_messages
from carrel_client.runtimes.agent_run import AgentRun


class CarrelCapability(AbstractCapability[Any]):
    """Prompt, tools and workspace of a run, and its transcript.

    The frozen prompt is the agent's instructions, the tools of Carrel's agent are its tools, and
    its messages are recorded for the session, those of a failed turn too. ``workspace`` is the
    backend of ``ctx.workspace``, if the agent works in one.
    """

    def __init__(
        self,
        run: AgentRun[Any],
        *,
        defer_approvals: bool = False,
        workspace: WorkspaceBackend | None = None,
    ) -> None:
        self.id = "carrel"
        self._run, self._workspace = run, workspace
        self._toolset = CarrelToolset(run, defer_approvals=defer_approvals)
        self._messages: Sequence[ModelMessage] = ()
        """Of the last request to the model; a failed turn has no result with its messages."""

    async def for_run(self, ctx: RunContext[Any]) -> CarrelCapability:
        return copy(self)

    def get_instructions(self) -> str:
        return self._run.prompt

    def get_toolset(self) -> AbstractToolset[Any]:
        return self._toolset

    def get_workspace(
        self, ctx: RunContext[Any], *, ref: WorkspaceRef | None
    ) -> WorkspaceBackend | None:
        workspace = self._workspace
        is_own = workspace is not None and ref in {None, workspace.ref}
        return workspace if is_own else None

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        self._messages = ctx.messages
        return request_context

    async def wrap_run(
        self, ctx: RunContext[Any], *, handler: WrapRunHandler
    ) -> AgentRunResult[Any]:
        earlier = len(ctx.messages)
        try:
            result = await handler()
        except BaseException:
            record_messages(self._run, self._messages[earlier:])
            raise
        record_messages(self._run, result.new_messages())
        return result
