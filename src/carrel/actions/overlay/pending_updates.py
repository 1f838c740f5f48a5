"""Pinned updates pending for many agents, most of which have no own files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from carrel.actions.policy.tenant_rules import load_rules
from carrel.core.agents.layers import build_stack
from carrel.core.identifiers import Path, Scope, Stack
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.overlay.pins import PinStatus, pin_status
from carrel.core.store.record import Record
from carrel.core.store.tree import Tree
from carrel.ports import Ports

PendingPin: TypeAlias = PinStatus
"""Pin with an available update."""
_BATCH_SIZE: Final = 500
"""Agents with own files that are read together."""


async def list_pending_pins(
    ports: Ports, tenant: str, agents: Sequence[Record]
) -> tuple[tuple[PendingPin, ...], ...]:
    """List each agent's pins with an available update, by path.

    Agents without own files over the same layers share one computation.
    """
    stacks = [build_stack(agent) for agent in agents]
    classes = (await load_rules(ports, tenant)).policy.classes
    upstream_scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack[1:]))
    if not upstream_scopes:
        return ()
    shared = dict(zip(upstream_scopes, await ports.trees.read(upstream_scopes), strict=True))
    paths = _pinned_paths(classes, shared)
    agent_trees = await _load_agent_trees(ports, [stack[0] for stack in stacks], paths)
    pins_by_layers: dict[Stack, tuple[PendingPin, ...]] = {}
    pending = []
    for stack in stacks:
        layers = [shared[scope] for scope in stack[1:]]
        tree = agent_trees.get(stack[0])
        if tree is not None:
            pending.append(_pending_pins(paths, (tree, *layers)))
            continue
        if stack[1:] not in pins_by_layers:
            pins_by_layers[stack[1:]] = _pending_pins(paths, (Tree(stack[0], 0, {}), *layers))
        pending.append(pins_by_layers[stack[1:]])
    return tuple(pending)


def _pinned_paths(classes: FileClassRules, shared: Mapping[Scope, Tree]) -> Sequence[Path]:
    """Return the pinned paths that an upper layer offers, or offered and removed."""
    paths = sorted({path for tree in shared.values() for path in (*tree.heads, *tree.tombstones)})
    return [path for path in paths if classes.class_of(path) is FileClass.PINNED]


async def _load_agent_trees(
    ports: Ports, scopes: Sequence[Scope], paths: Sequence[Path]
) -> Mapping[Scope, Tree]:
    """Load the trees of agents that ever had own files."""
    revisions = await ports.trees.revisions(scopes)
    written_scopes = [scope for scope, revision in zip(scopes, revisions, strict=True) if revision]
    trees: dict[Scope, Tree] = {}
    for start in range(0, len(written_scopes), _BATCH_SIZE) if paths else ():
        batch = written_scopes[start : start + _BATCH_SIZE]
        trees |= zip(batch, await ports.trees.read(batch, paths), strict=True)
    return trees


def _pending_pins(paths: Sequence[Path], layers: Layers) -> tuple[PendingPin, ...]:
    pins = (pin_status(path, layers) for path in paths)
    return tuple(pin for pin in pins if pin.update_available)
