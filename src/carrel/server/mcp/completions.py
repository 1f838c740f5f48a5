"""MCP completion of the paths of files and of prompt arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import mcp_types as types
from mcp.server.context import ServerRequestContext

from carrel.core.runs import Audience
from carrel.server.mcp import prompts, skills
from carrel.server.mcp.request_context import McpRequest
from carrel.server.mcp.resources import PATH_VARIABLE, template_of, visible_files
from carrel.tools.tool import ToolContext

Context: TypeAlias = ServerRequestContext[Any, Any]
MAX_VALUES: Final = 100
"""Values of one response, by the protocol."""


async def complete(
    request: McpRequest, ctx: Context, params: types.CompleteRequestParams
) -> types.CompleteResult:
    """Values that begin with the text; none for what has no known values."""
    context = await request.tool_context(ctx.meta)
    values = await _find_values(context, params)
    page = list(values[:MAX_VALUES])
    return types.CompleteResult(
        completion=types.Completion(
            values=page, total=len(values), has_more=len(values) > len(page)
        )
    )


async def _find_values(context: ToolContext, params: types.CompleteRequestParams) -> Sequence[str]:
    reference, argument = params.ref, params.argument
    if isinstance(reference, types.PromptReference):
        choices: Sequence[str] = ()
        match (reference.name, argument.name):
            case (prompts.SYSTEM, prompts.SCOPE_ARGUMENT):
                choices = list(Audience)
            case (prompts.SKILL, prompts.NAME_ARGUMENT):
                choices = await skills.served_names(context)
            case _:
                pass
    elif reference.uri == template_of(context.slug) and argument.name == PATH_VARIABLE:
        choices = sorted(path.text for path in await visible_files(context))
    else:
        choices = ()
    return [str(value) for value in choices if value.startswith(argument.value)]
