"""Pinned files of all agents, counted by what is pinned and what is offered."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from carrel.core.fleet.tallies import AgentGroup, FileGroup, FileState
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay.agent_resolution import is_pin
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.overlay.pins import pin_status
from carrel.core.store.entry import OFFERED_REMOVAL
from carrel.core.store.tree import Tree


class FleetCounts(Struct, frozen=True):
    """Agents and their own files, counted by group."""

    agents: Mapping[AgentGroup, int]
    files: Mapping[FileGroup, int]

    def __add__(self, other: FleetCounts) -> FleetCounts:
        return FleetCounts(
            Counter(self.agents) + Counter(other.agents), Counter(self.files) + Counter(other.files)
        )


class PinGroup(Struct, frozen=True):
    """Agents of one template with the same state of one pinned file."""

    template: str | None
    path: Path
    pinned: str | None
    """Digest of the reviewed content; None if none was reviewed."""
    latest: str | None
    """Digest of what is offered; None if no layer below has the file."""
    offered_by: Scope | None
    is_overridden: bool
    is_declined: bool = False

    @property
    def is_waiting(self) -> bool:
        return self.latest != self.pinned and not self.is_declined


def upstream_scopes(tenant: str, groups: Iterable[AgentGroup]) -> Sequence[Scope]:
    """Scopes of all layers below the agents' own."""
    scopes = {Scope(tenant, ScopeKind.DEFAULTS, ""): None}
    for group in groups:
        scopes |= dict.fromkeys(layers_of(tenant, group))
    return tuple(scopes)


def layers_of(tenant: str, group: AgentGroup) -> Sequence[Scope]:
    pins = [Scope(tenant, ScopeKind.PINS, group.pins)] if group.pins else []
    template = [Scope(tenant, ScopeKind.TEMPLATE, group.template)] if group.template else []
    return [*pins, *template, Scope(tenant, ScopeKind.DEFAULTS, "")]


def offered_paths(trees: Mapping[Scope, Tree]) -> Sequence[Path]:
    """Paths that templates, defaults and pins have, or had."""
    return sorted({path for tree in trees.values() for path in (*tree.heads, *tree.tombstones)})


def group_pins(
    counts: FleetCounts, tenant: str, trees: Mapping[Scope, Tree], classes: FileClassRules
) -> Mapping[PinGroup, int]:
    """Count the agents in each state of each pinned file that a layer offers."""
    paths = [path for path in offered_paths(trees) if classes.class_of(path) is FileClass.PINNED]
    own_files = defaultdict[tuple[AgentGroup, Path], list[tuple[FileGroup, int]]](list)
    for file, count in counts.files.items():
        own_files[file.agents, file.path].append((file, count))
    result = Counter[PinGroup]()
    for group, count in counts.agents.items():
        layers = [trees[scope] for scope in layers_of(tenant, group)]
        for path in paths:
            for pin_group, agents in _pin_groups(
                group, path, layers, count, own_files.get((group, path), ())
            ):
                result[pin_group] += agents
    return result


def _pin_groups(
    group: AgentGroup,
    path: Path,
    layers: Sequence[Tree],
    count: int,
    own_files: Sequence[tuple[FileGroup, int]],
) -> Iterator[tuple[PinGroup, int]]:
    no_files = Tree(Scope(layers[-1].scope.tenant, ScopeKind.AGENT, ""), 0, {})
    status = pin_status(path, (no_files, *layers))
    latest = status.latest.digest if status.latest else None
    offered = (latest, status.latest_from)
    if inheriting := count - sum(number for _, number in own_files):
        pinned = status.pinned.digest if status.pinned else None
        yield PinGroup(group.template, path, pinned, *offered, status.overridden), inheriting
    for file, number in own_files:
        is_overridden = file.state in {FileState.OVERRIDE, FileState.OWN}
        is_declined = file.reviewed == (latest or OFFERED_REMOVAL)
        state = (file.base or None, *offered, is_overridden, is_declined)
        yield PinGroup(group.template, path, *state), number


def count_agents(agents: Iterable[tuple[AgentGroup, Tree]]) -> FleetCounts:
    """Count agents one by one, each with its own files."""
    groups, files = Counter[AgentGroup](), Counter[FileGroup]()
    for group, tree in agents:
        groups[group] += 1
        for path, head in tree.heads.items():
            reviewed = head.reviewed or ""
            if head.entry is None:
                if head.reviewed is not None:
                    files[FileGroup(group, path, FileState.NONE, "", reviewed)] += 1
                continue
            base = head.entry.base
            state = FileState.PIN if is_pin(head.entry) else FileState.OVERRIDE
            state = FileState.OWN if base is None else state
            files[FileGroup(group, path, state, base.digest if base else "", reviewed)] += 1
    return FleetCounts(groups, files)
