"""An agent's system prompt as MCP prompt."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext

from carrel.actions.prompt import prompts
from carrel.core.errors import NotFound, ValidationError
from carrel.core.runs import Audience, parse_audience
from carrel.server.mcp.request_context import McpRequest

Context: TypeAlias = ServerRequestContext[Any, Any]
SYSTEM: Final = "system"
SCOPE_ARGUMENT: Final = "scope"
_DESCRIPTION: Final = "The agent's identity, people, permissions and memory."
_SYSTEM_PROMPT: Final = types.Prompt(
    name=SYSTEM,
    title="System prompt",
    description=_DESCRIPTION,
    arguments=[
        types.PromptArgument(
            name=SCOPE_ARGUMENT,
            description="`main` for one person, `shared` for several.",
            required=False,
        )
    ],
)


async def list_prompts(request: McpRequest, ctx: Context) -> types.ListPromptsResult:
    await request.tool_context(ctx.meta)
    return types.ListPromptsResult(prompts=[_SYSTEM_PROMPT])


async def get_prompt(
    request: McpRequest, ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult:
    """Current prompt, or the prompt of the run. Raises NotFound and Conflict."""
    if params.name != SYSTEM:
        raise NotFound(f"no such prompt: {params.name[:80]!a}")
    arguments = dict(params.arguments or {})
    scope = arguments.pop(SCOPE_ARGUMENT, None)
    if arguments:
        raise ValidationError("the only prompt argument is scope")
    context = await request.tool_context(ctx.meta)
    shared = Audience.SHARED in {context.audience, parse_audience(scope)}
    if context.run is not None:
        if shared and context.run.mode is Audience.MAIN:
            raise ValidationError("the prompt of this run is not shared")
        prompt = await prompts.load_run_prompt(context.ports, context.run)
    else:
        audience = Audience.SHARED if shared else Audience.MAIN
        prompt = await prompts.load_agent_prompt(
            context.ports, request.actor, context.agent.id, audience
        )
    text = types.TextContent(text=prompt.text)
    message = types.PromptMessage(role="user", content=text)
    return types.GetPromptResult(description=_DESCRIPTION, messages=[message])
