"""Writing one item."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions import items
from carrel.actions.items import ItemWriteOptions, as_read
from carrel.core.items import LARGEST_VALUE, LONGEST_KEY
from carrel.tools.tool import Tool, ToolArguments, ToolContext


class Arguments(ToolArguments, frozen=True):
    key: Annotated[
        str, Meta(min_length=1, max_length=LONGEST_KEY, description="What it is found by.")
    ]
    value: Annotated[
        str, Meta(max_length=LARGEST_VALUE, description="Any text; JSON where it has structure.")
    ]
    version: Annotated[
        Annotated[int, Meta(ge=0, lt=2**53)] | UnsetType,
        Meta(
            description="Only if the item is still at this version, as you read it; 0: only if "
            "there is none yet.",
        ),
    ] = UNSET


async def _run(context: ToolContext, asked: Arguments) -> object:
    writing = ItemWriteOptions(
        as_read(None if asked.version is UNSET else asked.version),
        by=context.agent.id,
        run=context.run.id if context.run else None,
    )
    kept = await items.put(
        context.ports, context.actor, context.agent.id, asked.key, asked.value, writing
    )
    return {"status": "written", "key": kept.item.key, "version": kept.item.version}


TOOL: Final = Tool(
    "workspace_write",
    "Writes one shared item, new or over what it was. Others may write it too: to change what you "
    "have read, give its version, and read again if it is no longer current.",
    Arguments,
    _run,
    writes=True,
    destructive=True,
)
