"""Tool `read`: reads a workspace file."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.sandbox import workspace_files
from carrel.core.files.file_kinds import content_type
from carrel.core.sandbox.file_tools import (
    DEFAULT_LINE_COUNT,
    parse_file_path,
    truncate_output,
)
from carrel.tools.tool import Tool, ToolArguments, ToolContext
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


async def _run(context: ToolContext, args: ReadArguments) -> object:
    workspace_call = await _check(context, args)
    path = parse_file_path(args.file_path)
    max_bytes = workspace_call.output_limit_bytes
    lines = await workspace_files.read_lines(
        workspace_call.files, path, args.offset, args.limit, max_bytes
    )
    if isinstance(lines, bytes):
        return truncate_output(lines, max_bytes)
    return f"{path} is a binary file ({content_type(lines.type)}, {lines.blob.size} bytes)"


TOOL: Final = Tool(
    "read",
    "Reads a text file of a workspace with line numbers. For a binary file it returns type and "
    "size, for a link its target.",
    ReadArguments,
    _run,
    approval_check=approval_check_of(_check),
    schema_for=schema_with_workspaces,
)
