"""Tool `ls`: lists a directory of a workspace."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.sandbox import workspace_files
from carrel.core.overlay.directories import DirectoryEntry
from carrel.core.sandbox.file_tools import normalize_path, truncate_output
from carrel.core.sessions.session import format_timestamp
from carrel.tools.tool import (
    Tool,
    ToolArguments,
    ToolContext,
    ToolReply,
    ToolResultFields,
    structured_reply,
)
from carrel.tools.workspace_tool import (
    WorkspaceCall,
    WorkspaceName,
    approval_check_of,
    resolve_workspace_call,
    schema_with_workspaces,
)


class LsArguments(ToolArguments, frozen=True):
    path: Annotated[str, Meta(description="Directory; default: the root of the workspace.")] = ""
    workspace: WorkspaceName = ""


class ListedEntry(ToolResultFields, frozen=True, rename="camel"):
    path: str
    """Relative to the workspace root."""
    type: Literal["file", "directory"]
    size: int
    """Bytes; of a directory, those of all files in it."""
    updated_at: str
    version: int | UnsetType = UNSET
    """Of a file."""


class LsResult(ToolResultFields, frozen=True):
    path: str
    entries: tuple[ListedEntry, ...]
    count: int
    """Entries of the directory, those that did not fit included."""
    truncated: bool


async def _check(context: ToolContext, args: LsArguments) -> WorkspaceCall:
    workspace_call = await resolve_workspace_call("ls", context, args, args.workspace)
    normalize_path(args.path)
    return workspace_call


async def _run(context: ToolContext, args: LsArguments) -> ToolReply:
    workspace_call = await _check(context, args)
    directory = normalize_path(args.path)
    entries = await workspace_files.list_directory(workspace_call.files, directory)
    text = "".join(map(_format_entry, entries)) or "The directory is empty"
    limited = truncate_output(text.encode(), workspace_call.output_limit_bytes)
    visible = entries[: limited.count("\n")] if limited != text else entries
    result = LsResult(
        path=directory,
        entries=tuple(map(_entry_to_result, visible)),
        count=len(entries),
        truncated=len(visible) < len(entries),
    )
    return structured_reply(limited, result)


def _format_entry(entry: DirectoryEntry) -> str:
    name = entry.path.rpartition("/")[2]
    return f"{entry.size:>10}  {name}{'' if entry.file else '/'}\n"


def _entry_to_result(entry: DirectoryEntry) -> ListedEntry:
    return ListedEntry(
        path=entry.path,
        type="file" if entry.file else "directory",
        size=entry.size,
        updated_at=format_timestamp(entry.updated_at),
        version=entry.file.version if entry.file else UNSET,
    )


TOOL: Final = Tool(
    "ls",
    "Lists a directory of a workspace: names with their sizes in bytes; the name of a directory "
    "ends in a slash.",
    LsArguments,
    _run,
    approval_check=approval_check_of(_check),
    schema_for=schema_with_workspaces,
    results=(LsResult,),
)
