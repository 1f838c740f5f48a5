"""Tool `memory_checkpoint`: marks the current state of an agent's files."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.git import history
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields


class MemoryCheckpointArguments(ToolArguments, frozen=True):
    note: Annotated[
        str, Meta(min_length=1, max_length=200, description="Label of the checkpoint.")
    ] = "manual"


class MemoryCheckpointResult(ToolResultFields, frozen=True):
    ok: bool
    skipped: bool
    oid: str | UnsetType = UNSET
    subject: str | UnsetType = UNSET
    reason: str | UnsetType | None = UNSET
    """Why no checkpoint was needed."""


async def _run(context: ToolContext, args: MemoryCheckpointArguments) -> object:
    checkpoint = await history.checkpoint(context.ports, context.actor, context.agent.id, args.note)
    if checkpoint.skipped:
        return {"ok": True, "skipped": True, "reason": checkpoint.reason}
    return {"ok": True, "oid": checkpoint.oid[:7], "subject": checkpoint.subject, "skipped": False}


TOOL: Final = Tool(
    "memory_checkpoint",
    "Creates a checkpoint of your files, so that this state can be found again in their history. "
    "Call it before large changes.",
    MemoryCheckpointArguments,
    _run,
    private_only=True,
    requires_git=True,
    writes=True,
    results=(MemoryCheckpointResult,),
)
