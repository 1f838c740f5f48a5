"""Tool `grep`: searches workspace files by regular expression."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from carrel.actions.sandbox import grep
from carrel.actions.sandbox.grep import GrepResult
from carrel.core.errors import ValidationError
from carrel.core.sandbox.file_tools import compile_glob, normalize_path, truncate_output
from carrel.core.sandbox.grep import (
    GrepOutput,
    GrepQuery,
    GrepRow,
    compile_pattern,
    format_rows,
)
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

_MAX_CONTEXT: Final = 1000


class GrepArguments(ToolArguments, frozen=True):
    pattern: Annotated[
        str, Meta(description="Regular expression, matched line by line unless multiline is set.")
    ]
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
    before_context: Annotated[
        int, Meta(ge=0, le=_MAX_CONTEXT, description="Lines to show before each match.")
    ] = 0
    after_context: Annotated[
        int, Meta(ge=0, le=_MAX_CONTEXT, description="Lines to show after each match.")
    ] = 0
    context: Annotated[
        int,
        Meta(ge=0, le=_MAX_CONTEXT, description="Lines to show before and after each match."),
    ] = 0
    head_limit: Annotated[
        int,
        Meta(ge=0, lt=2**53, description="Maximum number of files, lines or counts; 0: any."),
    ] = 0
    multiline: Annotated[
        bool, Meta(description="Let a match span lines, and . match line ends.")
    ] = False
    workspace: WorkspaceName = ""


async def _check(context: ToolContext, args: GrepArguments) -> WorkspaceCall:
    workspace_call = await resolve_workspace_call("grep", context, args, args.workspace)
    if not args.pattern:
        raise ValidationError("pattern is required")
    normalize_path(args.path)
    compile_glob(args.glob)
    compile_pattern(args.pattern, ignore_case=args.case_insensitive, multiline=args.multiline)
    return workspace_call


class MatchedLine(ToolResultFields, frozen=True):
    path: str
    line: int
    text: str
    context: bool | UnsetType = UNSET
    """True for a line around a match."""


class MatchCount(ToolResultFields, frozen=True):
    path: str
    count: int


class GrepToolResult(ToolResultFields, frozen=True):
    """One of `files`, `lines` and `counts`, by the output mode."""

    truncated: bool
    files: tuple[str, ...] | UnsetType = UNSET
    lines: tuple[MatchedLine, ...] | UnsetType = UNSET
    counts: tuple[MatchCount, ...] | UnsetType = UNSET
    skipped: tuple[str, ...] | UnsetType = UNSET
    """Files that are too large for a search across lines."""


async def _run(context: ToolContext, args: GrepArguments) -> ToolReply:
    workspace_call = await _check(context, args)
    query = GrepQuery(
        args.pattern,
        normalize_path(args.path),
        args.glob.strip(),
        args.case_insensitive,
        args.output_mode,
        args.line_numbers,
        max(args.before_context, args.context),
        max(args.after_context, args.context),
        args.multiline,
        args.head_limit,
    )
    limit = workspace_call.output_limit_bytes
    matches = await grep.search(workspace_call.files, query, limit)
    output, note = format_rows(query, matches.rows), _note(query, matches)
    output = output or (b"No matches found\n" if note else b"No matches found")
    text = truncate_output(output + note.encode(), limit)
    return structured_reply(text, _result(query, matches, len(output) > limit))


def _note(query: GrepQuery, matches: GrepResult) -> str:
    notes = [f"[first {query.head_limit}; there are more]"] if matches.is_cut else []
    notes += [f"[not searched, too large: {path}]" for path in matches.skipped]
    return "\n".join(notes)


def _result(query: GrepQuery, matches: GrepResult, is_long: bool) -> GrepToolResult:
    result = GrepToolResult(
        truncated=matches.is_cut or is_long,
        skipped=tuple(map(str, matches.skipped)) if matches.skipped else UNSET,
    )
    match query.mode:
        case GrepOutput.FILES:
            return replace(result, files=tuple(row.path for row in matches.rows))
        case GrepOutput.COUNT:
            counts = (MatchCount(path=row.path, count=row.count or 0) for row in matches.rows)
            return replace(result, counts=tuple(counts))
        case GrepOutput.CONTENT:
            return replace(result, lines=tuple(map(_matched_line, matches.rows)))


def _matched_line(row: GrepRow) -> MatchedLine:
    text = row.text.decode(errors="replace")
    context = UNSET if row.is_match else True
    return MatchedLine(path=row.path, line=row.line or 0, text=text, context=context)


TOOL: Final = Tool(
    "grep",
    "Searches the text files of a workspace, including hidden ones, for lines that match a regular "
    "expression. Returns files; with output_mode content the lines, with count the counts.",
    GrepArguments,
    _run,
    approval_check=approval_check_of(_check),
    schema_for=schema_with_workspaces,
    results=(GrepToolResult,),
)
