"""Listings over many agents or templates, in a bounded number of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from carrel.actions.overlay.agent_layers import load_classes, load_many_agent_layers
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import (
    ID_PREFIXES,
    Page,
    get_by_id_or_slug,
    list_page,
    validate_cursor,
)
from carrel.core.access import Actor
from carrel.core.agents.agent import (
    WITHOUT_TEMPLATE_INDEX,
    agent_from_record,
    by_human_index,
    by_owner_index,
    by_template_index,
)
from carrel.core.agents.layers import build_stack
from carrel.core.agents.private_access import require_full_access
from carrel.core.agents.tags import TAG_INDEX_PREFIX, by_tag_index
from carrel.core.errors import NotFound, ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay.agent_resolution import AgentFileResolver, overridden_paths
from carrel.core.overlay.compose import Workspace, compose, resolve
from carrel.core.overlay.file_classes import FileClass
from carrel.core.runs import Run
from carrel.core.search.name_words import filter_by_name
from carrel.core.store.blob import Blob
from carrel.core.store.record import Record, RecordFilter, RecordType
from carrel.ports import Ports

_BATCH_SIZE: Final = 500
NO_TEMPLATE: Final = "none"
"""Stands for agents without a template; a slug cannot be this word."""


class PinOffer(Struct, frozen=True):
    """Pinned file that a template offers to its agents."""

    path: Path
    blob: Blob
    source: ScopeKind


class AgentFilter(Struct, frozen=True, forbid_unknown_fields=True):
    """Conditions that all agents of a listing meet."""

    q: str = ""
    """Words of name and slug, each by its beginning."""
    name_prefix: str = ""
    """Beginning of the whole name or slug, ignoring case."""
    template: str | None = None
    """Id or slug, or NO_TEMPLATE."""
    tag: str | None = None
    human: str | None = None
    """Id of the person that the agents work for."""
    owner: str | None = None
    """Id of the person who owns the agents."""


async def list_agents(
    ports: Ports, actor: Actor, *, cursor: str = "", limit: int = 100, **conditions: Any
) -> Page[Record]:
    """List agents by id that meet the conditions, which are fields of AgentFilter.

    Raises NotFound for an unknown template.
    """
    filter = AgentFilter(**conditions)
    matching = await _record_filter(ports, actor, filter)
    if filter.name_prefix:
        validate_cursor(cursor, ID_PREFIXES[RecordType.AGENT])
        return await _list_by_prefix(ports, actor, matching, filter.name_prefix, cursor, limit)
    return await list_page(
        ports, actor.tenant, RecordType.AGENT, matching=matching, cursor=cursor, limit=limit
    )


async def find_agents(
    ports: Ports, actor: Actor, filter: AgentFilter, max_agents: int
) -> tuple[Record, ...]:
    """Find every agent that meets the conditions.

    Raises NotFound for an unknown template, ValidationError if there are more than `max_agents`.
    """
    matching = await _record_filter(ports, actor, filter)
    count = await ports.records.count_matching(actor.tenant, RecordType.AGENT, matching)
    if count > max_agents:
        raise ValidationError(f"{count} agents are selected: at most {max_agents} at once")
    return await ports.records.list_matching(
        actor.tenant, RecordType.AGENT, matching, limit=max_agents
    )


async def _record_filter(ports: Ports, actor: Actor, filter: AgentFilter) -> RecordFilter:
    index_keys = [by_tag_index(filter.tag)] if filter.tag is not None else []
    index_keys += [by_human_index(filter.human)] if filter.human is not None else []
    index_keys += [by_owner_index(filter.owner)] if filter.owner is not None else []
    if filter.template == NO_TEMPLATE:
        index_keys.append(WITHOUT_TEMPLATE_INDEX)
    elif filter.template is not None:
        tenant = actor.tenant
        template = await get_by_id_or_slug(ports, tenant, RecordType.TEMPLATE, filter.template)
        index_keys.append(by_template_index(template.id))
    return filter_by_name(filter.q, *index_keys)


async def _list_by_prefix(
    ports: Ports, actor: Actor, matching: RecordFilter, prefix: str, cursor: str, limit: int
) -> Page[Record]:
    words = filter_by_name(prefix).key_prefixes if any(map(str.isalnum, prefix)) else ()
    matching = RecordFilter(matching.index_keys, (*matching.key_prefixes, *words))
    matches = list[Record]()
    while batch := await ports.records.list_matching(
        actor.tenant, RecordType.AGENT, matching, after=cursor, limit=_BATCH_SIZE
    ):
        matches += [agent for agent in batch if _has_prefix(agent, prefix.casefold())]
        cursor = batch[-1].id
        if len(matches) > limit or len(batch) < _BATCH_SIZE:
            break
    return Page(tuple(matches[:limit]), matches[limit - 1].id if len(matches) > limit else None)


async def count_tags(ports: Ports, actor: Actor) -> Mapping[str, int]:
    """Count the agents of each tag, in alphabetical order."""
    counts = await ports.records.count_by_key(actor.tenant, RecordType.AGENT, TAG_INDEX_PREFIX)
    return {key.removeprefix(TAG_INDEX_PREFIX): count for key, count in counts.items()}


def _has_prefix(agent: Record, folded_prefix: str) -> bool:
    fields = agent_from_record(agent)
    return fields.slug.startswith(folded_prefix) or fields.name.casefold().startswith(folded_prefix)


async def count_followers(ports: Ports, tenant: str, templates: Sequence[str]) -> tuple[int, ...]:
    """Count the agents of each template id."""
    index_keys = [by_template_index(id) for id in templates]
    return await ports.records.count(tenant, RecordType.AGENT, index_keys)


async def load_workspaces(
    ports: Ports, stacks: Sequence[Stack], prefix: str = ""
) -> tuple[Workspace | None, ...]:
    """Compose every stack from one read of the trees; None for a deleted agent."""
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    agents = [scope for scope in scopes if scope.kind is ScopeKind.AGENT]
    resolvers: dict[Scope, AgentFileResolver] = {}
    for tenant in {scope.tenant for scope in agents}:
        ids = [scope.name for scope in agents if scope.tenant == tenant]
        agent_layers = await load_many_agent_layers(ports, tenant, ids)
        resolvers |= {
            Scope(tenant, ScopeKind.AGENT, id): agent_layers[id].resolver for id in agent_layers
        }
    trees = dict(zip(scopes, await ports.trees.read(scopes, prefix=prefix), strict=True))
    composed: list[Workspace | None] = []
    for stack in stacks:
        layers = [trees[scope] for scope in stack]
        if stack[0].kind is ScopeKind.AGENT:
            resolver = resolvers.get(stack[0])
            composed.append(resolver.compose(layers) if resolver else None)
        else:
            composed.append(compose(layers, await load_classes(ports, stack)))
    return tuple(composed)


async def count_overrides(ports: Ports, actor: Actor, agents: Sequence[Record]) -> tuple[int, ...]:
    """Count the inherited files that each agent overrides.

    Raises NotFound or Forbidden if the caller may not open one of the agents.
    """
    for agent in agents:
        require_full_access(actor, agent)
    classes = (await load_rules(ports, actor.tenant)).policy.classes
    stacks = [build_stack(agent) for agent in agents]
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True))
    layers = ([trees[scope] for scope in stack] for stack in stacks)
    return tuple([len(overridden_paths(classes, stack_layers)) for stack_layers in layers])


async def find_newest_runs(
    ports: Ports, actor: Actor, agents: Sequence[Record]
) -> tuple[Run | None, ...]:
    """Find the most recently started run of each agent.

    Raises NotFound or Forbidden if the caller may not open one of the agents.
    """
    for agent in agents:
        require_full_access(actor, agent)
    scopes = [Scope(actor.tenant, ScopeKind.AGENT, agent.id) for agent in agents]
    return await ports.runs.newest_by_scope(actor.tenant, scopes)


async def list_pin_offers(
    ports: Ports, actor: Actor, templates: Sequence[str]
) -> tuple[tuple[PinOffer, ...], ...]:
    """List the pinned files that each template id, or the defaults below it, offers."""
    if actor.is_confined:
        raise NotFound("this credential is confined to one workspace")
    classes = (await load_rules(ports, actor.tenant)).policy.classes
    scopes = [Scope(actor.tenant, ScopeKind.TEMPLATE, id) for id in templates]
    *template_trees, defaults = await ports.trees.read(
        (*scopes, Scope(actor.tenant, ScopeKind.DEFAULTS, ""))
    )
    offers_by_template = []
    for tree in template_trees:
        paths = sorted({*tree.heads, *defaults.heads})
        pinned = [path for path in paths if classes.class_of(path) is FileClass.PINNED]
        files = [file for path in pinned if (file := resolve(path, (tree, defaults)))]
        offers_by_template.append(
            tuple(PinOffer(file.path, file.blob, file.source.kind) for file in files)
        )
    return tuple(offers_by_template)
