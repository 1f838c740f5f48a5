"""Tool `remember`: stores a memory."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.memory import memories
from carrel.actions.memory.memories import NewMemory
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields


class RememberArguments(ToolArguments, frozen=True):
    content: Annotated[
        str, Meta(min_length=1, max_length=2000, description="One fact, in one or two sentences.")
    ]
    tags: Annotated[
        tuple[Annotated[str, Meta(max_length=64)], ...],
        Meta(max_length=16, description="Keywords."),
    ] = ()
    supersedes: Annotated[
        str, Meta(max_length=128, description="Id of the memory that this one replaces.")
    ] = ""


class StoredFact(ToolResultFields, frozen=True):
    ok: bool
    id: str
    created: bool
    """False if the same text was already remembered."""
    content: str


async def _run(context: ToolContext, args: RememberArguments) -> object:
    new_memory = NewMemory(
        args.content, args.tags, mode=context.audience, supersedes=args.supersedes or None
    )
    result = await memories.remember(context.ports, context.actor, context.agent.id, new_memory)
    response = {"ok": True, "id": result.memory.id, "created": result.created}
    return {**response, "content": result.memory.content}


TOOL: Final = Tool(
    "remember",
    "Stores a fact for later conversations. Use it for what matters in the long run, such as "
    "preferences, decisions and names; secrets are not stored.",
    RememberArguments,
    _run,
    writes=True,
    results=(StoredFact,),
)
