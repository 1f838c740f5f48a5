"""Trees: the entries of a scope by path."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.entry import Entry, Head


class ScopeMoment(Struct, frozen=True, gc=False):
    """A scope at a time."""

    revision: int
    pruned_paths: frozenset[Path] = frozenset()
    """Paths whose version at that time was pruned, or may have been."""


class Tree(Struct, frozen=True, gc=False):
    scope: Scope
    revision: int
    """Increases with every commit to the scope: equal revisions mean equal trees."""
    heads: Mapping[Path, Head]
    """Requested heads: live entries, and tombstones only of paths requested by name."""
    tombstones: Mapping[Path, int] = {}
    """In a listing of an agent's tree: stack versions of deleted paths."""
    directories: Mapping[Path, Head] = {}
    """In a listing: directories of their own. Others exist while a file is in them."""

    def entry(self, path: Path) -> Entry | None:
        head = self.heads.get(path)
        return head.entry if head else None

    def version(self, path: Path) -> int:
        """Latest version of a path, 0 if it never existed."""
        head = self.heads.get(path)
        return head.version if head else 0

    def stack_version(self, path: Path) -> int:
        """Latest version of a path as a stack counts it, 0 if it never existed."""
        head = self.heads.get(path)
        return head.stack_version if head else self.tombstones.get(path, 0)


def build_tree(
    scope: Scope, revision: int, heads: Iterable[Head], paths: Collection[Path] | None
) -> Tree:
    """Tree of heads that were requested by name, or listed if `paths` is None."""
    if paths is not None:
        return Tree(scope, revision, {head.path: head for head in heads})
    live: dict[Path, Head] = {}
    tombstones: dict[Path, int] = {}
    directories: dict[Path, Head] = {}
    for head in heads:
        if head.entry is not None:
            live[head.path] = head
            continue
        if head.directory is not None:
            directories[head.path] = head
        if scope.kind is ScopeKind.AGENT:
            tombstones[head.path] = head.stack_version
    return Tree(scope, revision, live, tombstones, directories)
