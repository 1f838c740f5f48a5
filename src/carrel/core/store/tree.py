"""Trees: the entries of a scope by path."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from carrel.core.identifiers import Path, Scope
from carrel.core.store.entry import Entry, Head


class Tree(Struct, frozen=True, gc=False):
    scope: Scope
    revision: int
    """Increases with every commit to the scope: equal revisions mean equal trees."""
    heads: Mapping[Path, Head]
    """Requested heads: live entries, and tombstones only of paths requested by name."""

    def entry(self, path: Path) -> Entry | None:
        head = self.heads.get(path)
        return head.entry if head else None

    def version(self, path: Path) -> int:
        """Latest version of a path, 0 if it never existed."""
        head = self.heads.get(path)
        return head.version if head else 0
