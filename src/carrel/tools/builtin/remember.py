"""Keeping one thing for later."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.memory import memories
from carrel.actions.memory.memories import NewMemory
from carrel.tools.tool import Tool, ToolArguments, ToolContext


class Arguments(ToolArguments, frozen=True):
    content: Annotated[
        str, Meta(min_length=1, max_length=2000, description="One fact, in a sentence or two.")
    ]
    tags: Annotated[
        tuple[Annotated[str, Meta(max_length=64)], ...],
        Meta(max_length=16, description="Words under which it belongs."),
    ] = ()


async def _run(context: ToolContext, asked: Arguments) -> object:
    new = NewMemory(asked.content, asked.tags, mode=context.mode)
    kept = await memories.remember(context.ports, context.actor, context.agent.id, new)
    told = {"ok": True, "id": kept.memory.id, "created": kept.created}
    return {**told, "content": kept.memory.content}


TOOL: Final = Tool(
    "remember",
    "Keeps a fact for later conversations. What matters in the long run, such as preferences, "
    "decisions and names, is worth it; secrets are not kept.",
    Arguments,
    _run,
    writes=True,
)
