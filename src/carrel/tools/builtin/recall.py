"""Tool `recall`: searches an agent's memories."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.memory import memories
from carrel.core.sessions.session import format_timestamp
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields


class RecallArguments(ToolArguments, frozen=True):
    query: Annotated[
        str, Meta(min_length=1, max_length=500, description="Question or words to search for.")
    ]
    limit: Annotated[int, Meta(ge=1, le=50, description="Maximum number of results.")] = 5


class RecalledMemory(ToolResultFields, frozen=True):
    id: str
    content: str
    tags: tuple[str, ...]
    score: float
    remembered_at: str


class RecallResult(ToolResultFields, frozen=True):
    ok: bool
    query: str
    count: int
    memories: tuple[RecalledMemory, ...]


async def _run(context: ToolContext, args: RecallArguments) -> object:
    hits = await memories.recall(
        context.ports,
        context.actor,
        context.agent.id,
        args.query,
        limit=args.limit,
        mode=context.audience,
    )
    results = [
        {
            "id": hit.memory.id,
            "content": hit.memory.content,
            "tags": hit.memory.tags,
            "score": round(hit.score, 4),
            "remembered_at": format_timestamp(hit.memory.created_at),
        }
        for hit in hits
    ]
    return {"ok": True, "query": args.query, "count": len(results), "memories": results}


TOOL: Final = Tool(
    "recall",
    "Searches your memories by a question or by words, best match first; rare words count most.",
    RecallArguments,
    _run,
    private_only=True,
    results=(RecallResult,),
)
