"""A tenant whose agent has shared workspaces and sandboxes for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jsonschema
from tests.support.tenants import create_tenant
from tests.support.unsandboxed_provider import UnsandboxedProvider

from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.overlay import stacks
from carrel.actions.sandbox import sandboxes
from carrel.actions.sandbox.workspace_files import WorkspaceFiles
from carrel.core.access import Actor
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.runs import Audience
from carrel.core.store.commit import Applied, Commit
from carrel.core.store.entry import Version
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.ports import Ports
from carrel.tools.registry import ALL_TOOLS
from carrel.tools.tool import ApprovalCheck, ToolContext, ToolReply

TOOLS = {tool.name: tool for tool in ALL_TOOLS}
NOTES, DOCS = f"ws_{1:024x}", f"ws_{2:024x}"
BOX, EDIT_BOX = f"sb_{1:024x}", f"sb_{2:024x}"


@dataclass
class ToolTenant:
    ports: Ports
    owner: Actor
    agent: Record
    context: ToolContext
    runner: UnsandboxedProvider

    async def call(self, tool: str, /, **arguments: Any) -> str:
        """The text of a tool, after its approval check."""
        return (await self.reply(tool, **arguments)).content

    async def reply(self, tool: str, /, **arguments: Any) -> ToolReply:
        """The reply of a tool, after its approval check."""
        await self.gate(tool, **arguments)
        return await self.reply_without_check(tool, **arguments)

    async def reply_without_check(self, tool: str, /, **arguments: Any) -> ToolReply:
        """The reply of a tool, whose result fits its output schema."""
        definition = TOOLS[tool]
        output = await definition.run(self.context, definition.parse_arguments(arguments))
        assert isinstance(output, ToolReply)
        if not output.is_error:
            jsonschema.validate(output.structured, definition.output_schema)
        return output

    async def gate(self, tool: str, /, **arguments: Any) -> ApprovalCheck:
        definition = TOOLS[tool]
        assert definition.approval_check
        return await definition.approval_check(self.context, definition.parse_arguments(arguments))

    def workspace_files(self, workspace: str = NOTES, **more: Any) -> WorkspaceFiles:
        return WorkspaceFiles(self.ports, self.owner, workspace, **more)

    def scope(self, workspace: str = NOTES) -> Scope:
        return Scope(self.owner.tenant, ScopeKind.WORKSPACE, workspace)

    async def files(self, workspace: str = NOTES) -> dict[str, bytes]:
        [tree] = await self.ports.trees.read([self.scope(workspace)])
        blobs = {path.text: head.entry.blob for path, head in tree.heads.items() if head.entry}
        contents = await self.ports.blobs.get(list(blobs.values()))
        return {path: contents[blob.digest] for path, blob in blobs.items()}

    async def type_of(self, path: str) -> str:
        [tree] = await self.ports.trees.read([self.scope()], [Path(path)])
        entry = tree.entry(Path(path))
        assert entry
        return entry.type

    async def history(self, path: str) -> tuple[Version, ...]:
        return await self.ports.trees.history(self.scope(), Path(path))

    async def past_contents(self, path: str) -> list[bytes | None]:
        """All contents of a path, newest first."""
        contents: list[bytes | None] = []
        for version in await self.history(path):
            entry = version.head.entry
            stored = await self.ports.blobs.get([entry.blob]) if entry else {}
            contents.append(stored[entry.blob.digest] if entry else None)
        return contents


def sandbox(tenant: str, id: str, mode: str = "bypass", **config: Any) -> RecordChange:
    body = {"name": id, "config": {"provider": "local", "permissionMode": mode, **config}}
    return RecordChange(tenant, RecordType.SANDBOX, id, body, 0)


async def set_variables(ports: Ports, owner: Actor, id: str, variables: Mapping[str, str]) -> None:
    """Set variables by an action, which seals them."""
    await sandboxes.patch(ports, owner, id, {"config": {"envVars": variables}})


def workspace(tenant: str, id: str) -> RecordChange:
    return RecordChange(tenant, RecordType.WORKSPACE, id, {"name": id, "config": {}}, 0)


async def create_tool_tenant(ports: Ports, config: Any = None, **box: Any) -> ToolTenant:
    """By default: `notes` with a sandbox without approvals, and `docs`, which is read-only."""
    runner = box.pop("runner", None) or UnsandboxedProvider()
    ports = replace(ports, sandboxes={"local": runner})
    _, owner = await create_tenant(ports)
    variables = box.pop("envVars", None)
    records = (
        sandbox(owner.tenant, BOX, **box),
        sandbox(owner.tenant, EDIT_BOX, "edit"),
        workspace(owner.tenant, NOTES),
        workspace(owner.tenant, DOCS),
    )
    [done] = await ports.trees.commit(
        [Commit((), "ada", "to begin", ports.clock.now(), changes=records)]
    )
    assert isinstance(done, Applied)
    if variables:
        await set_variables(ports, owner, BOX, variables)
    usual = {
        "sandbox": BOX,
        "workspaces": [
            {"name": "notes", "workspaceId": NOTES},
            {"name": "docs", "workspaceId": DOCS, "sandbox": None},
        ],
    }
    new = NewAgent("kate", "Kate", config=usual if config is None else config)
    agent = await agents.create(ports, owner, new)
    stack = await stacks.agent_stack(ports, owner, "kate")
    context = ToolContext(ports, owner, agent, stack, Audience.MAIN)
    return ToolTenant(ports, owner, agent, context, runner)
