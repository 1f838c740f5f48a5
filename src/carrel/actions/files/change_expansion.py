"""Expands changes of directories into changes of the paths in them."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from msgspec import Struct

from carrel.core.errors import Refusal
from carrel.core.identifiers import Path, ScopeKind, Stack
from carrel.core.overlay.agent_resolution import AgentFileResolver, agent_entry
from carrel.core.overlay.commit_plan import CommitContext
from carrel.core.overlay.compose import Layers, compose
from carrel.core.overlay.file_changes import (
    ChangeKind,
    DirectoryContents,
    FailedChange,
    FileChange,
    all_paths,
    check_independent,
    expand_directory,
)
from carrel.core.store.entry import FileAttributes
from carrel.ports import Ports

_OF_DIRECTORIES = frozenset({ChangeKind.DELETE, ChangeKind.MOVE, ChangeKind.COPY})


class ExpandedChanges(Struct, frozen=True):
    """Changes of single paths, with the state that they are planned against."""

    changes: Sequence[FileChange]
    layers: Layers
    """With every path that a change names, and the parents of directories that are made."""
    failures: Sequence[FailedChange]


async def expand_changes(
    ports: Ports,
    stack: Stack,
    resolver: AgentFileResolver | None,
    requested: Sequence[FileChange],
) -> ExpandedChanges:
    """Expand the changes that name a directory; without one, they are the requested ones.

    Raises ValidationError.
    """
    layers = await _read(ports, stack, requested)
    context = CommitContext(layers, resolver)
    expanded: list[FileChange] = []
    failures: list[FailedChange] = []
    for change in requested:
        if change.kind not in _OF_DIRECTORIES or context.resolve(change.subject):
            expanded.append(change)
            continue
        try:
            contents = await _read_directory(ports, context, stack, change.subject)
            expanded += expand_directory(change, contents)
        except Refusal as refusal:
            failures.append(FailedChange(change, refusal))
    if len(expanded) == len(requested) and all(map(is_, expanded, requested)):
        return ExpandedChanges(requested, layers, failures)
    check_independent(expanded)
    layers = await _read(ports, stack, expanded)
    return ExpandedChanges(expanded, layers, failures)


async def _read(ports: Ports, stack: Stack, changes: Sequence[FileChange]) -> Layers:
    """Read every path that the changes name."""
    directories = (change for change in changes if change.kind is ChangeKind.MAKE_DIRECTORY)
    parents = (parent for change in directories for parent in change.path.parents)
    return await ports.trees.read(stack, tuple(dict.fromkeys((*all_paths(changes), *parents))))


async def _read_directory(
    ports: Ports, context: CommitContext, stack: Stack, directory: Path
) -> DirectoryContents:
    layers, resolver = await ports.trees.read(stack, prefix=f"{directory}/"), context.resolver
    workspace = compose(layers) if resolver is None else resolver.compose(layers)
    own = [path for path in layers[0].heads if _is_own_file(layers, path)]
    directories = {path: head.directory for path, head in layers[0].directories.items()}
    head = context.layers[0].heads.get(directory)
    if head is not None and head.directory is not None:
        directories[directory] = head.directory
    with_attributes = {path: value or FileAttributes() for path, value in directories.items()}
    return DirectoryContents(tuple(workspace.files), own, with_attributes)


def _is_own_file(layers: Layers, path: Path) -> bool:
    """Whether the nearest layer has a file that can be deleted; a pin is none."""
    if layers[0].scope.kind is ScopeKind.AGENT:
        return agent_entry(path, layers) is not None
    return layers[0].entry(path) is not None
