"""Tool `forget`: deletes a memory."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.memory import memories
from carrel.core.errors import NotFound
from carrel.core.runs import Audience
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields


class ForgetArguments(ToolArguments, frozen=True):
    id: Annotated[
        str,
        Meta(min_length=1, max_length=128, description="Id of the memory."),
    ]


class ForgetResult(ToolResultFields, frozen=True):
    ok: bool
    id: str


async def _run(context: ToolContext, args: ForgetArguments) -> object:
    """Delete a memory; in a shared session only a shared one, others seem absent."""
    ports, actor, agent = context.ports, context.actor, context.agent.id
    if context.audience is Audience.SHARED:
        memory = await memories.get(ports, actor, agent, args.id)
        if memory.mode is not Audience.SHARED:
            raise NotFound(f"no such memory: {args.id}")
    await memories.forget(ports, actor, agent, args.id)
    return {"ok": True, "id": args.id}


TOOL: Final = Tool(
    "forget",
    "Deletes one memory permanently, including its line in your MEMORY.md.",
    ForgetArguments,
    _run,
    writes=True,
    destructive=True,
    results=(ForgetResult,),
)
