"""Tool `write`: creates or replaces a workspace file."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.sandbox import workspace_files
from carrel.core.sandbox.file_tools import parse_file_path
from carrel.tools.tool import Tool, ToolArguments, ToolContext
from carrel.tools.workspace_tool import (
    FilePath,
    WorkspaceCall,
    WorkspaceName,
    approval_check_of,
    resolve_workspace_call,
    schema_with_workspaces,
    with_redaction_note,
)


class WriteArguments(ToolArguments, frozen=True):
    file_path: FilePath
    content: Annotated[str, Meta(description="Complete content of the file.")]
    workspace: WorkspaceName = ""


async def _check(context: ToolContext, args: WriteArguments) -> WorkspaceCall:
    workspace_call = await resolve_workspace_call("write", context, args, args.workspace)
    parse_file_path(args.file_path)
    return workspace_call


async def _run(context: ToolContext, args: WriteArguments) -> object:
    workspace_call = await _check(context, args)
    path = parse_file_path(args.file_path)
    result = await workspace_files.write(workspace_call.files, path, args.content.encode())
    return with_redaction_note(f"Wrote {path} ({len(result.content)} bytes)", result.redacted)


TOOL: Final = Tool(
    "write",
    "Creates or replaces a workspace file; directories are created as needed. To change part of a "
    "file, use edit.",
    WriteArguments,
    _run,
    writes=True,
    destructive=True,
    approval_check=approval_check_of(_check),
    schema_for=schema_with_workspaces,
)
