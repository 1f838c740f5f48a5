"""Searching the files of a shared workspace for a pattern."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.sandbox import grep
from carrel.core.errors import ValidationError
from carrel.core.sandbox.file_tools import matcher, relative, truncated
from carrel.core.sandbox.grep import GrepOutput, GrepQuery, compile_pattern, expand_braces
from carrel.tools.tool import Tool, ToolArguments, ToolContext
from carrel.tools.workspace_tool import (
    Workspace,
    WorkspaceCall,
    approval_check_of,
    resolve_workspace_call,
    schema_with_workspaces,
)


class Arguments(ToolArguments, frozen=True):
    pattern: Annotated[str, Meta(description="A regular expression, for one line at a time.")]
    path: Annotated[str, Meta(description="A file or directory to search; else the whole.")] = ""
    glob: Annotated[str, Meta(description="Which files: *.py, or src/**/*.ts")] = ""
    output_mode: Annotated[
        GrepOutput, Meta(description="Only the files, the lines, or how many lines of each file.")
    ] = GrepOutput.FILES
    case_insensitive: Annotated[bool, Meta(description="Take A for a.")] = False
    line_numbers: Annotated[bool, Meta(description="With content: before each line.")] = False
    workspace: Workspace = ""


async def _checked(context: ToolContext, asked: Arguments) -> WorkspaceCall:
    grip = await resolve_workspace_call("grep", context, asked, asked.workspace)
    if not asked.pattern:
        raise ValidationError("pattern is required")
    relative(asked.path)
    for glob in expand_braces(asked.glob):
        matcher(glob)
    compile_pattern(asked.pattern, ignore_case=asked.case_insensitive)
    return grip


async def _run(context: ToolContext, asked: Arguments) -> object:
    grip = await _checked(context, asked)
    wanted = GrepQuery(
        asked.pattern,
        relative(asked.path),
        asked.glob.strip(),
        asked.case_insensitive,
        asked.output_mode,
        asked.line_numbers,
    )
    said = await grep.search(grip.bench, wanted, grip.limit)
    return truncated(said, grip.limit) if said else "No matches found"


TOOL: Final = Tool(
    "grep",
    "Searches the text files of a workspace, hidden ones too, for lines that a regular expression "
    "fits. Tells the files; with output_mode content the lines, with count how many.",
    Arguments,
    _run,
    approval_check=approval_check_of(_checked),
    schema_for=schema_with_workspaces,
)
