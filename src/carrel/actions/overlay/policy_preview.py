"""What a policy would do to the files that there are, told before it is put."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Collection, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.policy.policies import (
    POLICY_ID,
    PolicyModel,
    check,
    classes_of_form,
    loosens,
    policy_of,
)
from carrel.actions.records import iter_records
from carrel.core.access import Actor
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay import agent_files
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.overlay.layers import stack_of
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import Tree
from carrel.ports import Ports

MOST: Final = 500
"""Paths that are told, those of most agents first."""
_AT_ONCE: Final = 500
"""Agents that are read together."""


class ClassChange(Struct, frozen=True):
    """A path whose class would be another, and how many agents have it."""

    path: Path
    was: FileClass
    now: FileClass
    agents: int


class PolicyPreview(Struct, frozen=True):
    changes: tuple[ClassChange, ...]
    count: int
    """Of all paths that would change, also of those that are not told."""
    loosens: bool
    """Whether it would need a reason."""


async def preview(ports: Ports, actor: Actor, form: PolicyModel) -> PolicyPreview:
    """Which paths of defaults, templates and agents would be of another class. Raises Malformed."""
    check(form)
    [record] = await ports.records.get(actor.tenant, RecordType.POLICY, [POLICY_ID])
    before, after = policy_of(record).classes, classes_of_form(form)
    if before == after:
        return PolicyPreview((), 0, loosens=False)
    templates = [one.id async for one in iter_records(ports, actor.tenant, RecordType.TEMPLATE)]
    scopes = [Scope(actor.tenant, ScopeKind.TEMPLATE, id) for id in templates]
    trees = await ports.trees.read((*scopes, Scope(actor.tenant, ScopeKind.DEFAULTS, "")))
    seen = Counter({path: 0 for tree in trees for path in _moved(before, after, tree)})
    looser = await loosens(ports, actor.tenant, before, after)
    async for layers in _workspaces(ports, actor.tenant):
        paths = {path for tree in layers for path in _moved(before, after, tree)}
        seen.update(paths)
        looser = looser or any(_frees(before, after, path, layers) for path in paths)
    told = sorted(seen, key=lambda path: (-seen[path], path))[:MOST]
    changes = (
        ClassChange(path, before.class_of(path), after.class_of(path), seen[path]) for path in told
    )
    return PolicyPreview(tuple(changes), len(seen), loosens=looser)


def _moved(before: FileClassRules, after: FileClassRules, tree: Tree) -> Collection[Path]:
    return [path for path in tree.heads if before.class_of(path) is not after.class_of(path)]


def _frees(
    before: FileClassRules, after: FileClassRules, path: Path, layers: Sequence[Tree]
) -> bool:
    """Whether an agent holds a file that would be pinned no longer."""
    return (
        bool(after.tightened(before, (path,)))
        and agent_files.held_head(path, layers)[1] is not None
    )


async def _workspaces(ports: Ports, tenant: str) -> AsyncIterator[Sequence[Tree]]:
    """The layers of every agent, some hundred agents read together."""
    after = ""
    while found := await ports.records.list(tenant, RecordType.AGENT, after=after, limit=_AT_ONCE):
        async for layers in _layers(ports, found):
            yield layers
        after = found[-1].id


async def _layers(ports: Ports, agents: Sequence[Record]) -> AsyncIterator[Sequence[Tree]]:
    stacks = [stack_of(agent) for agent in agents]
    scopes = tuple(dict.fromkeys(scope for stack in stacks for scope in stack))
    trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True))
    for stack in stacks:
        yield [trees[scope] for scope in stack]
