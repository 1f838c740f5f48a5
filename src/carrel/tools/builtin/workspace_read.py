"""Tool `workspace_read`: reads a shared item."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions import items
from carrel.core.items import MAX_KEY_LENGTH
from carrel.core.sessions.session import format_timestamp
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields


class WorkspaceReadArguments(ToolArguments, frozen=True):
    key: Annotated[
        str, Meta(min_length=1, max_length=MAX_KEY_LENGTH, description="Key of the item.")
    ]


class WorkspaceReadResult(ToolResultFields, frozen=True):
    key: str
    value: str
    created_by: str | None
    created_at: str
    updated_at: str
    version: int


async def _run(context: ToolContext, args: WorkspaceReadArguments) -> object:
    stored = await items.get(context.ports, context.actor, context.agent.id, args.key)
    return {
        "key": stored.item.key,
        "value": stored.value,
        "created_by": stored.item.created_by,
        "created_at": format_timestamp(stored.item.created_at),
        "updated_at": format_timestamp(stored.item.updated_at),
        "version": stored.item.version,
    }


TOOL: Final = Tool(
    "workspace_read",
    "Reads one shared item by key: its value, creator and version.",
    WorkspaceReadArguments,
    _run,
    results=(WorkspaceReadResult,),
)
