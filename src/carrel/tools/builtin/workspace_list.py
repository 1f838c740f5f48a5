"""What items there are."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions import items
from carrel.core.items import LONGEST_KEY
from carrel.core.sessions import told_at
from carrel.tools.tool import Tool, ToolArguments, ToolContext


class Arguments(ToolArguments, frozen=True):
    prefix: Annotated[
        str, Meta(max_length=LONGEST_KEY, description="Only items whose key begins so.")
    ] = ""
    limit: Annotated[
        int, Meta(ge=1, le=items.MOST, description="How many at most, the newest first.")
    ] = items.MOST


async def _run(context: ToolContext, asked: Arguments) -> object:
    found = await items.listing(
        context.ports, context.actor, context.agent.id, prefix=asked.prefix, limit=asked.limit
    )
    return [
        {
            "key": row.item.key,
            "preview": row.preview,
            "created_by": row.item.created_by,
            "updated_at": told_at(row.item.updated_at),
            "version": row.item.version,
        }
        for row in found.items
    ]


TOOL: Final = Tool(
    "workspace_list",
    "Lists the items that you share with the other agents of your person, or keep if you are a "
    "shared agent: their keys and how their values begin, the last written first.",
    Arguments,
    _run,
)
