"""An agent's system prompt and its skills as MCP prompts."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext

from carrel.actions.prompt import prompts
from carrel.core.errors import NotFound, ValidationError
from carrel.core.runs import Audience, parse_audience
from carrel.server.mcp import skills
from carrel.server.mcp.request_context import McpRequest
from carrel.tools.tool import ToolContext

Context: TypeAlias = ServerRequestContext[Any, Any]
SYSTEM: Final = "system"
SCOPE_ARGUMENT: Final = "scope"
SKILL: Final = "skill"
NAME_ARGUMENT: Final = "name"
REQUEST_ARGUMENT: Final = "request"
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


_SKILL_PROMPT: Final = types.Prompt(
    name=SKILL,
    title="Use a skill",
    description="A request with the instructions of one of the agent's skills.",
    arguments=[
        types.PromptArgument(name=NAME_ARGUMENT, description="Name of the skill.", required=True),
        types.PromptArgument(
            name=REQUEST_ARGUMENT, description="What to do with it.", required=False
        ),
    ],
)


async def list_prompts(request: McpRequest, ctx: Context) -> types.ListPromptsResult:
    context = await request.tool_context(ctx.meta)
    has_skills = bool(await skills.served_names(context))
    return types.ListPromptsResult(prompts=[_SYSTEM_PROMPT, *[_SKILL_PROMPT] * has_skills])


async def get_prompt(
    request: McpRequest, ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult:
    """A prompt of the agent, or of the run. Raises NotFound, ValidationError and Conflict."""
    arguments = dict(params.arguments or {})
    if params.name == SKILL:
        return await _get_skill(await request.tool_context(ctx.meta), arguments)
    if params.name != SYSTEM:
        raise NotFound(f"no such prompt: {params.name[:80]!a}")
    return await _get_system(request, ctx, arguments)


async def _get_skill(context: ToolContext, arguments: dict[str, str]) -> types.GetPromptResult:
    name, text = arguments.pop(NAME_ARGUMENT, ""), arguments.pop(REQUEST_ARGUMENT, "")
    if arguments or not name:
        raise ValidationError(f"the prompt takes {NAME_ARGUMENT} and {REQUEST_ARGUMENT}")
    instructions = await skills.load_instructions(context, name)
    introduction = types.TextContent(text=text or f"Use the skill {name}.")
    messages = [
        types.PromptMessage(role="user", content=content)
        for content in (instructions, introduction)
    ]
    return types.GetPromptResult(description=f"The skill {name}.", messages=messages)


async def _get_system(
    request: McpRequest, ctx: Context, arguments: dict[str, str]
) -> types.GetPromptResult:
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
