"""Reading one item."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions import items
from carrel.core.items import LONGEST_KEY
from carrel.core.sessions import told_at
from carrel.tools.tool import Tool, ToolArguments, ToolContext


class Arguments(ToolArguments, frozen=True):
    key: Annotated[str, Meta(min_length=1, max_length=LONGEST_KEY, description="Of the item.")]


async def _run(context: ToolContext, asked: Arguments) -> object:
    kept = await items.get(context.ports, context.actor, context.agent.id, asked.key)
    return {
        "key": kept.item.key,
        "value": kept.value,
        "created_by": kept.item.created_by,
        "created_at": told_at(kept.item.created_at),
        "updated_at": told_at(kept.item.updated_at),
        "version": kept.item.version,
    }


TOOL: Final = Tool(
    "workspace_read",
    "Reads one shared item by its key: the whole value, who wrote it first, and its version.",
    Arguments,
    _run,
)
