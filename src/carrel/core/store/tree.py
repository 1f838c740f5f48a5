"""Trees: the entries of a scope by path."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.store.entry import Entry, Head

LISTED_TOMBSTONES: Final = frozenset({ScopeKind.AGENT, ScopeKind.TEMPLATE, ScopeKind.DEFAULTS})
"""Kinds of scopes whose listings name what was deleted: an agent may still have it pinned."""


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
    """In a listing of an agent's, template's or the defaults' tree: versions of deleted paths."""
    directories: Mapping[Path, Head] = {}
    """In a listing: directories of their own. Others exist while a file is in them."""
    reviewed_offers: Mapping[Path, str] = {}
    """In a listing of an agent's tree: reviewed offers of paths that are no files."""

    def entry(self, path: Path) -> Entry | None:
        head = self.heads.get(path)
        return head.entry if head else None

    def reviewed_offer(self, path: Path) -> str | None:
        """Offer that a person reviewed and did not take: see Head."""
        head = self.heads.get(path)
        return head.reviewed if head else self.reviewed_offers.get(path)

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
    reviewed_offers: dict[Path, str] = {}
    for head in heads:
        if head.entry is not None:
            live[head.path] = head
            continue
        if head.directory is not None:
            directories[head.path] = head
        if scope.kind in LISTED_TOMBSTONES:
            tombstones[head.path] = head.stack_version
            if head.reviewed is not None:
                reviewed_offers[head.path] = head.reviewed
    return Tree(scope, revision, live, tombstones, directories, reviewed_offers)
