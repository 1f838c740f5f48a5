"""Tool `write`: creates or replaces a workspace file."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta
from msgspec.structs import replace

from carrel.actions.sandbox import workspace_files
from carrel.actions.sandbox.version_texts import load_version_text
from carrel.core.errors import WorkspaceConflict
from carrel.core.identifiers import Path
from carrel.core.sandbox.file_tools import parse_file_path
from carrel.tools.tool import ApprovalCheck, Tool, ToolArguments, ToolContext, ToolReply
from carrel.tools.workspace_tool import (
    FilePath,
    WorkspaceCall,
    WorkspaceName,
    WrittenFile,
    resolve_workspace_call,
    schema_with_workspaces,
    written_reply,
)


class WriteArguments(ToolArguments, frozen=True):
    file_path: FilePath
    content: Annotated[str, Meta(description="Complete content of the file.")]
    workspace: WorkspaceName = ""


async def _check(context: ToolContext, args: WriteArguments) -> WorkspaceCall:
    workspace_call = await resolve_workspace_call("write", context, args, args.workspace)
    parse_file_path(args.file_path)
    return workspace_call


async def _approval_check(context: ToolContext, args: WriteArguments) -> ApprovalCheck:
    """Check of the call, with the version that the person sees when asked."""
    workspace_call = await _check(context, args)
    check = workspace_call.approval_check
    if not check.requires_approval:
        return check
    head = await workspace_files.find_head(workspace_call.files, parse_file_path(args.file_path))
    return replace(check, expected_version=head.version if head else 0)


async def _run(context: ToolContext, args: WriteArguments) -> ToolReply:
    workspace_call = await _check(context, args)
    path, expected = parse_file_path(args.file_path), context.expected_version
    try:
        result = await workspace_files.write(
            workspace_call.files, path, args.content.encode(), expected
        )
    except WorkspaceConflict:
        if expected is None:
            raise
        return await _changed_reply(workspace_call, path, expected)
    text = f"Wrote {path} ({len(result.content)} bytes)"
    return written_reply(text, result.file, result.redacted.replaced)


async def _changed_reply(workspace_call: WorkspaceCall, path: Path, expected: int) -> ToolReply:
    """Refusal with the text at the time of the request and the text now."""
    files, limit = workspace_call.files, workspace_call.output_limit_bytes // 2
    head = await workspace_files.find_head(files, path)
    before = await load_version_text(files, path, expected, limit)
    now = await load_version_text(files, path, head.version if head else 0, limit)
    message = (
        f"Error: {path} changed since the call was requested; nothing was written."
        f"\n--- when requested: {before}\n--- now: {now}"
    )
    return ToolReply(message, is_error=True, structured={"requested": before, "current": now})


TOOL: Final = Tool(
    "write",
    "Creates or replaces a workspace file; directories are created as needed. To change part of a "
    "file, use edit.",
    WriteArguments,
    _run,
    writes=True,
    destructive=True,
    approval_check=_approval_check,
    schema_for=schema_with_workspaces,
    results=(WrittenFile,),
    can_wait=True,
)
