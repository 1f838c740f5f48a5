"""Finding files of a shared workspace by their names."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.sandbox import workspace_files
from carrel.core.errors import ValidationError
from carrel.core.sandbox.file_tools import matcher, relative, truncated
from carrel.tools.tool import Tool, ToolArguments, ToolContext
from carrel.tools.workspace_tool import (
    Workspace,
    WorkspaceCall,
    approval_check_of,
    resolve_workspace_call,
    schema_with_workspaces,
)


class Arguments(ToolArguments, frozen=True):
    pattern: Annotated[
        str,
        Meta(description="* and ? stay within a segment, ** is any number of segments: **/*.py"),
    ]
    path: Annotated[str, Meta(description="The directory to look in; else the whole.")] = ""
    workspace: Workspace = ""


async def _checked(context: ToolContext, asked: Arguments) -> WorkspaceCall:
    grip = await resolve_workspace_call("glob", context, asked, asked.workspace)
    if not asked.pattern.strip():
        raise ValidationError("pattern is required")
    relative(asked.path)
    matcher(asked.pattern.strip())
    return grip


async def _run(context: ToolContext, asked: Arguments) -> object:
    grip = await _checked(context, asked)
    found = await workspace_files.glob_files(
        grip.bench, asked.pattern.strip(), relative(asked.path)
    )
    if not found:
        return "No files found"
    return truncated("".join(f"{name}\n" for name in found).encode(), grip.limit)


TOOL: Final = Tool(
    "glob",
    "Lists the files of a workspace whose paths fit a pattern, those changed last first.",
    Arguments,
    _run,
    approval_check=approval_check_of(_checked),
    schema_for=schema_with_workspaces,
)
