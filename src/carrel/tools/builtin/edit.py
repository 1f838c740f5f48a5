"""Tool `edit`: replaces text in a workspace file."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.sandbox import workspace_files
from carrel.core.errors import ValidationError
from carrel.core.sandbox.file_tools import parse_file_path
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolReply
from carrel.tools.workspace_tool import (
    FilePath,
    WorkspaceCall,
    WorkspaceName,
    WrittenFile,
    approval_check_of,
    resolve_workspace_call,
    schema_with_workspaces,
    written_reply,
)


class EditArguments(ToolArguments, frozen=True):
    file_path: FilePath
    old_string: Annotated[str, Meta(description="Exact current text.")]
    new_string: Annotated[str, Meta(description="Replacement text.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence.")] = False
    workspace: WorkspaceName = ""


async def _check(context: ToolContext, args: EditArguments) -> WorkspaceCall:
    workspace_call = await resolve_workspace_call("edit", context, args, args.workspace)
    parse_file_path(args.file_path)
    if not args.old_string:
        raise ValidationError("old_string must not be empty")
    if args.old_string == args.new_string:
        raise ValidationError("old_string and new_string are identical")
    return workspace_call


async def _run(context: ToolContext, args: EditArguments) -> ToolReply:
    workspace_call = await _check(context, args)
    path = parse_file_path(args.file_path)
    old, new = args.old_string.encode(), args.new_string.encode()
    edited = await workspace_files.edit(
        workspace_call.files, path, old, new, every=args.replace_all
    )
    count = edited.replacements
    times = "1 replacement" if count == 1 else f"{count} replacements"
    return written_reply(f"Edited {path} ({times})", edited.file, edited.redacted, count)


TOOL: Final = Tool(
    "edit",
    "Replaces old_string by new_string in a workspace file, both literally. old_string must occur "
    "exactly once, unless replace_all is set.",
    EditArguments,
    _run,
    writes=True,
    destructive=True,
    approval_check=approval_check_of(_check),
    schema_for=schema_with_workspaces,
    results=(WrittenFile,),
    can_wait=True,
)
