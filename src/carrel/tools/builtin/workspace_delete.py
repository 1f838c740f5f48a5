"""Tool `workspace_delete`: deletes a shared item."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from carrel.actions import items
from carrel.actions.items import ItemWriteOptions, condition_for_version
from carrel.core.items import MAX_KEY_LENGTH
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields


class WorkspaceDeleteArguments(ToolArguments, frozen=True):
    key: Annotated[
        str, Meta(min_length=1, max_length=MAX_KEY_LENGTH, description="Key of the item.")
    ]
    version: Annotated[
        Annotated[int, Meta(ge=0, lt=2**53)] | UnsetType,
        Meta(description="Delete only if the item is still at this version."),
    ] = UNSET


class WorkspaceDeleteResult(ToolResultFields, frozen=True):
    status: Literal["deleted"]
    key: str


async def _run(context: ToolContext, args: WorkspaceDeleteArguments) -> object:
    options = ItemWriteOptions(
        condition_for_version(None if args.version is UNSET else args.version),
        created_by=context.agent.id,
        run=context.run.id if context.run else None,
    )
    await items.delete(context.ports, context.actor, context.agent.id, args.key, options)
    return {"status": "deleted", "key": args.key}


TOOL: Final = Tool(
    "workspace_delete",
    "Deletes one shared item for everyone who shares it.",
    WorkspaceDeleteArguments,
    _run,
    writes=True,
    destructive=True,
    results=(WorkspaceDeleteResult,),
)
