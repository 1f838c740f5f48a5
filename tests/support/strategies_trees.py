"""Hypothesis strategies for trees and stacks."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import strategies as st
from msgspec.structs import replace

from carrel.core.identifiers import Path, Scope, ScopeKind, digest
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Write
from carrel.core.store.entry import Entry, Head
from carrel.core.store.tree import Tree

PATHS = [Path(text) for text in ("a", "a/b", "b", "Z", "é")]
SCOPES = [
    Scope("acme", kind, "x") for kind in (ScopeKind.AGENT, ScopeKind.TEMPLATE, ScopeKind.DEFAULTS)
]
TEXTS = ["", "one", "two", "three"]
TYPES = ["text/markdown", "text/plain"]


def blob(text: str) -> Blob:
    return Blob(digest(text.encode()), len(text.encode()))


BLOBS = [blob(text) for text in TEXTS]
ENTRIES = [Entry(b, base, kind) for b in BLOBS for base in (None, *BLOBS) for kind in TYPES]

paths = st.sampled_from(PATHS)
blobs = st.sampled_from(BLOBS)
entries = st.sampled_from(ENTRIES)
head_maps = st.dictionaries(paths, st.tuples(st.integers(1, 9), st.none() | entries))


def trees(scope: Scope) -> st.SearchStrategy[Tree]:
    """Trees as read by path: tombstones are among the heads."""
    return head_maps.map(lambda heads: _tree(scope, heads))


def _tree(scope: Scope, heads_by_path: Mapping[Path, tuple[int, Entry | None]]) -> Tree:
    revision = sum(version for version, _ in heads_by_path.values())
    heads = {
        path: Head(path, version, revision, 0, entry)
        for path, (version, entry) in heads_by_path.items()
    }
    return Tree(scope, revision, heads)


def stacks(least: int = 1) -> st.SearchStrategy[tuple[Tree, ...]]:
    layers = st.lists(head_maps, min_size=least, max_size=len(SCOPES))
    return layers.map(lambda heads: tuple(map(_tree, SCOPES, heads)))


def apply_write(tree: Tree, write: Write) -> Tree:
    """The tree after this write."""
    assert write.scope == tree.scope
    head = Head(write.path, tree.version(write.path) + 1, tree.revision + 1, 0, write.entry)
    return replace(tree, revision=tree.revision + 1, heads={**tree.heads, write.path: head})


def live_files(tree: Tree) -> Mapping[Path, Entry]:
    return {path: head.entry for path, head in tree.heads.items() if head.entry}
