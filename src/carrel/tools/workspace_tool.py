"""What the tools that work in shared workspaces have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import asdict

from carrel.actions.sandbox.tool_access import load_tool_access
from carrel.actions.sandbox.workspace_files import WorkspaceFiles
from carrel.core.approvals import call_name
from carrel.core.errors import Conflict, ValidationError
from carrel.core.redaction.redactor import RedactionResult
from carrel.core.runs import RunStatus
from carrel.core.sandbox.file_tools import LONGEST_OUTPUT
from carrel.core.sandbox.tool_access import (
    RUNNING,
    WRITING,
    CallTarget,
    ToolAccess,
    resolve_call_target,
    with_workspace,
)
from carrel.tools.tool import ApprovalCheck, ToolArguments, ToolContext

Workspace = Annotated[str, Meta(description="Which workspace, by its name.")]
FilePath = Annotated[str, Meta(description="The file, from the root of the workspace.")]


class WorkspaceCall(Struct, frozen=True):
    """A call whose arguments are good, and where it works."""

    sitting: ToolContext
    aim: CallTarget

    @property
    def bench(self) -> WorkspaceFiles:
        assert self.aim.reach
        context = self.sitting
        run, call = context.run.id if context.run else None, context.call
        name = None if call is None else call_name(context.agent.id, context.session, run, call)
        return WorkspaceFiles(
            context.ports, context.actor, self.aim.reach.workspace, run, call, name
        )

    @property
    def gate(self) -> ApprovalCheck:
        sandbox, reach = self.aim.sandbox, self.aim.reach
        return ApprovalCheck(
            self.aim.asks,
            reach.workspace if reach else None,
            sandbox.id if sandbox else None,
            sandbox.revision if sandbox else 0,
        )

    @property
    def limit(self) -> int:
        """Bytes that are told at most."""
        sandbox = self.aim.sandbox
        return (
            int(sandbox.config.get("outputLimitBytes", LONGEST_OUTPUT))
            if sandbox
            else LONGEST_OUTPUT
        )


async def resolve_workspace_call(
    tool: str, context: ToolContext, asked: ToolArguments, workspace: str
) -> WorkspaceCall:
    """Raises a Refusal where a call cannot be meant, or is not allowed whatever anybody says."""
    for name, value in asdict(asked).items():
        if isinstance(value, str):
            encode_utf8(name, value)
    hands = await load_tool_access(context.ports, context.actor.tenant, context.config)
    aim = resolve_call_target(tool, hands, workspace or None)
    run = context.run
    if tool in (*WRITING, *RUNNING) and run is not None and run.status is not RunStatus.RUNNING:
        raise Conflict(f"the run has {run.status}", status=run.status)
    return WorkspaceCall(context, aim)


def encode_utf8(name: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValidationError(f"{name} is not valid Unicode") from None


Checked = Callable[[ToolContext, Any], Awaitable[WorkspaceCall]]


def approval_check_of(checked: Checked) -> Callable[[ToolContext, Any], Awaitable[ApprovalCheck]]:
    """What is found out before anybody is asked: all that does not depend on the files."""

    async def gate(context: ToolContext, asked: Any) -> ApprovalCheck:
        return (await checked(context, asked)).gate

    return gate


def schema_with_workspaces(schema: Mapping[str, Any], hands: ToolAccess) -> Mapping[str, Any]:
    return with_workspace(schema, hands)


def with_redaction_note(said: str, redacted: RedactionResult) -> str:
    """With a word on what was not stored as it was given."""
    if not redacted.replaced:
        return said
    return f"{said}\n[redacted: {', '.join(redacted.replaced)}]"
