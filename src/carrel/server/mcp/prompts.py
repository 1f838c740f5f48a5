"""An agent's system prompt as a prompt of the protocol."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext

from carrel.actions.prompt import prompts
from carrel.core.errors import NotFound, ValidationError
from carrel.core.runs import Audience, mode_of
from carrel.server.mcp.request_context import McpRequest

Context: TypeAlias = ServerRequestContext[Any, Any]
SYSTEM: Final = "system"
_ABOUT: Final = "Who the agent is, whom it works for, what it may do and what it remembers."
_ONE: Final = types.Prompt(
    name=SYSTEM,
    title="System prompt",
    description=_ABOUT,
    arguments=[
        types.PromptArgument(
            name="scope",
            description="`main` for one person, `shared` where several listen.",
            required=False,
        )
    ],
)


async def listing(visit: McpRequest, ctx: Context) -> types.ListPromptsResult:
    await visit.tool_context(ctx.meta)
    return types.ListPromptsResult(prompts=[_ONE])


async def getting(
    visit: McpRequest, ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult:
    """The prompt as it is now, or as it was when the run began. Raises Missing and Taken."""
    if params.name != SYSTEM:
        raise NotFound(f"there is no prompt {params.name[:80]!a}")
    asked = dict(params.arguments or {})
    scope = asked.pop("scope", None)
    if asked:
        raise ValidationError("the prompt has one argument, scope")
    context = await visit.tool_context(ctx.meta)
    shared = Audience.SHARED in {context.mode, mode_of(scope)}
    if context.run is not None:
        if shared and context.run.mode is Audience.MAIN:
            raise ValidationError("the prompt of this run is for one person")
        shown = await prompts.of_run(context.ports, context.run)
    else:
        mode = Audience.SHARED if shared else Audience.MAIN
        shown = await prompts.of_agent(context.ports, visit.actor, context.agent.id, mode)
    text = types.TextContent(text=shown.text)
    said = types.PromptMessage(role="user", content=text)
    return types.GetPromptResult(description=_ABOUT, messages=[said])
