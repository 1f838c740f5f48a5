"""Which scopes lie over one another for whom."""

from __future__ import annotations

from typing import Final

from carrel.actions.records import collection_revision, find_by_id_or_slug
from carrel.core.access import Actor
from carrel.core.errors import NotFound
from carrel.core.identifiers import Scope, ScopeKind, Stack, identifier
from carrel.core.overlay.layers import stack_of
from carrel.core.store.record import CollectionRevision, Record, RecordType
from carrel.ports import Ports

_DESCRIBED: Final = "ws_"


async def default_stack(ports: Ports, actor: Actor) -> Stack:
    """The workspace that a credential stands for when it names none."""
    if actor.agent is not None:
        return await agent_stack(ports, actor, actor.agent)
    if actor.workspace is not None:
        return await workspace_stack(ports, actor, actor.workspace)
    return (actor.scope,)


async def workspace_stack(ports: Ports, actor: Actor, name: str) -> Stack:
    """A workspace of its own. One that an account describes is there as long as its record is."""
    scope = Scope(actor.tenant, ScopeKind.WORKSPACE, identifier(name))
    if actor.is_confined and actor.scope != scope:
        raise NotFound(f"there is no workspace {name}")
    if name.startswith(_DESCRIBED):
        await _named(ports, actor.tenant, RecordType.WORKSPACE, name)
    return (scope,)


async def agent_stack(ports: Ports, actor: Actor, name: str) -> Stack:
    """An agent's own files over its template's over the defaults, by id or slug."""
    revision = await ports.records.revision()
    found: Stack | None = ports.record_cache.get(revision, ("stack", actor.tenant, name))
    if found is None:
        found = stack_of(await _named(ports, actor.tenant, RecordType.AGENT, name))
        ports.record_cache.put(revision, ("stack", actor.tenant, name), found)
    if actor.is_confined and actor.agent != found[0].name:
        raise NotFound(f"there is no agent {name}")
    return found


async def template_stack(ports: Ports, actor: Actor, name: str) -> Stack:
    """A template's own files: what it says, not what it inherits."""
    if actor.is_confined:
        raise NotFound(f"there is no template {name}")
    record = await _named(ports, actor.tenant, RecordType.TEMPLATE, name)
    return (Scope(actor.tenant, ScopeKind.TEMPLATE, record.id),)


async def defaults_stack(ports: Ports, actor: Actor) -> Stack:
    if actor.is_confined:
        raise NotFound("this credential is confined to one workspace")
    return (Scope(actor.tenant, ScopeKind.DEFAULTS, ""),)


async def _named(ports: Ports, tenant: str, record_type: RecordType, name: str) -> Record:
    """A record by its id, else by its slug; asked once for as long as no record changes."""
    revision = await ports.records.revision()
    found: Record | None = ports.record_cache.get(revision, (tenant, record_type, name))
    if found is None:
        found = await find_by_id_or_slug(ports, tenant, record_type, name)
        ports.record_cache.put(revision, (tenant, record_type, name), found)
        ports.record_cache.put(revision, (tenant, record_type, found.id), found)
    return found


def is_described(scope: Scope) -> bool:
    """Whether an account has a record of it, without which it is not there."""
    return scope.kind is ScopeKind.WORKSPACE and scope.name.startswith(_DESCRIBED)


async def standing(ports: Ports, scope: Scope) -> tuple[CollectionRevision, ...]:
    """What a commit to the files of a workspace has to expect, so that none outlive its record.

    Raises Missing where it is gone. Nothing is expected of a workspace that no account describes.
    """
    if not is_described(scope):
        return ()
    seen = await collection_revision(ports, scope.tenant, RecordType.WORKSPACE)
    [found] = await ports.records.get(scope.tenant, RecordType.WORKSPACE, [scope.name])
    if found is None:
        raise NotFound(f"there is no {RecordType.WORKSPACE} {scope.name}")
    return (seen,)
