"""A stand-in for the tool that runs commands: it notes what it was told to run, and no more."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from msgspec import Meta

from carrel.actions.sandbox.tool_access import load_tool_access
from carrel.core.access import Actor
from carrel.core.errors import Forbidden, ValidationError
from carrel.core.sandbox import tool_access
from carrel.core.store.commit import Applied, Commit
from carrel.core.store.record import RecordChange, RecordType
from carrel.ports import Ports
from carrel.tools import ALL, calls
from carrel.tools.tool import ApprovalCheck, Tool, ToolArguments, ToolContext

SANDBOX = "sb_" + "0" * 24
SHARED = "ws_" + "0" * 24
HERE = {"sandbox": SANDBOX}


class Command(ToolArguments, frozen=True):
    command: Annotated[str, Meta(description="What to run.")]
    workspace: Annotated[str | None, Meta(description="Where.")] = None


@dataclass
class Shell:
    """Notes every command; waits with those that begin with `hold` until it is told to go on."""

    ran: list[str] = field(default_factory=list)
    by: list[Actor] = field(default_factory=list)
    held: asyncio.Event = field(default_factory=asyncio.Event)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, context: ToolContext, asked: Command) -> object:
        self.ran.append(asked.command)
        self.by.append(context.actor)
        if asked.command.startswith("hold"):
            self.held.set()
            await self.go_on.wait()
        if asked.command == "refuse":
            raise ValidationError("nothing of that name")
        if asked.command == "break":
            raise RuntimeError("a bug")
        return {"n": 1} if asked.command == "json" else f"ran {asked.command}"


async def gate(context: ToolContext, asked: Command) -> ApprovalCheck:
    hands = await load_tool_access(context.ports, context.agent.tenant, context.config)
    if not asked.command.strip():
        raise ValidationError("command must not be empty")
    reach = hands.find_workspace(asked.workspace) if hands.workspaces else None
    sandbox = reach.sandbox if reach else hands.sandbox
    if sandbox is None:
        raise Forbidden("workspace is read-only")
    asks = tool_access.requires_approval("bash", sandbox.mode)
    return ApprovalCheck(asks, reach.workspace if reach else None, sandbox.id, sandbox.revision)


def fitted(schema: Any, hands: tool_access.ToolAccess) -> Any:
    if len(hands.workspaces) > 1:
        return schema
    kept = {name: said for name, said in schema["properties"].items() if name != "workspace"}
    return {**schema, "properties": kept}


def standing_in(monkeypatch: pytest.MonkeyPatch, gate: Any = gate) -> Shell:
    """Let agents have the stand-in in the place of the real ones."""
    shell = Shell()
    mine = [
        Tool(name, "Runs.", Command, shell.run, writes=True, approval_check=gate, schema_for=fitted)
        for name in ("async_status", "bash")
    ]
    others = [tool for tool in ALL if tool.name not in calls.WORKSPACE_TOOLS]
    monkeypatch.setattr(calls, "ALL", tuple(sorted((*others, *mine), key=lambda t: t.name)))
    return shell


async def kept(ports: Ports, tenant: str, record_type: RecordType, id: str, config: Any) -> None:
    """A record as others make them; None removes it."""
    body = None if config is None else {"config": config}
    change = RecordChange(tenant, record_type, id, body)
    commit = Commit((), "ada", "test", ports.clock.now(), changes=(change,))
    [outcome] = await ports.trees.commit([commit])
    assert isinstance(outcome, Applied)


async def sandbox(ports: Ports, tenant: str, mode: str | None = "ask", **more: Any) -> None:
    config = None if mode is None else {"permissionMode": mode, **more}
    await kept(ports, tenant, RecordType.SANDBOX, SANDBOX, config)
