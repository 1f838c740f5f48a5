"""Which version of a pinned file the agents over a layer have, groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.overlay.followers import iter_followers
from carrel.actions.overlay.pin_review_session import inherits_from
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import get_by_id_or_slug
from carrel.core.access import Actor
from carrel.core.agents.layers import build_stack
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.pins import PinStatus, pin_status
from carrel.core.store.entry import Version
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import Tree
from carrel.ports import Ports

_BATCH_SIZE: Final = 500
"""Agents with own files that are read together."""


class PinnedVersion(Struct, frozen=True):
    """Agents that have the same pinned content."""

    sha256: Digest | None
    """Digest as `sha256:…`; None for agents that never had the file."""
    agents: int
    overridden: int
    """Those among them that are served an override."""
    version: Version | None
    """Version of the layer with this content; None if it is older than the history, or not its."""


class PinnedVersions(Struct, frozen=True):
    total: int
    offered: Digest | None
    """Digest that the layer offers; None if it has no such file."""
    declined: int
    """Agents for which the offered content was declined."""
    versions: tuple[PinnedVersion, ...]
    """The offered one first, then by number of agents."""


async def count_pinned_versions(
    ports: Ports, actor: Actor, template: str | None, path: Path
) -> PinnedVersions:
    """Count the versions that the agents of a template have; None stands for the defaults.

    Raises NotFound for the template, ValidationError if the path is not pinned.
    """
    rules = await load_rules(ports, actor.tenant)
    if rules.policy.classes.class_of(path) is not FileClass.PINNED:
        raise ValidationError(f"{path} is not pinned")
    layer = Scope(actor.tenant, ScopeKind.DEFAULTS, "")
    if template is not None:
        record = await get_by_id_or_slug(ports, actor.tenant, RecordType.TEMPLATE, template)
        layer = Scope(actor.tenant, ScopeKind.TEMPLATE, record.id)
    agents: Counter[Digest | None] = Counter()
    overridden: Counter[Digest | None] = Counter()
    declined, offered = 0, await _load_offered(ports, layer, path)
    async for pin in _iter_pins(ports, layer, path):
        digest = pin.pinned.digest if pin.pinned else None
        agents[digest] += 1
        overridden[digest] += pin.overridden
        declined += pin.is_declined
    history = await ports.trees.history(layer, path)
    versions = {v.head.entry.blob.digest: v for v in reversed(history) if v.head.entry}
    groups = [
        PinnedVersion(digest, count, overridden[digest], versions.get(digest) if digest else None)
        for digest, count in agents.items()
    ]
    groups.sort(key=lambda item: (item.sha256 != offered, -item.agents, item.sha256 or ""))
    return PinnedVersions(agents.total(), offered, declined, tuple(groups))


async def _load_offered(ports: Ports, layer: Scope, path: Path) -> Digest | None:
    defaults = Scope(layer.tenant, ScopeKind.DEFAULTS, "")
    trees = await ports.trees.read(tuple(dict.fromkeys((layer, defaults))), (path,))
    entries = [entry for tree in trees if (entry := tree.entry(path))]
    return entries[0].blob.digest if entries else None


async def _iter_pins(ports: Ports, layer: Scope, path: Path) -> AsyncIterator[PinStatus]:
    """Iterate over the pins of the agents that inherit the file from a layer."""
    async for agents in iter_followers(ports, layer):
        for layers in await _load_layers(ports, agents, path):
            if inherits_from(layer.kind, layers, path, is_removal=False):
                yield pin_status(path, layers)


async def _load_layers(ports: Ports, agents: Sequence[Record], path: Path) -> Sequence[Layers]:
    """Layers of each agent at a path; own trees are read only where there is one."""
    stacks = [build_stack(agent) for agent in agents]
    shared = tuple(dict.fromkeys(scope for stack in stacks for scope in stack[1:]))
    trees = dict(zip(shared, await ports.trees.read(shared, (path,)), strict=True))
    own = [stack[0] for stack in stacks]
    revisions = await ports.trees.revisions(own)
    own_scopes = [scope for scope, revision in zip(own, revisions, strict=True) if revision]
    for start in range(0, len(own_scopes), _BATCH_SIZE):
        batch = own_scopes[start : start + _BATCH_SIZE]
        trees |= zip(batch, await ports.trees.read(batch, (path,)), strict=True)
    return [
        [trees.get(stack[0]) or Tree(stack[0], 0, {}), *(trees[scope] for scope in stack[1:])]
        for stack in stacks
    ]
