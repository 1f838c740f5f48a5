"""Reading a file of a shared workspace."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.sandbox import workspace_files
from carrel.core.files.file_kinds import bare, is_binary
from carrel.core.sandbox.file_tools import USUAL_LINES, file_path, numbered, truncated
from carrel.tools.tool import Tool, ToolArguments, ToolContext
from carrel.tools.workspace_tool import (
    FilePath,
    Workspace,
    WorkspaceCall,
    approval_check_of,
    resolve_workspace_call,
    schema_with_workspaces,
)


class Arguments(ToolArguments, frozen=True):
    file_path: FilePath
    offset: Annotated[int, Meta(description="The number of the first line, from 1 on.")] = 1
    limit: Annotated[int, Meta(description="How many lines at most.")] = USUAL_LINES
    workspace: Workspace = ""


async def _checked(context: ToolContext, asked: Arguments) -> WorkspaceCall:
    grip = await resolve_workspace_call("read", context, asked, asked.workspace)
    file_path(asked.file_path)
    return grip


async def _run(context: ToolContext, asked: Arguments) -> object:
    grip = await _checked(context, asked)
    path = file_path(asked.file_path)
    _, entry, content = await workspace_files.read_file(grip.bench, path)
    if is_binary(content):
        return f"{path} is a binary file ({bare(entry.type)}, {len(content)} bytes)"
    return truncated(numbered(content, asked.offset, asked.limit, grip.limit), grip.limit)


TOOL: Final = Tool(
    "read",
    "Reads a text file of a workspace, each line with its number before it. Of a binary file it "
    "tells type and size, of a link where it points to.",
    Arguments,
    _run,
    approval_check=approval_check_of(_checked),
    schema_for=schema_with_workspaces,
)
