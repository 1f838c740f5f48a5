"""What an agent can tell of itself in numbers."""

from __future__ import annotations

from typing import Final

from carrel.actions.memory import stats as memory_stats
from carrel.core.identifiers import Path
from carrel.core.runs import Audience
from carrel.core.sessions import told_at
from carrel.tools.tool import Tool, ToolArguments, ToolContext

FILES: Final = ("IDENTITY.md", "SOUL.md", "USER.md", "AGENTS.md", "MEMORY.md", "DREAMS.md")


class Arguments(ToolArguments, frozen=True):
    """None."""


async def _run(context: ToolContext, asked: Arguments) -> object:
    """In a shared session without the tags, which are words of memories."""
    ports, agent = context.ports, context.agent
    stats = await memory_stats.stats(ports, agent.tenant, agent.id, ports.clock.now())
    [sessions] = await ports.sessions.count(agent.tenant, [agent.id])
    there = await context.paths()
    private = context.mode is Audience.MAIN
    return {
        "agent_id": context.slug,
        "sessions_total": sessions,
        "memories_stored": stats.memories,
        "memories_promoted": stats.promoted,
        "last_dream_ts": None if stats.last_dream is None else told_at(stats.last_dream),
        "recall_events_7d": stats.recalls_7d,
        "top_concept_tags_7d": stats.top_concepts_7d if private else (),
        "workspace_files_present": [name for name in FILES if Path(name) in there],
    }


TOOL: Final = Tool(
    "my_stats",
    "Tells how many conversations you have had, how much you remember, when you dreamed last and "
    "what has been on your mind this week.",
    Arguments,
    _run,
)
