"""Removing one item."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions import items
from carrel.actions.items import ItemWriteOptions, as_read
from carrel.core.items import LONGEST_KEY
from carrel.tools.tool import Tool, ToolArguments, ToolContext


class Arguments(ToolArguments, frozen=True):
    key: Annotated[str, Meta(min_length=1, max_length=LONGEST_KEY, description="Of the item.")]
    version: Annotated[
        Annotated[int, Meta(ge=0, lt=2**53)] | UnsetType,
        Meta(description="Only if the item is still at this version, as you read it."),
    ] = UNSET


async def _run(context: ToolContext, asked: Arguments) -> object:
    writing = ItemWriteOptions(
        as_read(None if asked.version is UNSET else asked.version),
        by=context.agent.id,
        run=context.run.id if context.run else None,
    )
    await items.delete(context.ports, context.actor, context.agent.id, asked.key, writing)
    return {"status": "deleted", "key": asked.key}


TOOL: Final = Tool(
    "workspace_delete",
    "Removes one shared item, for all who share it.",
    Arguments,
    _run,
    writes=True,
    destructive=True,
)
