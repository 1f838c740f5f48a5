"""Writing a whole file of a shared workspace."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.sandbox import workspace_files
from carrel.core.sandbox.file_tools import file_path
from carrel.tools.tool import Tool, ToolArguments, ToolContext
from carrel.tools.workspace_tool import (
    FilePath,
    Workspace,
    WorkspaceCall,
    approval_check_of,
    resolve_workspace_call,
    schema_with_workspaces,
    with_redaction_note,
)


class Arguments(ToolArguments, frozen=True):
    file_path: FilePath
    content: Annotated[str, Meta(description="The whole of what it is to hold.")]
    workspace: Workspace = ""


async def _checked(context: ToolContext, asked: Arguments) -> WorkspaceCall:
    grip = await resolve_workspace_call("write", context, asked, asked.workspace)
    file_path(asked.file_path)
    return grip


async def _run(context: ToolContext, asked: Arguments) -> object:
    grip = await _checked(context, asked)
    path = file_path(asked.file_path)
    written = await workspace_files.write(grip.bench, path, asked.content.encode())
    return with_redaction_note(f"Wrote {path} ({len(written.content)} bytes)", written.redacted)


TOOL: Final = Tool(
    "write",
    "Writes a file of a workspace as a whole, over what was there; directories need not be made. "
    "To change a part of a file, edit is safer.",
    Arguments,
    _run,
    writes=True,
    destructive=True,
    approval_check=approval_check_of(_checked),
    schema_for=schema_with_workspaces,
)
