"""Paths that are a file and a directory at once: in a stack, and after a commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from carrel.core.identifiers import Path, Scope
from carrel.core.overlay.compose import Layers
from carrel.core.store.commit import ExpectPathFree, PathOccupied
from carrel.core.store.tree import Tree


class PathClash(Struct, frozen=True):
    """A file, and a path below it that makes it a directory."""

    file: Path
    file_scope: Scope
    below: Path
    below_scope: Scope


def find_clashes(layers: Layers) -> Iterator[PathClash]:
    """Clashes between the live paths of layers, one per file."""
    scopes: Mapping[Path, Scope] = {
        path: tree.scope for tree in reversed(layers) for path in tree.heads if tree.entry(path)
    }
    files: set[Path] = set()
    for path in sorted(scopes):
        for parent in path.parents:
            if parent in scopes and parent not in files:
                files.add(parent)
                yield PathClash(parent, scopes[parent], path, scopes[path])


def find_occupied(
    checks: Sequence[ExpectPathFree],
    trees: Sequence[Tree],
    deleted: AbstractSet[tuple[Scope, Path]],
) -> Iterator[PathOccupied]:
    """Checks whose path is not free in listed trees without what the commit deletes.

    Followers and variants of a path are not among these trees and not checked.
    """
    by_scope = {tree.scope: _ListedPaths(tree, deleted) for tree in trees}
    for check in checks:
        if check.path in by_scope[check.scopes[0]].tree.heads:
            continue
        occupants = (by_scope[scope].occupant(check.path) for scope in check.scopes)
        if occupant := next(filter(None, occupants), None):
            yield PathOccupied(check, occupant)


class _ListedPaths:
    """Live paths of a tree that a commit does not delete."""

    def __init__(self, tree: Tree, deleted: AbstractSet[tuple[Scope, Path]]) -> None:
        self.tree = tree
        self._paths = {
            path for path in (*tree.heads, *tree.directories) if (tree.scope, path) not in deleted
        }
        self._first_below: dict[Path, Path] = {}
        for path in sorted(self._paths, reverse=True):
            self._first_below |= dict.fromkeys(path.parents, path)

    def occupant(self, path: Path) -> Path | None:
        """File above a path, directory at it, or the first path below it."""
        for parent in path.parents:
            if parent in self._paths and parent in self.tree.heads:
                return parent
        return path if path in self._paths else self._first_below.get(path)
