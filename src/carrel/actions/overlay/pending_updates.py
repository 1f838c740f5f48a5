"""Which pinned updates wait for whom, for thousands of agents of which most are alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from carrel.actions.policy.tenant_rules import load_rules
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.overlay.layers import stack_of
from carrel.core.overlay.pins import PinStatus, pin_of
from carrel.core.store.record import Record
from carrel.core.store.tree import Tree
from carrel.ports import Ports

Awaited: TypeAlias = PinStatus
"""A pin for which something newer is offered."""
_AT_ONCE: Final = 500
"""Agents with files of their own that are read together."""


async def pending_pin_updates(
    ports: Ports, tenant: str, agents: Sequence[Record]
) -> tuple[tuple[Awaited, ...], ...]:
    """The pinned files of each for which something newer is offered, in order of path.

    What an agent without files of its own waits for is worked out once for all over its layers.
    """
    stacks = [stack_of(agent) for agent in agents]
    classes = (await load_rules(ports, tenant)).policy.classes
    beneath = tuple(dict.fromkeys(scope for stack in stacks for scope in stack[1:]))
    if not beneath:
        return ()
    shared = dict(zip(beneath, await ports.trees.read(beneath), strict=True))
    paths = _pinned(classes, shared)
    own = await _own(ports, [stack[0] for stack in stacks], paths)
    alike: dict[Stack, tuple[Awaited, ...]] = {}
    found = []
    for stack in stacks:
        layers = [shared[scope] for scope in stack[1:]]
        tree = own.get(stack[0])
        if tree is not None:
            found.append(_waiting(paths, (tree, *layers)))
            continue
        if stack[1:] not in alike:
            alike[stack[1:]] = _waiting(paths, (Tree(stack[0], 0, {}), *layers))
        found.append(alike[stack[1:]])
    return tuple(found)


def _pinned(classes: FileClassRules, shared: Mapping[Scope, Tree]) -> Sequence[Path]:
    """The pinned paths of which anything could be offered."""
    offering = [tree for scope, tree in shared.items() if scope.kind is not ScopeKind.PINS]
    paths = sorted({path for tree in offering for path in tree.heads})
    return [path for path in paths if classes.class_of(path) is FileClass.PINNED]


async def _own(
    ports: Ports, scopes: Sequence[Scope], paths: Sequence[Path]
) -> Mapping[Scope, Tree]:
    """What those say of these paths themselves that ever said anything."""
    revisions = await ports.trees.revisions(scopes)
    speaking = [scope for scope, at in zip(scopes, revisions, strict=True) if at]
    found: dict[Scope, Tree] = {}
    for start in range(0, len(speaking), _AT_ONCE) if paths else ():
        some = speaking[start : start + _AT_ONCE]
        found |= zip(some, await ports.trees.read(some, paths), strict=True)
    return found


def _waiting(paths: Sequence[Path], layers: Layers) -> tuple[Awaited, ...]:
    pins = (pin_of(path, layers) for path in paths)
    return tuple(pin for pin in pins if pin.update_available)
