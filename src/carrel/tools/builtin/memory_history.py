"""Tool `memory_history`: commit history of an agent's files."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.git import history
from carrel.actions.git.history import GitLogEntry
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolResultFields


class MemoryHistoryArguments(ToolArguments, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=100, description="Maximum number of commits.")] = 10
    include_diff: Annotated[bool, Meta(description="Include the combined diff.")] = False


class HistoryCommit(ToolResultFields, frozen=True):
    oid: str
    short_oid: str
    subject: str
    body: str
    author: str
    timestamp_unix: int
    checkpoint: str | None


class MemoryHistoryResult(ToolResultFields, frozen=True):
    commits: tuple[HistoryCommit, ...]
    diff: str | UnsetType = UNSET


async def _run(context: ToolContext, args: MemoryHistoryArguments) -> object:
    log = await history.load_history(
        context.ports,
        context.actor,
        context.agent.id,
        limit=args.limit,
        include_diff=args.include_diff,
    )
    result: dict[str, object] = {"commits": [_entry_to_json(line) for line in log.commits]}
    return {**result, "diff": log.diff} if log.diff else result


def _entry_to_json(entry: GitLogEntry) -> dict[str, object]:
    commit = entry.commit
    return {
        "oid": commit.id,
        "short_oid": commit.id[:7],
        "subject": commit.subject,
        "body": commit.body,
        "author": commit.author,
        "timestamp_unix": commit.seconds,
        "checkpoint": entry.checkpoint.subject if entry.checkpoint else None,
    }


TOOL: Final = Tool(
    "memory_history",
    "Returns how your files have changed: when, by whom and why, newest first.",
    MemoryHistoryArguments,
    _run,
    private_only=True,
    requires_git=True,
    results=(MemoryHistoryResult,),
)
