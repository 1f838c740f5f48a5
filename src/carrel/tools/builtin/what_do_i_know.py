"""What an agent has written down for itself, by sections of its MEMORY.md."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.core.identifiers import Path
from carrel.core.memory.sections import MOST_SECTIONS, KnowledgeSummary, known, sections
from carrel.tools.tool import Tool, ToolArguments, ToolContext

_MEMORY: Final = Path("MEMORY.md")


class Arguments(ToolArguments, frozen=True):
    section: Annotated[
        str, Meta(max_length=200, description="Only sections with this in their heading.")
    ] = ""
    limit: Annotated[
        int, Meta(ge=1, le=MOST_SECTIONS, description="How many sections at most.")
    ] = 20


async def _run(context: ToolContext, asked: Arguments) -> object:
    text = await context.text(_MEMORY)
    found = (
        KnowledgeSummary((), False)
        if text is None
        else known(sections(text), asked.section, asked.limit)
    )
    return {
        "workspace_dir": context.place,
        "sections": found.sections,
        "truncated": found.truncated,
    }


TOOL: Final = Tool(
    "what_do_i_know",
    "Tells what stands in your MEMORY.md, by section. Call it before you say that you do not know "
    "something about your people, your work or earlier conversations.",
    Arguments,
    _run,
    private_only=True,
)
