"""Tool `workspace_write`: writes a shared item."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from carrel.actions import items
from carrel.actions.items import ItemWriteOptions, condition_for_version
from carrel.core.items import MAX_KEY_LENGTH, MAX_VALUE_BYTES
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields


class WorkspaceWriteArguments(ToolArguments, frozen=True):
    key: Annotated[
        str, Meta(min_length=1, max_length=MAX_KEY_LENGTH, description="Key of the item.")
    ]
    value: Annotated[
        str, Meta(max_length=MAX_VALUE_BYTES, description="Any text; JSON for structured values.")
    ]
    version: Annotated[
        Annotated[int, Meta(ge=0, lt=2**53)] | UnsetType,
        Meta(
            description="Write only if the item is still at this version; 0: only if it does not "
            "exist.",
        ),
    ] = UNSET


class WorkspaceWriteResult(ToolResultFields, frozen=True):
    status: Literal["written"]
    key: str
    version: int


async def _run(context: ToolContext, args: WorkspaceWriteArguments) -> object:
    options = ItemWriteOptions(
        condition_for_version(None if args.version is UNSET else args.version),
        created_by=context.agent.id,
        run=context.run.id if context.run else None,
    )
    stored = await items.put(
        context.ports, context.actor, context.agent.id, args.key, args.value, options
    )
    return {"status": "written", "key": stored.item.key, "version": stored.item.version}


TOOL: Final = Tool(
    "workspace_write",
    "Creates or replaces one shared item. Others may write it too: to change an item you have "
    "read, pass its version, and read it again if the version is no longer current.",
    WorkspaceWriteArguments,
    _run,
    writes=True,
    destructive=True,
    results=(WorkspaceWriteResult,),
)
