"""Marking a moment in the history of an agent's files."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.git import history
from carrel.tools.tool import Tool, ToolArguments, ToolContext


class Arguments(ToolArguments, frozen=True):
    note: Annotated[
        str, Meta(min_length=1, max_length=200, description="What this moment is to be known by.")
    ] = "manual"


async def _run(context: ToolContext, asked: Arguments) -> object:
    marked = await history.checkpoint(context.ports, context.actor, context.agent.id, asked.note)
    if marked.skipped:
        return {"ok": True, "skipped": True, "reason": marked.reason}
    return {"ok": True, "oid": marked.oid[:7], "subject": marked.subject, "skipped": False}


TOOL: Final = Tool(
    "memory_checkpoint",
    "Marks how your files are now, so that this can be found again in their history. Call it "
    "before you change much at once.",
    Arguments,
    _run,
    private_only=True,
    writes=True,
)
