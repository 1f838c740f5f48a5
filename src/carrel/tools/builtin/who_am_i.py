"""Who an agent is, as its files say."""

from __future__ import annotations

from typing import Final

from msgspec.structs import asdict

from carrel.core.agents.persona import persona_of
from carrel.core.identifiers import Path
from carrel.core.sessions import shown
from carrel.tools.tool import Tool, ToolArguments, ToolContext

SOUL_CHARS: Final = 2048


class Arguments(ToolArguments, frozen=True):
    """None."""


async def _run(context: ToolContext, asked: Arguments) -> object:
    identity = await context.text(Path("IDENTITY.md"))
    soul = await context.text(Path("SOUL.md"))
    return {
        "agent_id": context.slug,
        "model": context.config.model,
        "workspace_dir": context.place,
        "identity": None if identity is None else asdict(persona_of(identity)),
        "soul_excerpt": None if soul is None else shown(soul, SOUL_CHARS)[0],
    }


TOOL: Final = Tool(
    "who_am_i",
    "Tells who you are: your name and nature as your own files say, and how your SOUL.md begins. "
    "Call it when somebody asks who you are.",
    Arguments,
    _run,
)
