"""Effect of a policy on existing files, computed before it is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.policy.policies import (
    POLICY_ID,
    PolicyModel,
    classes_from_model,
    has_loosened_paths,
    policy_from_record,
    validate_patterns,
)
from carrel.actions.records import iter_records
from carrel.core.access import Actor
from carrel.core.agents.layers import build_stack
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay import agent_resolution
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import Tree
from carrel.ports import Ports

MAX_LISTED: Final = 500
"""Listed paths, those of the most agents first."""
_BATCH_SIZE: Final = 500
"""Agents read together."""


class ClassChange(Struct, frozen=True):
    """Path whose class would change, and the number of agents that have it."""

    path: Path
    old_class: FileClass
    new_class: FileClass
    agents: int


class PolicyPreview(Struct, frozen=True):
    changes: tuple[ClassChange, ...]
    count: int
    """Number of all changed paths, listed or not."""
    loosens: bool
    """Whether storing the policy would require a reason."""


async def preview_policy(ports: Ports, actor: Actor, form: PolicyModel) -> PolicyPreview:
    """List the paths whose file class would change. Raises ValidationError."""
    validate_patterns(form)
    [record] = await ports.records.get(actor.tenant, RecordType.POLICY, [POLICY_ID])
    before, after = policy_from_record(record).classes, classes_from_model(form)
    if before == after:
        return PolicyPreview((), 0, loosens=False)
    templates = [
        template.id async for template in iter_records(ports, actor.tenant, RecordType.TEMPLATE)
    ]
    scopes = [Scope(actor.tenant, ScopeKind.TEMPLATE, id) for id in templates]
    trees = await ports.trees.read((*scopes, Scope(actor.tenant, ScopeKind.DEFAULTS, "")))
    agent_counts = Counter(
        {path: 0 for tree in trees for path in _changed_paths(before, after, tree)}
    )
    is_looser = await has_loosened_paths(ports, actor.tenant, before, after)
    async for layers in _iter_layers(ports, actor.tenant):
        paths = {path for tree in layers for path in _changed_paths(before, after, tree)}
        agent_counts.update(paths)
        is_looser = is_looser or any(_unpins(before, after, path, layers) for path in paths)
    listed_paths = sorted(agent_counts, key=lambda path: (-agent_counts[path], path))[:MAX_LISTED]
    changes = (
        ClassChange(path, before.class_of(path), after.class_of(path), agent_counts[path])
        for path in listed_paths
    )
    return PolicyPreview(tuple(changes), len(agent_counts), loosens=is_looser)


def _changed_paths(before: FileClassRules, after: FileClassRules, tree: Tree) -> Collection[Path]:
    return [path for path in tree.heads if before.class_of(path) is not after.class_of(path)]


def _unpins(
    before: FileClassRules, after: FileClassRules, path: Path, layers: Sequence[Tree]
) -> bool:
    """Return whether the agent has a pinned file that would no longer be pinned."""
    return (
        bool(after.newly_pinned(before, (path,)))
        and agent_resolution.pinned_head(path, layers)[1] is not None
    )


async def _iter_layers(ports: Ports, tenant: str) -> AsyncIterator[Sequence[Tree]]:
    """Iterate over the layers of every agent, read in batches."""
    after = ""
    while agents := await ports.records.list(
        tenant, RecordType.AGENT, after=after, limit=_BATCH_SIZE
    ):
        async for layers in _load_layers(ports, agents):
            yield layers
        after = agents[-1].id


async def _load_layers(ports: Ports, agents: Sequence[Record]) -> AsyncIterator[Sequence[Tree]]:
    stacks = [build_stack(agent) for agent in agents]
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True))
    for stack in stacks:
        yield [trees[scope] for scope in stack]
