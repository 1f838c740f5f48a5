"""Listing of a store: its memories by id, by path, and grouped by directory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from carrel.core.identifiers import Path
from carrel.core.memory_stores.memory_paths import is_memory
from carrel.core.store.entry import Head
from carrel.core.store.tree import Tree


class MemoryListing(Struct, frozen=True):
    """All files of a store at one revision."""

    tree: Tree
    paths: Sequence[str]
    """Paths of all files and directories of their own, ordered."""
    by_file_id: Mapping[str, Head]

    def find(self, file_id: str) -> Head | None:
        """Memory with an id."""
        return self.by_file_id.get(file_id)


def find_occupant(path: Path, named: Tree, below: Tree, moved: Path | None) -> Path | None:
    """File or directory that does not leave a path free for a new or a moved memory.

    `named` has the path and its parents, `below` what is in it as a directory.
    """
    files = [parent for parent in path.parents if named.entry(parent) is not None]
    head = named.heads.get(path)
    at_path = [path] if head is not None and head.is_live else []
    inner = sorted((*below.heads, *below.directories))
    return next((other for other in (*files, *at_path, *inner) if other != moved), None)


def build_listing(tree: Tree) -> MemoryListing:
    paths = sorted(path.text for path in (*tree.heads, *tree.directories))
    by_file_id = {head.file_id(tree.scope): head for head in tree.heads.values() if is_memory(head)}
    return MemoryListing(tree, paths, by_file_id)


class MemoryPrefix(Struct, frozen=True):
    """Directory that stands for the memories below it."""

    path: str
    """Path with a slash at its end."""


ListItem = Head | MemoryPrefix


def list_items(
    listing: MemoryListing, prefix: str, after: str, *, children_only: bool
) -> Iterator[ListItem]:
    """Memories below a prefix after a position, ordered; directories if only children are listed.

    A position is that of an item: `item_position`.
    """
    tree, last = listing.tree, after
    for index in range(bisect_left(listing.paths, max(prefix, after)), len(listing.paths)):
        text = listing.paths[index]
        if not text.startswith(prefix):
            return
        head = tree.heads.get(Path(text))
        if head is None or not is_memory(head):
            continue
        directory, slash, _ = text[len(prefix) :].partition("/")
        is_grouped = bool(children_only and slash)
        position = f"{prefix}{directory}/" if is_grouped else text
        if position > last:
            last = position
            yield MemoryPrefix(position) if is_grouped else head


def item_position(item: ListItem) -> str:
    return item.path if isinstance(item, MemoryPrefix) else item.path.text
