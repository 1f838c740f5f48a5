"""Putting one text in another's place in a file of a shared workspace."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.sandbox import workspace_files
from carrel.core.errors import ValidationError
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
    old_string: Annotated[str, Meta(description="What stands there now, to the letter.")]
    new_string: Annotated[str, Meta(description="What is to stand there instead.")]
    replace_all: Annotated[bool, Meta(description="Wherever it stands, not only once.")] = False
    workspace: Workspace = ""


async def _checked(context: ToolContext, asked: Arguments) -> WorkspaceCall:
    grip = await resolve_workspace_call("edit", context, asked, asked.workspace)
    file_path(asked.file_path)
    if not asked.old_string:
        raise ValidationError("old_string must not be empty")
    if asked.old_string == asked.new_string:
        raise ValidationError("old_string and new_string are identical")
    return grip


async def _run(context: ToolContext, asked: Arguments) -> object:
    grip = await _checked(context, asked)
    path = file_path(asked.file_path)
    old, new = asked.old_string.encode(), asked.new_string.encode()
    written, count = await workspace_files.edit(grip.bench, path, old, new, every=asked.replace_all)
    times = "1 replacement" if count == 1 else f"{count} replacements"
    return with_redaction_note(f"Edited {path} ({times})", written.redacted)


TOOL: Final = Tool(
    "edit",
    "Puts new_string in the place of old_string in a file of a workspace, both to the letter. "
    "old_string must stand there exactly once, unless replace_all is set.",
    Arguments,
    _run,
    writes=True,
    destructive=True,
    approval_check=approval_check_of(_checked),
    schema_for=schema_with_workspaces,
)
