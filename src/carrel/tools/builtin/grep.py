"""Tool `grep`: searches workspace files by regular expression."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.sandbox import grep
from carrel.core.errors import ValidationError
from carrel.core.sandbox.file_tools import compile_glob, normalize_path, truncate_output
from carrel.core.sandbox.grep import GrepOutput, GrepQuery, compile_pattern, expand_braces
from carrel.tools.tool import Tool, ToolArguments, ToolContext
from carrel.tools.workspace_tool import (
    WorkspaceCall,
    WorkspaceName,
    approval_check_of,
    resolve_workspace_call,
    schema_with_workspaces,
)


class GrepArguments(ToolArguments, frozen=True):
    pattern: Annotated[str, Meta(description="Regular expression, matched line by line.")]
    path: Annotated[
        str, Meta(description="File or directory to search; default: the whole workspace.")
    ] = ""
    glob: Annotated[str, Meta(description="Only files that match: *.py, or src/**/*.ts")] = ""
    output_mode: Annotated[
        GrepOutput, Meta(description="Matching files, matching lines, or match counts per file.")
    ] = GrepOutput.FILES
    case_insensitive: Annotated[bool, Meta(description="Ignore case.")] = False
    line_numbers: Annotated[
        bool, Meta(description="Prefix lines with their numbers, with output_mode content.")
    ] = False
    workspace: WorkspaceName = ""


async def _check(context: ToolContext, args: GrepArguments) -> WorkspaceCall:
    workspace_call = await resolve_workspace_call("grep", context, args, args.workspace)
    if not args.pattern:
        raise ValidationError("pattern is required")
    normalize_path(args.path)
    for glob in expand_braces(args.glob):
        compile_glob(glob)
    compile_pattern(args.pattern, ignore_case=args.case_insensitive)
    return workspace_call


async def _run(context: ToolContext, args: GrepArguments) -> object:
    workspace_call = await _check(context, args)
    query = GrepQuery(
        args.pattern,
        normalize_path(args.path),
        args.glob.strip(),
        args.case_insensitive,
        args.output_mode,
        args.line_numbers,
    )
    output = await grep.search(workspace_call.files, query, workspace_call.output_limit_bytes)
    return (
        truncate_output(output, workspace_call.output_limit_bytes) if output else "No matches found"
    )


TOOL: Final = Tool(
    "grep",
    "Searches the text files of a workspace, including hidden ones, for lines that match a regular "
    "expression. Returns files; with output_mode content the lines, with count the counts.",
    GrepArguments,
    _run,
    approval_check=approval_check_of(_check),
    schema_for=schema_with_workspaces,
)
