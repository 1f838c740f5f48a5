"""How an agent's files came to be as they are."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.git import history
from carrel.actions.git.history import GitLogEntry
from carrel.tools.tool import Tool, ToolArguments, ToolContext


class Arguments(ToolArguments, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=100, description="How many commits at most.")] = 10
    include_diff: Annotated[
        bool, Meta(description="Whether to tell what they changed, all together.")
    ] = False


async def _run(context: ToolContext, asked: Arguments) -> object:
    found = await history.history(
        context.ports,
        context.actor,
        context.agent.id,
        limit=asked.limit,
        include_diff=asked.include_diff,
    )
    told: dict[str, object] = {"commits": [_told(line) for line in found.commits]}
    return {**told, "diff": found.diff} if found.diff else told


def _told(line: GitLogEntry) -> dict[str, object]:
    commit = line.commit
    return {
        "oid": commit.id,
        "short_oid": commit.id[:7],
        "subject": commit.subject,
        "body": commit.body,
        "author": commit.author,
        "timestamp_unix": commit.seconds,
        "checkpoint": line.checkpoint.subject if line.checkpoint else None,
    }


TOOL: Final = Tool(
    "memory_history",
    "Tells how your files have changed: when, by whom and why, the newest first.",
    Arguments,
    _run,
    private_only=True,
)
