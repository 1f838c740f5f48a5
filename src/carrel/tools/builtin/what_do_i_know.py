"""Tool `what_do_i_know`: sections of an agent's MEMORY.md."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.core.identifiers import Path
from carrel.core.memory.sections import (
    MAX_SECTIONS,
    KnowledgeSummary,
    Section,
    parse_sections,
    summarize_sections,
)
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields

_MEMORY: Final = Path("MEMORY.md")


class WhatDoIKnowArguments(ToolArguments, frozen=True):
    section: Annotated[
        str, Meta(max_length=200, description="Only sections whose heading contains this text.")
    ] = ""
    limit: Annotated[
        int, Meta(ge=1, le=MAX_SECTIONS, description="Maximum number of sections.")
    ] = 20


class WhatDoIKnowResult(ToolResultFields, frozen=True):
    workspace_dir: str
    sections: tuple[Section, ...]
    truncated: bool


async def _run(context: ToolContext, args: WhatDoIKnowArguments) -> object:
    text = await context.read_text(_MEMORY)
    summary = (
        KnowledgeSummary((), False)
        if text is None
        else summarize_sections(parse_sections(text), args.section, args.limit)
    )
    return {
        "workspace_dir": context.workspace_uri,
        "sections": summary.sections,
        "truncated": summary.truncated,
    }


TOOL: Final = Tool(
    "what_do_i_know",
    "Returns the contents of your MEMORY.md by section. Call it before you say that you do not "
    "know something about your people, your work or earlier conversations.",
    WhatDoIKnowArguments,
    _run,
    private_only=True,
    results=(WhatDoIKnowResult,),
)
