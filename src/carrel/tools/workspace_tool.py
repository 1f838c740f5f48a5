"""Shared parts of the tools that work in shared workspaces."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from carrel.actions.sandbox.tool_access import load_tool_access
from carrel.actions.sandbox.workspace_files import WorkspaceFiles
from carrel.core.approvals import scoped_call_name
from carrel.core.errors import Conflict, ValidationError
from carrel.core.overlay.compose import File
from carrel.core.sandbox.file_tools import DEFAULT_RESULT_BYTES
from carrel.core.sandbox.tool_access import (
    COMMAND_TOOLS,
    WRITE_TOOLS,
    CallTarget,
    ToolAccess,
    resolve_call_target,
    with_workspace,
)
from carrel.tools.tool import (
    ApprovalCheck,
    ToolArguments,
    ToolContext,
    ToolReply,
    ToolResultFields,
    structured_reply,
)

WorkspaceName = Annotated[str, Meta(description="Name of the workspace.")]
FilePath = Annotated[str, Meta(description="Path of the file, relative to the workspace root.")]


class WorkspaceCall(Struct, frozen=True):
    """A checked call and the workspace and sandbox it uses."""

    context: ToolContext
    target: CallTarget

    @property
    def files(self) -> WorkspaceFiles:
        assert self.target.workspace
        context = self.context
        run, call_id = context.run.id if context.run else None, context.call_id
        name = (
            None
            if call_id is None
            else scoped_call_name(context.agent.id, context.session, run, call_id, context.audience)
        )
        return WorkspaceFiles(
            *(context.ports, context.actor, self.target.workspace.workspace, run, call_id, name),
            audience=context.audience,
        )

    @property
    def approval_check(self) -> ApprovalCheck:
        sandbox, workspace = self.target.sandbox, self.target.workspace
        return ApprovalCheck(
            self.target.requires_approval,
            workspace.workspace if workspace else None,
            sandbox.id if sandbox else None,
            sandbox.config_digest if sandbox else "",
        )

    @property
    def output_limit_bytes(self) -> int:
        """Maximum size of the output."""
        sandbox = self.target.sandbox
        return (
            int(sandbox.config.get("outputLimitBytes", DEFAULT_RESULT_BYTES))
            if sandbox
            else DEFAULT_RESULT_BYTES
        )


async def resolve_workspace_call(
    tool: str, context: ToolContext, args: ToolArguments, workspace: str
) -> WorkspaceCall:
    """Resolve a call's workspace and sandbox. Raises a Refusal."""
    for name, value in asdict(args).items():
        if isinstance(value, str):
            encode_utf8(name, value)
    access = await load_tool_access(context.ports, context.actor.tenant, context.config)
    target = resolve_call_target(tool, access, workspace or None)
    run = context.run
    if tool in (*WRITE_TOOLS, *COMMAND_TOOLS) and run is not None and not run.accepts_writes:
        raise Conflict(f"the run is {run.status}", status=run.status)
    return WorkspaceCall(context, target)


def encode_utf8(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValidationError(f"{name} is not valid Unicode") from None


CheckCall = Callable[[ToolContext, Any], Awaitable[WorkspaceCall]]


def approval_check_of(check: CheckCall) -> Callable[[ToolContext, Any], Awaitable[ApprovalCheck]]:
    """Approval check of a tool from its argument check; does not read files."""

    async def approval_check(context: ToolContext, args: Any) -> ApprovalCheck:
        return (await check(context, args)).approval_check

    return approval_check


def schema_with_workspaces(schema: Mapping[str, Any], access: ToolAccess) -> Mapping[str, Any]:
    return with_workspace(schema, access)


class WrittenFile(ToolResultFields, frozen=True):
    """A file that a call wrote."""

    path: str
    version: int
    size: int
    """Bytes."""
    redacted: tuple[str, ...]
    """Names of secrets that were replaced."""
    replacements: int | UnsetType = UNSET


def written_reply(
    text: str, file: File, replaced: tuple[str, ...], replacements: int | None = None
) -> ToolReply:
    """Reply of a write; `replaced` are the names of secrets that it replaced."""
    written = WrittenFile(
        path=file.path.text,
        version=file.version,
        size=file.blob.size,
        redacted=replaced,
        replacements=UNSET if replacements is None else replacements,
    )
    return structured_reply(with_redaction_note(text, replaced), written)


def with_redaction_note(text: str, replaced: tuple[str, ...]) -> str:
    """Text with a note on what was redacted."""
    return f"{text}\n[redacted: {', '.join(replaced)}]" if replaced else text
