"""Copying one item to a shared agent."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions import items
from carrel.actions.items import ItemWriteOptions
from carrel.core.items import LONGEST_KEY
from carrel.tools.tool import Tool, ToolArguments, ToolContext


class Arguments(ToolArguments, frozen=True):
    key: Annotated[str, Meta(min_length=1, max_length=LONGEST_KEY, description="Of the item.")]
    target_agent_id: Annotated[
        str,
        Meta(min_length=1, max_length=128, description="The shared agent, by its id or slug."),
    ]
    target_key: Annotated[
        str, Meta(max_length=LONGEST_KEY, description="Its key there; the same where left out.")
    ] = ""


async def _run(context: ToolContext, asked: Arguments) -> object:
    writing = ItemWriteOptions(by=context.agent.id, run=context.run.id if context.run else None)
    target, kept = await items.publish(
        context.ports,
        context.actor,
        context.agent.id,
        asked.key,
        asked.target_agent_id,
        target_key=asked.target_key,
        writing=writing,
    )
    return {
        "status": "published",
        "from_key": asked.key,
        "to_agent": target.id,
        "to_key": kept.item.key,
        "version": kept.item.version,
    }


TOOL: Final = Tool(
    "workspace_publish",
    "Copies one of your items to a shared agent, over what it has under that key. Everybody whom "
    "that agent works for can then learn of it; later changes here do not reach it.",
    Arguments,
    _run,
    writes=True,
    destructive=True,
)
