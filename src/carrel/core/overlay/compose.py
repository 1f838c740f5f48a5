"""Composition of layered trees into a workspace: the nearest layer that has a path wins.

Pinned and managed files of agents follow further rules (core/overlay/agent_resolution.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.overlay.placeholders import PlaceholderValues
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Entry, Head
from carrel.core.store.tree import Tree

Layers = Sequence[Tree]
"""Trees, nearest first: agent, its pins, template, defaults; or a single one."""


_UPDATE_MARK: Final = "+"


class File(Struct, frozen=True, gc=False):
    """Resolved file of a workspace."""

    head: Head
    entry: Entry
    source: Scope
    depth: int
    etag: str
    """Changes with every write, the source layer, and an available update."""
    available_update: Blob | None = None
    """Content of the layers below, if it differs from the base of the nearest layer."""
    file_class: FileClass = FileClass.LIVE
    source_label: str = ""
    """Label of the source if it says more than the scope kind."""
    variables: PlaceholderValues | None = None
    """Values of its placeholders; None if the file is served verbatim."""
    own_version: int = 0
    """Version that the stack had reached before it inherited this file."""
    upstream: ScopeKind | None = None
    """Layer below an agent that has the path of its own file or pin."""
    is_override: bool = False
    """An agent's own file in the place of an inherited or reviewed one."""
    is_removal_offered: bool = False
    """Whether the layers below removed this pinned file and nobody has reviewed it."""

    @property
    def has_update(self) -> bool:
        """Whether a change of the layers below awaits a review."""
        return self.available_update is not None or self.is_removal_offered

    @property
    def version(self) -> int:
        """Version on the stack: the layer's, after the versions of the nearest layer.

        Greater than that of every file that this one replaced by a write to the stack.
        """
        return self.own_version + self.head.stack_version

    @property
    def path(self) -> Path:
        return self.head.path

    @property
    def file_id(self) -> str:
        """Id that stays when the file is moved; an override has its own."""
        return self.head.file_id(self.source)

    @property
    def blob(self) -> Blob:
        return self.entry.blob


class Workspace(Struct, frozen=True, gc=False):
    files: Mapping[Path, File]
    """Ordered by path."""

    def last_files(self, count: int) -> Workspace:
        """Return a workspace of the last `count` files by path."""
        return Workspace(dict(islice(self.files.items(), max(0, len(self.files) - count), None)))


def compose(layers: Layers, classes: FileClassRules | None = None) -> Workspace:
    """Compose the trees; the nearest that has a path decides it.

    With `classes`, each file gets its class.
    """
    paths = sorted({path for tree in layers for path in tree.heads})
    files = {path: file for path in paths if (file := resolve(path, layers))}
    if classes is None:
        return Workspace(files)
    return Workspace(
        {path: replace(file, file_class=classes.class_of(path)) for path, file in files.items()}
    )


def resolve(path: Path, layers: Layers) -> File | None:
    if len(layers) == 1:
        return _resolve_single(path, layers[0])
    for depth, tree in enumerate(layers):
        head = tree.heads.get(path)
        if head is None or head.entry is None:
            continue
        inherited = None if depth else upstream_blob(path, layers[1:])
        update = None if depth or inherited == head.entry.base else inherited
        own_version = layers[0].stack_version(path) if depth else 0
        version = own_version + head.stack_version
        tag = file_etag(version, tree.scope, single_layer=False, has_update=update is not None)
        return File(head, head.entry, tree.scope, depth, tag, update, own_version=own_version)
    return None


def _resolve_single(path: Path, tree: Tree) -> File | None:
    """Resolve a path in a stack of one layer."""
    head = tree.heads.get(path)
    if head is None or (entry := head.entry) is None:
        return None
    return File(head, entry, tree.scope, 0, file_etag(head.version, tree.scope, single_layer=True))


def upstream_blob(path: Path, layers: Layers) -> Blob | None:
    """Content of a path in these layers, if any."""
    tree = upstream_tree(path, layers)
    entry = tree and tree.entry(path)
    return entry.blob if entry else None


def upstream_tree(path: Path, layers: Layers) -> Tree | None:
    """Nearest of these layers that has a path."""
    for tree in layers:
        if tree.entry(path):
            return tree
    return None


def file_etag(version: int, scope: Scope, *, single_layer: bool, has_update: bool = False) -> str:
    """Quoted ETag of a file: version and layer, marked if an update is available."""
    if single_layer:
        return f'"v{version}"'
    return f'"v{version}.{scope.tag}{_UPDATE_MARK if has_update else ""}"'


def etag_without_update(tag: str) -> str:
    """ETag without the mark of an available update."""
    return tag.replace(_UPDATE_MARK, "")


def layers_etag(layers: Layers) -> str:
    """ETag of a workspace, computed from revisions only, so no file needs to be read."""
    scopes, revisions = [tree.scope for tree in layers], [tree.revision for tree in layers]
    return revisions_etag(tuple(scopes), tuple(revisions))


@lru_cache(maxsize=4096)
def revisions_etag(scopes: Stack, revisions: tuple[int, ...], *extra: str) -> str:
    layers = zip(scopes, revisions, strict=True)
    facts = [f"{scope.kind}/{scope.name}@{revision}" for scope, revision in layers]
    return f'"{hashlib.sha256(chr(0).join([*facts, *extra]).encode()).hexdigest()[:32]}"'
