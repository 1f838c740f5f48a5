"""Tool `memory_search`: searches memories, notes and memory files of an agent."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.search import knowledge_search
from carrel.actions.search.knowledge_search import DEFAULT_RESULTS, MAX_RESULTS, KnowledgeHit
from carrel.core.memory.memory import Memory
from carrel.core.memory.memory_paths import ROOT
from carrel.core.sessions.session import format_timestamp
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields


class MemorySearchArguments(ToolArguments, frozen=True):
    query: Annotated[
        str, Meta(min_length=1, max_length=500, description="Question or words to search for.")
    ]
    limit: Annotated[int, Meta(ge=1, le=MAX_RESULTS, description="Maximum number of results.")] = (
        DEFAULT_RESULTS
    )


class FoundText(ToolResultFields, frozen=True):
    source: Literal["memory", "file"]
    text: str
    score: float
    at: str
    id: str | UnsetType = UNSET
    """Of a memory."""
    path: str | UnsetType = UNSET
    """Of a file, as the tool `memory` names it."""
    line: int | UnsetType = UNSET
    heading: str | UnsetType = UNSET


class MemorySearchResult(ToolResultFields, frozen=True):
    query: str
    count: int
    results: tuple[FoundText, ...]
    complete: bool
    """Whether every file was searched."""


async def _run(context: ToolContext, args: MemorySearchArguments) -> object:
    result = await knowledge_search.search_knowledge(
        context.ports,
        context.actor,
        context.stack,
        args.query,
        limit=args.limit,
        audience=context.audience,
    )
    results = [_hit_to_json(hit) for hit in result.hits]
    return {
        "query": args.query,
        "count": len(results),
        "results": results,
        "complete": result.complete,
    }


def _hit_to_json(hit: KnowledgeHit) -> dict[str, Any]:
    fields = {"text": hit.text, "score": round(hit.score, 4), "at": format_timestamp(hit.at)}
    if isinstance(hit.source, Memory):
        return {"source": "memory", "id": hit.source.id, **fields}
    passage = hit.source.passage
    return {
        "source": "file",
        "path": f"{ROOT}/{hit.source.path}",
        "line": passage.line,
        "heading": passage.heading,
        **fields,
    }


TOOL: Final = Tool(
    "memory_search",
    "Searches all you have written down, best match first: memories, MEMORY.md, notes/ and "
    "memory/. Returns passages with the file and line; read more of a file with memory.",
    MemorySearchArguments,
    _run,
    private_only=True,
    results=(MemorySearchResult,),
)
