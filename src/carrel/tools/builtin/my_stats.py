"""Tool `my_stats`: an agent's session, memory and dream statistics."""

from __future__ import annotations

from typing import Final

from carrel.actions.memory import stats as memory_stats
from carrel.core.identifiers import Path
from carrel.core.sessions.session import format_timestamp
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields

FILES: Final = ("IDENTITY.md", "SOUL.md", "USER.md", "AGENTS.md", "MEMORY.md", "DREAMS.md")


class MyStatsArguments(ToolArguments, frozen=True):
    """No arguments."""


class MyStatsResult(ToolResultFields, frozen=True):
    agent_id: str
    sessions_total: int
    memories_stored: int
    memories_promoted: int
    last_dream_ts: str | None
    recall_events_7d: int
    top_concept_tags_7d: tuple[tuple[str, int], ...]
    workspace_files_present: tuple[str, ...]


async def _run(context: ToolContext, args: MyStatsArguments) -> object:
    ports, agent = context.ports, context.agent
    stats = await memory_stats.load_stats(ports, context.actor, agent.id, context.audience)
    [sessions] = await ports.sessions.count(agent.tenant, [agent.id])
    present = await context.list_paths()
    return {
        "agent_id": context.slug,
        "sessions_total": sessions,
        "memories_stored": stats.memories,
        "memories_promoted": stats.promoted,
        "last_dream_ts": None if stats.last_dream is None else format_timestamp(stats.last_dream),
        "recall_events_7d": stats.recalls_7d,
        "top_concept_tags_7d": stats.top_concepts_7d,
        "workspace_files_present": [name for name in FILES if Path(name) in present],
    }


TOOL: Final = Tool(
    "my_stats",
    "Returns how many conversations you have had, how many memories you have, when you last "
    "dreamed and the top concepts of this week.",
    MyStatsArguments,
    _run,
    results=(MyStatsResult,),
)
