"""Fake ``bash`` tool: records commands and runs none."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from carrel.actions.sandbox.tool_access import load_tool_access
from carrel.core.access import Actor
from carrel.core.errors import Forbidden, ValidationError
from carrel.core.sandbox import tool_access
from carrel.core.store.commit import Applied, Commit
from carrel.core.store.record import RecordChange, RecordType
from carrel.ports import Ports
from carrel.tools import calls
from carrel.tools.registry import ALL_TOOLS
from carrel.tools.tool import ApprovalCheck, Tool, ToolArguments, ToolContext

SANDBOX = "sb_" + "0" * 24
SHARED = "ws_" + "0" * 24
SANDBOX_CONFIG = {"sandbox": SANDBOX}


class Command(ToolArguments, frozen=True):
    command: Annotated[str, Meta(description="What to run.")]
    workspace: Annotated[str | None, Meta(description="Where.")] = None
    env: Annotated[dict[str, str], Meta(description="Variables.")] = msgspec.field(
        default_factory=dict
    )
    cwd: Annotated[str, Meta(description="Directory.")] = ""
    timeout: Annotated[int | None, Meta(description="Seconds.")] = None


@dataclass
class Shell:
    """Records every command; blocks those that begin with `hold` until `go_on` is set."""

    ran: list[str] = field(default_factory=list)
    by: list[Actor] = field(default_factory=list)
    blocked: asyncio.Event = field(default_factory=asyncio.Event)
    resume: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, context: ToolContext, arguments: Command) -> object:
        self.ran.append(arguments.command)
        self.by.append(context.actor)
        if arguments.command.startswith("hold"):
            self.blocked.set()
            await self.resume.wait()
        if arguments.command == "refuse":
            raise ValidationError("nothing of that name")
        if arguments.command == "break":
            raise RuntimeError("a bug")
        return {"n": 1} if arguments.command == "json" else f"ran {arguments.command}"


async def check_approval(context: ToolContext, arguments: Command) -> ApprovalCheck:
    access = await load_tool_access(context.ports, context.agent.tenant, context.config)
    if not arguments.command.strip():
        raise ValidationError("command must not be empty")
    reach = access.find_workspace(arguments.workspace) if access.workspaces else None
    sandbox = reach.sandbox if reach else access.sandbox
    if sandbox is None:
        raise Forbidden("workspace is read-only")
    asks = tool_access.requires_approval("bash", sandbox.mode)
    return ApprovalCheck(
        asks, reach.workspace if reach else None, sandbox.id, sandbox.config_digest
    )


def fit_schema(schema: Any, access: tool_access.ToolAccess) -> Any:
    if len(access.workspaces) > 1:
        return schema
    properties = {
        name: definition for name, definition in schema["properties"].items() if name != "workspace"
    }
    return {**schema, "properties": properties}


def replace_bash_tool(
    monkeypatch: pytest.MonkeyPatch, approval_check: Any = check_approval
) -> Shell:
    """Replace the real tools that run commands with the fake."""
    shell = Shell()
    mine = [
        Tool(
            name,
            "Runs.",
            Command,
            shell.run,
            writes=True,
            approval_check=approval_check,
            schema_for=fit_schema,
        )
        for name in ("async_status", "bash")
    ]
    others = [
        tool
        for tool in ALL_TOOLS
        if tool.name not in calls.WORKSPACE_TOOLS - {calls.APPROVAL_RESULT}
    ]
    monkeypatch.setattr(calls, "ALL_TOOLS", tuple(sorted((*others, *mine), key=lambda t: t.name)))
    return shell


async def store_record(
    ports: Ports, tenant: str, record_type: RecordType, id: str, config: Any
) -> None:
    """Store a record; None deletes it."""
    body = None if config is None else {"config": config}
    change = RecordChange(tenant, record_type, id, body)
    commit = Commit((), "ada", "test", ports.clock.now(), changes=(change,))
    [outcome] = await ports.trees.commit([commit])
    assert isinstance(outcome, Applied)


async def store_sandbox(ports: Ports, tenant: str, mode: str | None = "ask", **more: Any) -> None:
    config = None if mode is None else {"permissionMode": mode, **more}
    await store_record(ports, tenant, RecordType.SANDBOX, SANDBOX, config)
