"""Plans the pins of all agents for a change of file classes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.records import NO_DRAFTS, FileDrafts, iter_records
from carrel.core.agents.agent import agent_change, agent_from_record
from carrel.core.agents.layers import build_stack
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay import agent_resolution
from carrel.core.overlay import pins as overlay_pins
from carrel.core.overlay.class_changes import (
    blobs_no_longer_rendered,
    find_new_collisions,
    rule_change,
)
from carrel.core.overlay.compose import Layers
from carrel.core.overlay.file_classes import FileClassRules
from carrel.core.overlay.pin_sets import pin_set_scope
from carrel.core.overlay.planned_writes import PlannedWrite
from carrel.core.store.blob import Blob
from carrel.core.store.commit import ExpectPathsUnchanged, Write
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.core.store.tree import Tree
from carrel.ports import Ports


class PinPlan(Struct, frozen=True):
    """Changes that keep every agent's files when classes change."""

    changes: Sequence[RecordChange] = ()
    drafts: FileDrafts = NO_DRAFTS
    shared_trees: Sequence[Tree] = ()
    """Trees of all templates and of the defaults."""
    loosened: bool = False
    """Whether any agent has a file that is no longer pinned."""
    unrendered: frozenset[tuple[Path, Blob]] = frozenset()
    """Contents whose placeholders are no longer filled."""
    collisions: frozenset[Path] = frozenset()
    """Paths of agents that would collide with a protected path in letter case."""


async def plan_pin_changes(
    ports: Ports, tenant: str, before: FileClassRules, after: FileClassRules
) -> PinPlan:
    """Plan the pins of every agent for files that become pinned or unpinned.

    A file that becomes live without an upstream stays with the agent. The commit is refused if a
    path that the plan depends on changes meanwhile.
    """
    if before == after:
        return PinPlan()
    agents = [agent async for agent in iter_records(ports, tenant, RecordType.AGENT)]
    shared = await _shared_scopes(ports, tenant)
    scopes = tuple(dict.fromkeys((*shared, *(s for agent in agents for s in build_stack(agent)))))
    trees = dict(zip(scopes, await ports.trees.read(scopes), strict=True))
    planner = _Planner(before, after)
    for agent in agents:
        planner.add(agent, [trees[scope] for scope in build_stack(agent)])
    paths = {path for tree in trees.values() for path in tree.heads}
    revisions = {tree.scope: tree.revision for tree in trees.values()}
    change = rule_change(before, after, paths)
    return planner.plan(
        [trees[scope] for scope in shared], ExpectPathsUnchanged(revisions, change.concerns)
    )


class _Planner:
    """Plans one agent after the other."""

    def __init__(self, before: FileClassRules, after: FileClassRules) -> None:
        self._before, self._after = before, after
        self._changes: list[RecordChange] = []
        self._edits: list[PlannedWrite] = []
        self._pins: dict[tuple[Scope, Path], Write] = {}
        self._loosened = False
        self._unrendered: set[tuple[Path, Blob]] = set()
        self._collisions: set[Path] = set()

    def add(self, agent: Record, layers: Layers) -> None:
        before, after = self._before, self._after
        self._unrendered.update(blobs_no_longer_rendered(before, after, layers))
        self._collisions.update(find_new_collisions(before, after, layers))
        paths = sorted({path for tree in layers for path in tree.heads})
        tightened = before.newly_pinned(after, paths)
        self._edits += [
            edit
            for path in tightened
            if (edit := overlay_pins.plan_pin(layers, path, before.class_of(path)))
        ]
        unpinned = [
            path
            for path in after.newly_pinned(before, paths)
            if agent_resolution.pinned_head(path, layers)[1]
        ]
        self._edits += [
            edit for path in unpinned if (edit := overlay_pins.plan_unpin(layers, path))
        ]
        self._loosened = self._loosened or bool(unpinned)
        if resurfacing := overlay_pins.resurfacing_pins(layers, tightened):
            self._replace_pins(agent, layers[1], resurfacing)

    def _replace_pins(self, agent: Record, pins: Tree, dropped: Sequence[Path]) -> None:
        """Give an agent a pin set without old pins that would be shown again."""
        entries = {path: pins.entry(path) for path in pins.heads}
        remaining = {path: pin for path, pin in entries.items() if pin and path not in dropped}
        scope = pin_set_scope(agent.tenant, remaining)
        with_pins = replace(agent_from_record(agent), pins=scope.name if remaining else None)
        self._changes.append(agent_change(agent.tenant, agent.id, with_pins, agent))
        self._pins |= {(scope, path): Write(scope, path, pin) for path, pin in remaining.items()}

    def plan(self, shared_trees: Sequence[Tree], unchanged: ExpectPathsUnchanged) -> PinPlan:
        # `unchanged` covers all that the edits expect: their paths get another class.
        writes = (*(edit.write for edit in self._edits), *self._pins.values())
        return PinPlan(
            self._changes,
            FileDrafts(writes, unchanged_paths=unchanged),
            shared_trees,
            self._loosened,
            frozenset(self._unrendered),
            frozenset(self._collisions),
        )


async def load_shared_trees(ports: Ports, tenant: str) -> Sequence[Tree]:
    """Load the trees of all templates and the defaults."""
    return await ports.trees.read(await _shared_scopes(ports, tenant))


async def _shared_scopes(ports: Ports, tenant: str) -> Stack:
    """Scopes of all templates, and of the defaults."""
    templates = [template async for template in iter_records(ports, tenant, RecordType.TEMPLATE)]
    scopes = [Scope(tenant, ScopeKind.TEMPLATE, template.id) for template in templates]
    return (*scopes, Scope(tenant, ScopeKind.DEFAULTS, ""))


def has_loosened_paths(
    shared_trees: Sequence[Tree], before: FileClassRules, after: FileClassRules
) -> bool:
    """Return whether a pinned file of a template or the defaults would become live."""
    paths = {path for tree in shared_trees for path in tree.heads}
    return bool(after.newly_pinned(before, paths))
