"""Tool `who_am_i`: an agent's identity, from its files."""

from __future__ import annotations

from typing import Final

from msgspec.structs import asdict

from carrel.core.agents.persona import parse_persona
from carrel.core.identifiers import Path
from carrel.core.sessions.session import truncate
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields

SOUL_CHARS: Final = 2048


class WhoAmIArguments(ToolArguments, frozen=True):
    """No arguments."""


class PersonaResult(ToolResultFields, frozen=True):
    name: str | None
    creature: str | None
    vibe: str | None
    emoji: str | None
    avatar: str | None


class WhoAmIResult(ToolResultFields, frozen=True):
    agent_id: str
    model: str | None
    workspace_dir: str
    identity: PersonaResult | None
    soul_excerpt: str | None


async def _run(context: ToolContext, args: WhoAmIArguments) -> object:
    identity = await context.read_text(Path("IDENTITY.md"))
    soul = await context.read_text(Path("SOUL.md"))
    return {
        "agent_id": context.slug,
        "model": context.config.model,
        "workspace_dir": context.workspace_uri,
        "identity": None if identity is None else asdict(parse_persona(identity)),
        "soul_excerpt": None if soul is None else truncate(soul, SOUL_CHARS)[0],
    }


TOOL: Final = Tool(
    "who_am_i",
    "Returns who you are: your identity as your files define it, and the start of your SOUL.md. "
    "Call it when you are asked who you are.",
    WhoAmIArguments,
    _run,
    results=(WhoAmIResult,),
)
