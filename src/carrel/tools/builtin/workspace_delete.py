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


async def _run(sitting: ToolContext, asked: Arguments) -> object:
    writing = ItemWriteOptions(
        as_read(None if asked.version is UNSET else asked.version),
        by=sitting.agent.id,
        run=sitting.run.id if sitting.run else None,
    )
    await items.delete(sitting.ports, sitting.actor, sitting.agent.id, asked.key, writing)
    return {"status": "deleted", "key": asked.key}


TOOL: Final = Tool(
    "workspace_delete",
    "Removes one shared item, for all who share it.",
    Arguments,
    _run,
    writes=True,
    destroys=True,
)
