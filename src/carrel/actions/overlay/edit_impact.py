"""What an edit of a shared file would do, counted before anybody makes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import iter_records
from carrel.core.agents.agent import by_template_index
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay.agent_files import own_entry
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.layers import stack_of
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

_A_PAGE: Final = 5_000
"""Agents that are read at once."""


class Impact(Struct, frozen=True):
    """How many agents an edit would reach. Every follower is one of the last three."""

    path: Path
    file_class: FileClass
    followers: int
    """Agents that have this layer beneath them."""
    changes: int
    """Those who would be served another text at once."""
    asked: int
    """Those for whom it would wait for a review."""
    shadowed: int
    """Those for whom a nearer layer decides, so that nothing would change."""


async def impact(ports: Ports, stack: Stack, path: Path) -> Impact:
    """Of an edit of a template's file, or of one of the defaults, which need not be there yet."""
    layer = stack[0]
    file_class = (await load_rules(ports, layer.tenant)).policy.classes.class_of(path)
    hiding = await _hiding(ports, layer, path)
    followers = changes = asked = 0
    async for agents in _followers(ports, layer):
        followers += len(agents)
        reached = [agent for agent in agents if agent.body.get("templateId") not in hiding]
        match file_class:
            case FileClass.PINNED:
                asked += len(reached)
            case FileClass.MANAGED:
                changes += len(reached)
            case FileClass.LIVE:
                changes += len(reached) - await _overriding(ports, reached, path)
    return Impact(path, file_class, followers, changes, asked, followers - changes - asked)


async def _followers(ports: Ports, layer: Scope) -> AsyncIterator[Sequence[Record]]:
    """Those who have a layer beneath them, some thousands at once."""
    link, after = by_template_index(layer.name) if layer.kind is ScopeKind.TEMPLATE else "", ""
    while found := await ports.records.list(
        layer.tenant, RecordType.AGENT, link=link, after=after, limit=_A_PAGE
    ):
        yield found
        after = found[-1].id


async def _hiding(ports: Ports, layer: Scope, path: Path) -> Collection[str]:
    """The templates over this layer that have a file there themselves."""
    if layer.kind is ScopeKind.TEMPLATE:
        return ()
    ids = [one.id async for one in iter_records(ports, layer.tenant, RecordType.TEMPLATE)]
    scopes = [Scope(layer.tenant, ScopeKind.TEMPLATE, id) for id in ids]
    trees = await ports.trees.read(scopes, (path,)) if scopes else ()
    return {tree.scope.name for tree in trees if tree.entry(path)}


async def _overriding(ports: Ports, agents: Sequence[Record], path: Path) -> int:
    """How many of them have a text of their own instead of a live file."""
    if not agents:
        return 0
    trees = await ports.trees.read([stack_of(agent)[0] for agent in agents], (path,))
    return sum(own_entry(path, (tree,)) is not None for tree in trees)
