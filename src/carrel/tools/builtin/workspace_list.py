"""Tool `workspace_list`: lists shared items."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from carrel.actions import items
from carrel.core.items import MAX_KEY_LENGTH
from carrel.core.sessions.session import format_timestamp
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolReply, ToolResultFields


class WorkspaceListArguments(ToolArguments, frozen=True):
    prefix: Annotated[
        str, Meta(max_length=MAX_KEY_LENGTH, description="Only items whose key has this prefix.")
    ] = ""
    limit: Annotated[
        int, Meta(ge=1, le=items.MAX_ITEMS, description="Maximum number of items, newest first.")
    ] = items.MAX_ITEMS


class ListedItem(ToolResultFields, frozen=True):
    key: str
    preview: str
    created_by: str | None
    updated_at: str
    version: int


class WorkspaceListResult(ToolResultFields, frozen=True):
    items: tuple[ListedItem, ...]


async def _run(context: ToolContext, args: WorkspaceListArguments) -> object:
    page = await items.list_items(
        context.ports, context.actor, context.agent.id, prefix=args.prefix, limit=args.limit
    )
    rows = [
        {
            "key": row.item.key,
            "preview": row.preview,
            "created_by": row.item.created_by,
            "updated_at": format_timestamp(row.item.updated_at),
            "version": row.item.version,
        }
        for row in page.items
    ]
    return ToolReply(msgspec.json.encode(rows).decode(), structured={"items": rows})


TOOL: Final = Tool(
    "workspace_list",
    "Lists the items you share with your person's other agents (or your own, if you are a shared "
    "agent): keys and the start of the values, most recently written first.",
    WorkspaceListArguments,
    _run,
    results=(WorkspaceListResult,),
)
