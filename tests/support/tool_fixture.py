"""A tenant whose agent has hands: workspaces that it shares, and sandboxes for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.support.tenants import founded
from tests.support.unsandboxed_provider import PlainRunner

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
from carrel.tools import ALL
from carrel.tools.tool import ApprovalCheck, ToolContext

TOOLS = {tool.name: tool for tool in ALL}
NOTES, DOCS = f"ws_{1:024x}", f"ws_{2:024x}"
BOX, EASY = f"sb_{1:024x}", f"sb_{2:024x}"


@dataclass
class Workshop:
    ports: Ports
    owner: Actor
    agent: Record
    sitting: ToolContext
    runner: PlainRunner

    async def call(self, tool: str, /, **given: Any) -> str:
        """What a tool says; its gate is passed first, as it always is."""
        await self.gate(tool, **given)
        meant = TOOLS[tool]
        said = await meant.run(self.sitting, meant.parse_arguments(given))
        assert isinstance(said, str)
        return said

    async def gate(self, tool: str, /, **given: Any) -> ApprovalCheck:
        meant = TOOLS[tool]
        assert meant.approval_check
        return await meant.approval_check(self.sitting, meant.parse_arguments(given))

    def bench(self, workspace: str = NOTES, **more: Any) -> WorkspaceFiles:
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

    async def said_before(self, path: str) -> list[bytes | None]:
        """All that a path ever held, newest first."""
        told: list[bytes | None] = []
        for version in await self.history(path):
            entry = version.head.entry
            found = await self.ports.blobs.get([entry.blob]) if entry else {}
            told.append(found[entry.blob.digest] if entry else None)
        return told


def sandbox(tenant: str, id: str, mode: str = "bypass", **config: Any) -> RecordChange:
    body = {"name": id, "config": {"provider": "local", "permissionMode": mode, **config}}
    return RecordChange(tenant, RecordType.SANDBOX, id, body, 0)


async def adorned(ports: Ports, owner: Actor, id: str, variables: Mapping[str, str]) -> None:
    """Variables are sealed, which only an action does."""
    await sandboxes.patch(ports, owner, id, {"config": {"envVars": variables}})


def workspace(tenant: str, id: str) -> RecordChange:
    return RecordChange(tenant, RecordType.WORKSPACE, id, {"name": id, "config": {}}, 0)


async def workshop(ports: Ports, config: Any = None, **box: Any) -> Workshop:
    """By default: `notes` through a sandbox that asks nobody, and `docs`, which is read-only."""
    runner = box.pop("runner", None) or PlainRunner()
    ports = replace(ports, sandboxes={"local": runner})
    _, owner = await founded(ports)
    variables = box.pop("envVars", None)
    records = (
        sandbox(owner.tenant, BOX, **box),
        sandbox(owner.tenant, EASY, "edit"),
        workspace(owner.tenant, NOTES),
        workspace(owner.tenant, DOCS),
    )
    [done] = await ports.trees.commit(
        [Commit((), "ada", "to begin", ports.clock.now(), changes=records)]
    )
    assert isinstance(done, Applied)
    if variables:
        await adorned(ports, owner, BOX, variables)
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
    return Workshop(ports, owner, agent, context, runner)
