"""Finding what was remembered."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.memory import memories
from carrel.core.sessions import told_at
from carrel.tools.tool import Tool, ToolArguments, ToolContext


class Arguments(ToolArguments, frozen=True):
    query: Annotated[
        str, Meta(min_length=1, max_length=500, description="Words of what you want to know.")
    ]
    limit: Annotated[int, Meta(ge=1, le=50, description="How many at most.")] = 5


async def _run(context: ToolContext, asked: Arguments) -> object:
    found = await memories.recall(
        context.ports,
        context.actor,
        context.agent.id,
        asked.query,
        limit=asked.limit,
        mode=context.mode,
    )
    told = [
        {
            "id": hit.memory.id,
            "content": hit.memory.content,
            "tags": hit.memory.tags,
            "score": round(hit.score, 4),
            "remembered_at": told_at(hit.memory.created),
        }
        for hit in found
    ]
    return {"ok": True, "query": asked.query, "count": len(told), "memories": told}


TOOL: Final = Tool(
    "recall",
    "Finds what you were told to remember, by words of it or beginnings of words; the best first.",
    Arguments,
    _run,
    private_only=True,
)
