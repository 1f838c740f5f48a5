"""Tool `read`: reads a workspace file."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from carrel.actions.sandbox import workspace_files
from carrel.core.files.file_kinds import content_type
from carrel.core.sandbox.file_tools import (
    DEFAULT_LINE_COUNT,
    parse_file_path,
)
from carrel.tools.tool import (
    Tool,
    ToolArguments,
    ToolContext,
    ToolReply,
    ToolResultFields,
    structured_reply,
)
from carrel.tools.workspace_tool import (
    FilePath,
    WorkspaceCall,
    WorkspaceName,
    approval_check_of,
    resolve_workspace_call,
    schema_with_workspaces,
)


class ReadArguments(ToolArguments, frozen=True):
    file_path: FilePath
    offset: Annotated[int, Meta(description="Number of the first line, starting at 1.")] = 1
    limit: Annotated[int, Meta(description="Maximum number of lines.")] = DEFAULT_LINE_COUNT
    workspace: WorkspaceName = ""


async def _check(context: ToolContext, args: ReadArguments) -> WorkspaceCall:
    workspace_call = await resolve_workspace_call("read", context, args, args.workspace)
    parse_file_path(args.file_path)
    return workspace_call


class ReadResult(ToolResultFields, frozen=True, rename="camel"):
    path: str
    version: int
    size: int
    """Bytes of the whole file."""
    type: str
    binary: bool
    first_line: int | UnsetType = UNSET
    last_line: int | UnsetType = UNSET
    """Last line that the text has; less than `firstLine` if it has none."""
    total_lines: int | UnsetType | None = UNSET
    """None if the file is too large to count its lines."""
    next_offset: int | UnsetType | None = UNSET
    """Where to go on; None at the end of the file."""


async def _run(context: ToolContext, args: ReadArguments) -> ToolReply:
    workspace_call = await _check(context, args)
    path = parse_file_path(args.file_path)
    max_bytes = workspace_call.output_limit_bytes
    lines = await workspace_files.read_lines(
        workspace_call.files, path, args.offset, args.limit, max_bytes
    )
    result = ReadResult(
        path=path.text,
        version=lines.head.version,
        size=lines.entry.blob.size,
        type=content_type(lines.entry.type),
        binary=lines.visible is None,
    )
    if lines.visible is None:
        text = f"{path} is a binary file ({result.type}, {result.size} bytes)"
        return structured_reply(text, result)
    visible = lines.visible
    result = replace(
        result,
        first_line=visible.first,
        last_line=visible.last,
        total_lines=visible.total,
        next_offset=visible.next_line,
    )
    return structured_reply(visible.text, result)


TOOL: Final = Tool(
    "read",
    "Reads a text file of a workspace with line numbers. If more lines follow, the last line of "
    "the result says how many there are and where to go on. For a binary file it returns type and "
    "size, for a link its target.",
    ReadArguments,
    _run,
    approval_check=approval_check_of(_check),
    schema_for=schema_with_workspaces,
    results=(ReadResult,),
)
