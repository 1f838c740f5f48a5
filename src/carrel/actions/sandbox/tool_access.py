"""Loads the sandboxes and shared workspaces of an agent's config."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET

from carrel.core.agents.config import AgentConfig
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import parse_identifier
from carrel.core.sandbox.account_record import account_from_record
from carrel.core.sandbox.tool_access import (
    NO_ACCESS,
    AttachedWorkspace,
    PermissionMode,
    SandboxSpec,
    ToolAccess,
    derive_namespace,
)
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports


async def load_tool_access(ports: Ports, tenant: str, config: AgentConfig) -> ToolAccess:
    """Load the agent's tool access with at most two queries.

    Cached until a record changes. Raises NotFound naming the deleted sandbox or workspace.
    """
    if config.sandbox is None and not config.workspaces:
        return NO_ACCESS
    key = ("tool_access", tenant, config.sandbox, config.workspaces)
    revision = await ports.records.revision()
    cached: ToolAccess | None = ports.record_cache.get(revision, key)
    if cached is None:
        cached = await _load_uncached(ports, tenant, config)
        ports.record_cache.put(revision, key, cached)
    return cached


async def _load_uncached(ports: Ports, tenant: str, config: AgentConfig) -> ToolAccess:
    sandbox_refs = [config.sandbox, *(attachment.sandbox for attachment in config.workspaces)]
    sandbox_ids = [id for id in sandbox_refs if isinstance(id, str)]
    sandboxes = await _load_records(ports, tenant, RecordType.SANDBOX, sandbox_ids)
    ids = [attachment.workspace_id for attachment in config.workspaces]
    workspaces = await _load_records(ports, tenant, RecordType.WORKSPACE, ids)

    def get_sandbox(id: str | None) -> SandboxSpec | None:
        if id is None:
            return None
        if id not in sandboxes:
            raise NotFound(f"Referenced sandbox not found: {id}")
        return sandbox_from_record(sandboxes[id])

    agent_sandbox = get_sandbox(config.sandbox)
    attached = []
    for attachment in config.workspaces:
        if attachment.workspace_id not in workspaces:
            raise NotFound(
                f"Referenced workspace not found: {attachment.workspace_id}"
                f' (as "{attachment.name}")'
            )
        workspace_sandbox = (
            agent_sandbox if attachment.sandbox is UNSET else get_sandbox(attachment.sandbox)
        )
        attached.append(
            _attached_workspace(
                attachment.name, workspaces[attachment.workspace_id], workspace_sandbox
            )
        )
    return ToolAccess(agent_sandbox, tuple(attached))


async def _load_records(
    ports: Ports, tenant: str, record_type: RecordType, ids: Sequence[str]
) -> Mapping[str, Record]:
    valid_ids = sorted({id for id in ids if _is_valid_id(id)})
    records = await ports.records.get(tenant, record_type, valid_ids) if valid_ids else ()
    return {record.id: record for record in records if record is not None}


def _is_valid_id(id: str) -> bool:
    try:
        parse_identifier(id)
    except ValidationError:
        return False
    return True


def sandbox_from_record(record: Record) -> SandboxSpec:
    config = account_from_record(record).config
    mode = PermissionMode(config["permissionMode"])
    return SandboxSpec(record.id, mode, config, record.tenant)


def _attached_workspace(
    name: str, record: Record, sandbox: SandboxSpec | None
) -> AttachedWorkspace:
    workspace = account_from_record(record)
    notes = workspace.config.get("harness", {}).get("enabled") is not False
    return AttachedWorkspace(
        name,
        record.id,
        derive_namespace(record.tenant, record.id),
        sandbox,
        workspace.description or "",
        notes,
    )
