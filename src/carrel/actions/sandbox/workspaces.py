"""Shared workspaces: files under their own id, attached to agents by config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import FileDrafts, commit_changes
from carrel.actions.retry import retry_on_conflict
from carrel.actions.sandbox import account_records, release
from carrel.actions.sandbox.account_records import AccountRecordType
from carrel.actions.sandbox.command_inputs import root_removal
from carrel.core.access import Actor
from carrel.core.field_validation import merge_patch
from carrel.core.identifiers import Scope, ScopeKind
from carrel.core.sandbox.workspace_config import parse_workspace_config
from carrel.core.store.commit import Write
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record, RecordType, deletion
from carrel.ports import Ports


async def get(ports: Ports, actor: Actor, id: str) -> Record:
    return await account_records.get(ports, actor, WORKSPACE_TYPE, id)


async def list_workspaces(ports: Ports, actor: Actor) -> list[Record]:
    return await account_records.list_records(ports, actor, WORKSPACE_TYPE)


async def create(
    ports: Ports,
    actor: Actor,
    fields: Mapping[str, Any],
    idempotency_key: IdempotencyKey | None = None,
) -> Record:
    """Create a workspace. Raises ValidationError."""
    return await account_records.create(ports, actor, WORKSPACE_TYPE, fields, idempotency_key)


async def patch(
    ports: Ports,
    actor: Actor,
    id: str,
    fields: Mapping[str, Any],
    idempotency_key: IdempotencyKey | None = None,
) -> Record:
    """Apply a merge patch. Raises NotFound and ValidationError."""
    return await account_records.patch(ports, actor, WORKSPACE_TYPE, id, fields, idempotency_key)


async def delete(
    ports: Ports, actor: Actor, id: str, idempotency_key: IdempotencyKey | None = None
) -> None:
    """Delete a workspace and all its files in one commit. Raises NotFound.

    Deletions are versions, so snapshots of runs stay intact. Agents that refer to the workspace get
    an error when they use it. Its sandbox instances are released.
    """

    rules = await load_rules(ports, actor.tenant)
    max_versions = rules.policy.shared_limits.max_versions
    scope = await _delete_with_files(ports, actor, id, max_versions, idempotency_key)
    await release.release_workspace_instances(ports, scope.tenant, scope.name)
    late_drafts = await _draft_removal(
        ports, scope
    )  # files written between the read and the commit
    if late_drafts.writes:
        reason = "delete a workspace: files written meanwhile"
        await commit_changes(
            ports, actor, reason, [], drafts=late_drafts, max_versions=max_versions
        )


@retry_on_conflict()
async def _delete_with_files(
    ports: Ports, actor: Actor, id: str, max_versions: int, idempotency_key: IdempotencyKey | None
) -> Scope:
    existing = await get(ports, actor, id)
    scope = Scope(existing.tenant, ScopeKind.WORKSPACE, existing.id)
    drafts = await _draft_removal(ports, scope)
    reason = "delete a workspace"
    await commit_changes(
        ports,
        actor,
        reason,
        [deletion(existing), root_removal(existing.id, existing.tenant)],
        idempotency_key=idempotency_key,
        drafts=drafts,
        max_versions=max_versions,
    )
    return scope


async def _draft_removal(ports: Ports, scope: Scope) -> FileDrafts:
    [tree] = await ports.trees.read([scope])
    return FileDrafts(tuple(Write(scope, path, None) for path in (*tree.heads, *tree.directories)))


async def _merge_config(
    ports: Ports,
    tenant: str,
    id: str,
    patch: Mapping[str, Any],
    stored: Mapping[str, Any],
) -> Mapping[str, Any]:
    rules = await load_rules(ports, tenant)
    return parse_workspace_config(rules.redact_fields(merge_patch(stored, patch)))


WORKSPACE_TYPE: Final = AccountRecordType(RecordType.WORKSPACE, "ws", _merge_config)
_ID_PREFIX: Final = f"{WORKSPACE_TYPE.prefix}_"
