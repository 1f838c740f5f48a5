"""Clashes in a stack: a path that is a file in one layer and a directory in another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from carrel.core.identifiers import Path, Scope
from carrel.core.overlay.compose import Layers


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
