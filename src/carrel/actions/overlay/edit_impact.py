"""Impact of editing a shared file, counted before the edit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.agent_access import has_full_access
from carrel.actions.overlay.followers import iter_followers
from carrel.actions.overlay.path_clashes import LayerClash, iter_layer_clashes
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import iter_records
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_from_record
from carrel.core.agents.layers import build_stack
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay.agent_resolution import agent_entry
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

MAX_CLASHES: Final = 100
"""Listed clashes."""


class EditImpact(Struct, frozen=True):
    """Number of agents an edit affects; followers = changes + reviews + shadowed."""

    path: Path
    file_class: FileClass
    followers: int
    """Agents over this layer."""
    changes: int
    """Agents that would be served the new text immediately."""
    reviews: int
    """Agents for which the change would wait for a review."""
    shadowed: int
    """Agents for which a nearer layer wins, so nothing changes."""
    clashes: tuple[LayerClash, ...] = ()
    """Paths that do not allow this path to be a file, at most MAX_CLASHES.

    They make it a directory, or collide with it in letter case.
    """


async def load_impact(ports: Ports, actor: Actor, stack: Stack, path: Path) -> EditImpact:
    """Count the agents affected by editing a file of a template or the defaults.

    The file need not exist yet. Of agents that the caller may not open, overrides are not counted
    and clashes omitted: both tell which files they have.
    """
    layer = stack[0]
    classes = (await load_rules(ports, layer.tenant)).policy.classes
    file_class = classes.class_of(path)
    shadowing_templates = await _find_shadowing_templates(ports, layer, path)
    followers = changes = reviews = 0
    async for agents in iter_followers(ports, layer):
        followers += len(agents)
        affected = [
            agent
            for agent in agents
            if agent_from_record(agent).template_id not in shadowing_templates
        ]
        match file_class:
            case FileClass.PINNED:
                reviews += len(affected)
            case FileClass.MANAGED:
                changes += len(affected)
            case FileClass.LIVE:
                changes += len(affected) - await _count_overrides(ports, actor, affected, path)
    clashes = tuple(
        [clash async for clash in _iter_first_clashes(ports, actor, layer, path, classes)]
    )
    shadowed = followers - changes - reviews
    return EditImpact(path, file_class, followers, changes, reviews, shadowed, clashes)


async def _iter_first_clashes(
    ports: Ports, actor: Actor, layer: Scope, path: Path, classes: FileClassRules
) -> AsyncIterator[LayerClash]:
    count = 0
    async for clash in iter_layer_clashes(ports, layer, path, classes, actor):
        yield clash
        count += 1
        if count == MAX_CLASHES:
            return


async def _find_shadowing_templates(ports: Ports, layer: Scope, path: Path) -> Collection[str]:
    """Return the templates over the defaults that have this file themselves."""
    if layer.kind is ScopeKind.TEMPLATE:
        return ()
    ids = [template.id async for template in iter_records(ports, layer.tenant, RecordType.TEMPLATE)]
    scopes = [Scope(layer.tenant, ScopeKind.TEMPLATE, id) for id in ids]
    trees = await ports.trees.read(scopes, (path,)) if scopes else ()
    return {tree.scope.name for tree in trees if tree.entry(path)}


async def _count_overrides(ports: Ports, actor: Actor, agents: Sequence[Record], path: Path) -> int:
    """Count the agents that override a live file, of those that the caller may open."""
    scopes = [build_stack(agent)[0] for agent in agents if has_full_access(actor, agent)]
    if not scopes:
        return 0
    trees = await ports.trees.read(scopes, (path,))
    return sum(agent_entry(path, (tree,)) is not None for tree in trees)
