"""Shared workspaces: files under an id of their own, which agents reach by their config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import FileDrafts, commit_changes, retry_while_busy
from carrel.actions.sandbox import account_records, release
from carrel.actions.sandbox.account_records import AccountRecordType
from carrel.core.access import Actor
from carrel.core.field_validation import merged
from carrel.core.identifiers import Scope, ScopeKind
from carrel.core.sandbox.workspace_config import checked
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.core.store.tree import IdempotencyKey, Write
from carrel.ports import Ports


async def get(ports: Ports, actor: Actor, id: str) -> Record:
    return await account_records.get(ports, actor, BOOK, id)


async def listing(ports: Ports, actor: Actor) -> list[Record]:
    return await account_records.listing(ports, actor, BOOK)


async def create(
    ports: Ports, actor: Actor, given: Mapping[str, Any], receipt: IdempotencyKey | None = None
) -> Record:
    """Raises Malformed."""
    return await account_records.create(ports, actor, BOOK, given, receipt)


async def patch(
    ports: Ports,
    actor: Actor,
    id: str,
    given: Mapping[str, Any],
    receipt: IdempotencyKey | None = None,
) -> Record:
    """Merge what is given into what is there. Raises Missing and Malformed."""
    return await account_records.patch(ports, actor, BOOK, id, given, receipt)


async def delete(
    ports: Ports, actor: Actor, id: str, receipt: IdempotencyKey | None = None
) -> None:
    """Remove a workspace and, in the same commit, every file in it. Raises Missing.

    A removal is a version like any other, so what runs have frozen of it stays as it was. Agents
    that refer to it fail when they use it, and say so. Instances that are kept for it are let go.
    """

    rules = await load_rules(ports, actor.tenant)
    keep = rules.policy.shared_limits.max_versions

    async def attempt() -> Scope:
        was = await get(ports, actor, id)
        scope = Scope(was.tenant, ScopeKind.WORKSPACE, was.id)
        gone = RecordChange(was.tenant, was.type, was.id, None, was.revision)
        drafts = await _removal(ports, scope)
        reason = "delete a workspace"
        await commit_changes(
            ports, actor.name, reason, [gone], receipt=receipt, drafts=drafts, keep=keep
        )
        return scope

    scope = await retry_while_busy(attempt)
    await release.release_workspace_instances(ports, scope.tenant, scope.name)
    late = await _removal(ports, scope)  # written between the look and the commit: the last ones
    if late.writes:
        reason = "delete a workspace: what was written meanwhile"
        await commit_changes(ports, actor.name, reason, [], drafts=late, keep=keep)


async def _removal(ports: Ports, scope: Scope) -> FileDrafts:
    [tree] = await ports.trees.read([scope])
    return FileDrafts(tuple(Write(scope, path, None) for path in tree.heads))


async def _settle(
    ports: Ports,
    tenant: str,
    id: str,
    patch: Mapping[str, Any],
    stored: Mapping[str, Any],
) -> Mapping[str, Any]:
    return checked(merged(stored, patch))


BOOK: Final = AccountRecordType(RecordType.WORKSPACE, "ws", _settle)
_PREFIX: Final = f"{BOOK.prefix}_"
