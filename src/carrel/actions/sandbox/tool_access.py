"""Finding what an agent's config refers to: its sandboxes and its shared workspaces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET

from carrel.core.agents.config import AgentConfig
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import identifier
from carrel.core.sandbox.tool_access import (
    EMPTY,
    AttachedWorkspace,
    PermissionMode,
    SandboxSpec,
    ToolAccess,
    namespace,
)
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports


async def load_tool_access(ports: Ports, tenant: str, config: AgentConfig) -> ToolAccess:
    """What it can reach now, in two questions at most. Raises Missing, which names what is gone.

    Asked once for as long as no record changes.
    """
    if config.sandbox is None and not config.workspaces:
        return EMPTY
    key = ("hands", tenant, config.sandbox, config.workspaces)
    revision = await ports.records.revision()
    found: ToolAccess | None = ports.record_cache.get(revision, key)
    if found is None:
        found = await _found(ports, tenant, config)
        ports.record_cache.put(revision, key, found)
    return found


async def _found(ports: Ports, tenant: str, config: AgentConfig) -> ToolAccess:
    named = [config.sandbox, *(one.sandbox for one in config.workspaces)]
    wanted = [id for id in named if isinstance(id, str)]
    sandboxes = await _records(ports, tenant, RecordType.SANDBOX, wanted)
    ids = [one.workspace_id for one in config.workspaces]
    workspaces = await _records(ports, tenant, RecordType.WORKSPACE, ids)

    def sandbox(id: str | None) -> SandboxSpec | None:
        if id is None:
            return None
        if id not in sandboxes:
            raise NotFound(f"Referenced sandbox not found: {id}")
        return sandbox_of(sandboxes[id])

    own = sandbox(config.sandbox)
    reaches = []
    for one in config.workspaces:
        if one.workspace_id not in workspaces:
            raise NotFound(f'Referenced workspace not found: {one.workspace_id} (as "{one.name}")')
        through = own if one.sandbox is UNSET else sandbox(one.sandbox)
        reaches.append(_reach(one.name, workspaces[one.workspace_id], through))
    return ToolAccess(own, tuple(reaches))


async def _records(
    ports: Ports, tenant: str, record_type: RecordType, ids: Sequence[str]
) -> Mapping[str, Record]:
    asked = sorted({id for id in ids if _possible(id)})
    records = await ports.records.get(tenant, record_type, asked) if asked else ()
    return {record.id: record for record in records if record is not None}


def _possible(id: str) -> bool:
    try:
        identifier(id)
    except ValidationError:
        return False
    return True


def sandbox_of(record: Record) -> SandboxSpec:
    config = record.body["config"]
    mode = PermissionMode(config["permissionMode"])
    return SandboxSpec(record.id, record.revision, mode, config, record.tenant)


def _reach(name: str, record: Record, sandbox: SandboxSpec | None) -> AttachedWorkspace:
    notes = record.body["config"].get("harness", {}).get("enabled") is not False
    return AttachedWorkspace(
        name,
        record.id,
        namespace(record.tenant, record.id),
        sandbox,
        record.body.get("description") or "",
        notes,
    )
