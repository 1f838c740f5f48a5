"""Tool `workspace_publish`: copies an item to a shared agent."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from carrel.actions import items
from carrel.actions.items import ItemWriteOptions
from carrel.core.items import MAX_KEY_LENGTH
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields


class WorkspacePublishArguments(ToolArguments, frozen=True):
    key: Annotated[
        str, Meta(min_length=1, max_length=MAX_KEY_LENGTH, description="Key of the item.")
    ]
    target_agent_id: Annotated[
        str,
        Meta(min_length=1, max_length=128, description="Shared agent, by id or slug."),
    ]
    target_key: Annotated[
        str,
        Meta(max_length=MAX_KEY_LENGTH, description="Key at the target; default: the same key."),
    ] = ""


class WorkspacePublishResult(ToolResultFields, frozen=True):
    status: Literal["published"]
    from_key: str
    to_agent: str
    to_key: str
    version: int


async def _run(context: ToolContext, args: WorkspacePublishArguments) -> object:
    options = ItemWriteOptions(
        created_by=context.agent.id, run=context.run.id if context.run else None
    )
    target, stored = await items.publish(
        context.ports,
        context.actor,
        context.agent.id,
        args.key,
        args.target_agent_id,
        target_key=args.target_key,
        options=options,
    )
    return {
        "status": "published",
        "from_key": args.key,
        "to_agent": target.id,
        "to_key": stored.item.key,
        "version": stored.item.version,
    }


TOOL: Final = Tool(
    "workspace_publish",
    "Copies one of your items to a shared agent, replacing its item of that key. Everyone that "
    "agent works for can then see it; later changes to your item are not copied.",
    WorkspacePublishArguments,
    _run,
    writes=True,
    destructive=True,
    results=(WorkspacePublishResult,),
)
