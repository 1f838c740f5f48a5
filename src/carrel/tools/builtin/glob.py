"""Tool `glob`: lists workspace files by path pattern."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.sandbox import workspace_files
from carrel.core.errors import ValidationError
from carrel.core.sandbox.file_tools import compile_glob, normalize_path, truncate_output
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


class GlobArguments(ToolArguments, frozen=True):
    pattern: Annotated[
        str,
        Meta(
            description="* and ? match within a segment, ** any number of segments, {a,b} either "
            "option: src/**/*.{ts,tsx}"
        ),
    ]
    path: Annotated[str, Meta(description="Directory to search; default: the whole workspace.")] = (
        ""
    )
    workspace: WorkspaceName = ""


async def _check(context: ToolContext, args: GlobArguments) -> WorkspaceCall:
    workspace_call = await resolve_workspace_call("glob", context, args, args.workspace)
    if not args.pattern.strip():
        raise ValidationError("pattern is required")
    normalize_path(args.path)
    compile_glob(args.pattern.strip())
    return workspace_call


class GlobResult(ToolResultFields, frozen=True):
    paths: tuple[str, ...]
    """Relative to the searched directory, last changed first."""
    count: int
    """Matching files, those that did not fit included."""
    truncated: bool


async def _run(context: ToolContext, args: GlobArguments) -> ToolReply:
    workspace_call = await _check(context, args)
    paths = await workspace_files.glob_files(
        workspace_call.files, args.pattern.strip(), normalize_path(args.path)
    )
    text = "".join(f"{name}\n" for name in paths) or "No files found"
    limited = truncate_output(text.encode(), workspace_call.output_limit_bytes)
    visible = paths[: limited.count("\n")] if limited != text else paths
    result = GlobResult(paths=tuple(visible), count=len(paths), truncated=len(visible) < len(paths))
    return structured_reply(limited, result)


TOOL: Final = Tool(
    "glob",
    "Lists workspace files whose paths match a pattern, most recently changed first.",
    GlobArguments,
    _run,
    approval_check=approval_check_of(_check),
    schema_for=schema_with_workspaces,
    results=(GlobResult,),
)
