"""Drift: how far agents are behind their templates, and what they override."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.core.fleet.pin_groups import FleetCounts, PinGroup, layers_of
from carrel.core.fleet.tallies import FileState
from carrel.core.identifiers import Path, Scope
from carrel.core.overlay.agent_resolution import upstream_layers
from carrel.core.overlay.compose import upstream_blob
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.store.entry import Version
from carrel.core.store.tree import Tree

MAX_BEHIND: Final = 5
"""Versions behind that are told apart."""
VersionKey = tuple[Scope, Path, int]


class FileDrift(Struct, frozen=True):
    """Agents by how far their pin of one file is behind what is offered."""

    path: Path
    up_to_date: int
    behind: Mapping[int, int]
    """Agents by the number of versions, up to MAX_BEHIND."""
    older: int
    """Agents whose pin is older or came from another layer, or whose file was removed there."""
    not_reviewed: int
    overridden: int


def versions_to_read(
    groups: Mapping[PinGroup, int], trees: Mapping[Scope, Tree]
) -> Sequence[VersionKey]:
    """Versions that pins which differ from what is offered may have."""
    offers = {(group.offered_by, group.path) for group in groups if group.pinned != group.latest}
    keys = []
    for scope, path in offers:
        if scope is None:
            continue
        latest = trees[scope].heads[path].version
        keys += [(scope, path, n) for n in range(max(1, latest - MAX_BEHIND), latest)]
    return keys


def measure_drift(
    groups: Mapping[PinGroup, int],
    trees: Mapping[Scope, Tree],
    versions: Mapping[VersionKey, Version | None],
) -> Sequence[FileDrift]:
    """Drift of each pinned file that a layer offers, by path."""
    behind = _behind_by_digest(trees, versions)
    counts = defaultdict[Path, Counter[str | int]](Counter)
    for group, agents in groups.items():
        state: str | int = "same"
        if group.latest is None and not group.is_waiting:
            continue
        if group.pinned is None:
            state = "new"
        elif group.pinned != group.latest:
            state = behind.get((group.offered_by, group.path, group.pinned), "older")
        counts[group.path][state] += agents
        counts[group.path]["overridden"] += agents * group.is_overridden
    return [
        FileDrift(
            path,
            parts["same"],
            {n: parts[n] for n in range(1, MAX_BEHIND + 1) if parts[n]},
            parts["older"],
            parts["new"],
            parts["overridden"],
        )
        for path, parts in sorted(counts.items())
    ]


def _behind_by_digest(
    trees: Mapping[Scope, Tree], versions: Mapping[VersionKey, Version | None]
) -> Mapping[tuple[Scope | None, Path, str], int]:
    """Number of versions since each content; of equal contents the newest counts."""
    behind: dict[tuple[Scope | None, Path, str], int] = {}
    for (scope, path, number), version in sorted(versions.items(), key=lambda item: item[0][2]):
        if version is not None and version.head.entry is not None:
            digest = version.head.entry.blob.digest
            behind[scope, path, digest] = trees[scope].heads[path].version - number
    return behind


def count_overrides(
    counts: FleetCounts, tenant: str, trees: Mapping[Scope, Tree], classes: FileClassRules
) -> Mapping[Path, int]:
    """Agents that override each file that a layer below them has; managed files are left out."""
    overrides = Counter[Path]()
    for file, agents in counts.files.items():
        file_class = classes.class_of(file.path)
        if file.state in {FileState.PIN, FileState.NONE} or file_class is FileClass.MANAGED:
            continue
        layers = [trees[scope] for scope in layers_of(tenant, file.agents)]
        has_review = file_class is FileClass.PINNED and file.state is FileState.OVERRIDE
        no_files = trees[layers[-1].scope]
        if has_review or upstream_blob(file.path, upstream_layers((no_files, *layers))):
            overrides[file.path] += agents
    return overrides
