"""Letting go of what was remembered."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.memory import memories
from carrel.core.errors import NotFound
from carrel.core.runs import Audience
from carrel.tools.tool import Tool, ToolArguments, ToolContext


class Arguments(ToolArguments, frozen=True):
    id: Annotated[
        str,
        Meta(min_length=1, max_length=128, description="Of the memory, as it was told before."),
    ]


async def _run(context: ToolContext, asked: Arguments) -> object:
    """In a shared session only what was remembered in one: of anything else nobody is told."""
    ports, actor, agent = context.ports, context.actor, context.agent.id
    if context.mode is Audience.SHARED:
        memory = await memories.get(ports, actor, agent, asked.id)
        if memory.mode is not Audience.SHARED:
            raise NotFound(f"there is no memory {asked.id}")
    await memories.forget(ports, actor, agent, asked.id)
    return {"ok": True, "id": asked.id}


TOOL: Final = Tool(
    "forget",
    "Forgets one memory for good, also where it was written into your MEMORY.md.",
    Arguments,
    _run,
    writes=True,
    destructive=True,
)
