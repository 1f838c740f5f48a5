"""Stacks: the ordered scopes of a workspace, checked against the caller."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from carrel.actions.records import get_by_id_or_slug, iter_records, load_collection_revision
from carrel.core.access import Actor
from carrel.core.agents.layers import build_stack
from carrel.core.agents.private_access import AgentAccess, require_full_access, require_visible
from carrel.core.errors import Conflict, NotFound
from carrel.core.identifiers import Scope, ScopeKind, Stack, parse_identifier
from carrel.core.sandbox.account_record import account_from_record
from carrel.core.store.commit import Write
from carrel.core.store.record import CollectionRevision, Record, RecordType
from carrel.ports import Ports


class ReadableStack(Struct, frozen=True):
    """Stack whose files the caller may read."""

    stack: Stack
    inherited_only: bool = False
    """Whether only the inherited live files of a private agent are open to the caller."""


async def default_stack(ports: Ports, actor: Actor) -> Stack:
    """Return the stack of the credential's own workspace."""
    if actor.agent is not None:
        return await agent_stack(ports, actor, actor.agent)
    if actor.workspace is not None:
        return await workspace_stack(ports, actor, actor.workspace)
    return (actor.scope,)


async def workspace_stack(ports: Ports, actor: Actor, name: str) -> Stack:
    """Return the stack of a workspace; a shared one needs its record."""
    scope = Scope(actor.tenant, ScopeKind.WORKSPACE, parse_identifier(name))
    if actor.is_confined and actor.scope != scope:
        raise NotFound(f"no such workspace: {name}")
    if scope.is_shared_workspace:
        await _get_cached(ports, actor.tenant, RecordType.WORKSPACE, name)
    return (scope,)


async def agent_stack(ports: Ports, actor: Actor, name: str) -> Stack:
    """Return the stack of an agent, by id or slug: own files, pins, template, defaults.

    Raises NotFound, and Forbidden unless the caller may open what is private to the agent.
    """
    agent, stack = await _load_agent_stack(ports, actor, name)
    require_full_access(actor, agent, name)
    return stack


async def readable_agent_stack(ports: Ports, actor: Actor, name: str) -> ReadableStack:
    """Return the stack of an agent and which of its files the caller may read.

    Raises NotFound.
    """
    agent, stack = await _load_agent_stack(ports, actor, name)
    access = require_visible(actor, agent, name)
    return ReadableStack(stack, inherited_only=access is AgentAccess.INHERITED)


async def _load_agent_stack(ports: Ports, actor: Actor, name: str) -> tuple[Record, Stack]:
    revision = await ports.records.revision()
    key = ("stack", actor.tenant, name)
    loaded: tuple[Record, Stack] | None = ports.record_cache.get(revision, key)
    if loaded is None:
        agent = await _get_cached(ports, actor.tenant, RecordType.AGENT, name)
        loaded = (agent, build_stack(agent))
        ports.record_cache.put(revision, key, loaded)
    return loaded


async def template_stack(ports: Ports, actor: Actor, name: str) -> Stack:
    """Return the stack of a template: its own files, without inherited ones."""
    if actor.is_confined:
        raise NotFound(f"no such template: {name}")
    record = await _get_cached(ports, actor.tenant, RecordType.TEMPLATE, name)
    return (Scope(actor.tenant, ScopeKind.TEMPLATE, record.id),)


async def defaults_stack(ports: Ports, actor: Actor) -> Stack:
    if actor.is_confined:
        raise NotFound("this credential is confined to one workspace")
    return (Scope(actor.tenant, ScopeKind.DEFAULTS, ""),)


async def load_related_scopes(ports: Ports, stack: Stack) -> Stack:
    """Return a workspace's scopes and, for a shared layer, those that agents compose with it.

    A template is composed with the defaults, the defaults with every template.
    """
    scope = stack[0]
    defaults = Scope(scope.tenant, ScopeKind.DEFAULTS, "")
    match scope.kind:
        case ScopeKind.TEMPLATE:
            return (scope, defaults)
        case ScopeKind.DEFAULTS:
            templates = iter_records(ports, scope.tenant, RecordType.TEMPLATE)
            ids = [template.id async for template in templates]
            return (scope, *(Scope(scope.tenant, ScopeKind.TEMPLATE, id) for id in ids))
        case _:
            return stack


async def _get_cached(ports: Ports, tenant: str, record_type: RecordType, name: str) -> Record:
    """Get a record by id or slug, cached until a record changes."""
    revision = await ports.records.revision()
    record: Record | None = ports.record_cache.get(revision, (tenant, record_type, name))
    if record is None:
        record = await get_by_id_or_slug(ports, tenant, record_type, name)
        ports.record_cache.put(revision, (tenant, record_type, name), record)
        ports.record_cache.put(revision, (tenant, record_type, record.id), record)
    return record


async def load_workspace_revision(
    ports: Ports, scope: Scope, writes: Iterable[Write]
) -> tuple[CollectionRevision, ...]:
    """Return the revisions a commit expects, so that no file outlives its workspace.

    Raises NotFound if the workspace was deleted, Conflict if it is archived and the commit does
    not only delete; empty if it is not a shared workspace.
    """
    if not scope.is_shared_workspace:
        return ()
    revision = await load_collection_revision(ports, scope.tenant, RecordType.WORKSPACE)
    [workspace] = await ports.records.get(scope.tenant, RecordType.WORKSPACE, [scope.name])
    if workspace is None:
        raise NotFound(f"no such {RecordType.WORKSPACE}: {scope.name}")
    if account_from_record(workspace).archived_at and not all(w.is_deletion for w in writes):
        raise Conflict(f"{scope.name} is archived: its files can be read and deleted only")
    return (revision,)
