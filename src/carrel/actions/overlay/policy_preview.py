"""Effect of a policy on existing files, computed before it is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.overlay.followers import iter_agent_layers
from carrel.actions.policy.pin_plans import has_loosened_paths, load_shared_trees
from carrel.actions.policy.placeholder_files import find_placeholder_files
from carrel.actions.policy.policies import normalize_patterns
from carrel.actions.policy.policy_models import (
    POLICY_ID,
    PolicyModel,
    classes_from_model,
    policy_from_record,
)
from carrel.core.access import Actor
from carrel.core.identifiers import Path
from carrel.core.overlay import agent_resolution
from carrel.core.overlay.class_changes import blobs_no_longer_rendered
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.store.record import RecordType
from carrel.core.store.tree import Tree
from carrel.ports import Ports

MAX_LISTED: Final = 500
"""Listed paths, those of the most agents first."""


class ClassChange(Struct, frozen=True):
    """Path whose class would change, and the number of agents that have it."""

    path: Path
    old_class: FileClass
    new_class: FileClass
    agents: int


class RuleUse(Struct, frozen=True):
    """Number of existing paths that a rule decides."""

    pattern: str
    file_class: FileClass
    files: int


class PolicyPreview(Struct, frozen=True):
    changes: tuple[ClassChange, ...]
    count: int
    """Number of all changed paths, listed or not."""
    loosens: bool
    """Whether storing the policy would require a reason."""
    placeholder_files: tuple[Path, ...]
    """Paths whose placeholders would no longer be filled, which requires a confirmation."""
    rules: tuple[RuleUse, ...]
    """Use of each rule, in order."""


async def preview_policy(ports: Ports, actor: Actor, form: PolicyModel) -> PolicyPreview:
    """List the paths whose file class would change. Raises ValidationError."""
    form = normalize_patterns(form)
    [record] = await ports.records.get(actor.tenant, RecordType.POLICY, [POLICY_ID])
    before, after = policy_from_record(record).classes, classes_from_model(form)
    trees = await load_shared_trees(ports, actor.tenant)
    agent_counts = Counter(
        {path: 0 for tree in trees for path in _changed_paths(before, after, tree)}
    )
    is_looser = has_loosened_paths(trees, before, after)
    deciding = {path: after.deciding_rule(path) for tree in trees for path in tree.heads}
    unrendered = {
        item for tree in trees for item in blobs_no_longer_rendered(before, after, (tree,))
    }
    async for _, layers in iter_agent_layers(ports, actor.tenant):
        paths = {path for tree in layers for path in _changed_paths(before, after, tree)}
        agent_counts.update(paths)
        is_looser = is_looser or any(_unpins(before, after, path, layers) for path in paths)
        deciding |= {path: after.deciding_rule(path) for path in layers[0].heads}
        unrendered.update(blobs_no_longer_rendered(before, after, layers))
    return PolicyPreview(
        _list_changes(before, after, agent_counts),
        len(agent_counts),
        loosens=is_looser,
        placeholder_files=tuple(await find_placeholder_files(ports, unrendered)),
        rules=_count_uses(after, deciding.values()),
    )


def _list_changes(
    before: FileClassRules, after: FileClassRules, agent_counts: Counter[Path]
) -> tuple[ClassChange, ...]:
    listed_paths = sorted(agent_counts, key=lambda path: (-agent_counts[path], path))[:MAX_LISTED]
    return tuple(
        ClassChange(path, before.class_of(path), after.class_of(path), agent_counts[path])
        for path in listed_paths
    )


def _count_uses(
    classes: FileClassRules, deciding_rules: Iterable[int | None]
) -> tuple[RuleUse, ...]:
    counts = Counter(deciding_rules)
    return tuple(
        RuleUse(rule.pattern, rule.file_class, counts[index])
        for index, rule in enumerate(classes.rules)
    )


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
