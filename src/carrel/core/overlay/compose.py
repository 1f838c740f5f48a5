"""Layers in, workspace out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.core.identifiers import Path, Scope, Stack
from carrel.core.overlay.file_classes import FileClass, FileClassRules
from carrel.core.overlay.placeholders import PlaceholderValues
from carrel.core.store.tree import Blob, Entry, Head, Tree

Layers = Sequence[Tree]
"""Trees from nearest to farthest: agent, template, defaults; or a single one."""


_OFFERED: Final = "+"


class File(Struct, frozen=True, gc=False):
    """What a workspace shows at one path."""

    head: Head
    entry: Entry
    source: Scope
    depth: int
    etag: str
    """Changes with every write, with the layer that the file comes from, and as an update comes."""
    upstream: Blob | None = None
    """What the layers beneath now offer, where the nearest layer was based on something else."""
    file_class: FileClass = FileClass.LIVE
    origin: str = ""
    """What its source is called, where that says more than the kind of scope."""
    variables: PlaceholderValues | None = None
    """What its placeholders are filled with; None where it is served as it is stored."""

    @property
    def path(self) -> Path:
        return self.head.path

    @property
    def blob(self) -> Blob:
        return self.entry.blob


class Workspace(Struct, frozen=True, gc=False):
    files: Mapping[Path, File]
    """In order of path."""


def compose(layers: Layers, classes: FileClassRules | None = None) -> Workspace:
    """Lay the trees over one another; the nearest to speak of a path decides it.

    By these rules, where there are any, the files are told apart.
    """
    paths = sorted({path for tree in layers for path in tree.heads})
    found = {path: file for path in paths if (file := resolve(path, layers))}
    if classes is None:
        return Workspace(found)
    return Workspace(
        {path: replace(file, file_class=classes.class_of(path)) for path, file in found.items()}
    )


def resolve(path: Path, layers: Layers) -> File | None:
    if len(layers) == 1:
        return _resolve_single(path, layers[0])
    for depth, tree in enumerate(layers):
        head = tree.heads.get(path)
        if head is None or head.entry is None:
            continue
        beneath = None if depth else upstream_blob(path, layers[1:])
        upstream = None if depth or beneath == head.entry.base else beneath
        tag = file_etag(head.version, tree.scope, alone=False, newer=upstream)
        return File(head, head.entry, tree.scope, depth, tag, upstream)
    return None


def _resolve_single(path: Path, tree: Tree) -> File | None:
    """What there is where nothing lies beneath."""
    head = tree.heads.get(path)
    if head is None or (entry := head.entry) is None:
        return None
    return File(head, entry, tree.scope, 0, file_etag(head.version, tree.scope, alone=True))


def upstream_blob(path: Path, layers: Layers) -> Blob | None:
    """The content that these layers offer for a path, if any."""
    for tree in layers:
        if entry := tree.entry(path):
            return entry.blob
    return None


def file_etag(version: int, scope: Scope, *, alone: bool, newer: Blob | None = None) -> str:
    """The entity tag with its quotes: the version, and which layer it is a version of.

    Whether those beneath offer something newer is told with the file, and so by its tag.
    """
    if alone:
        return f'"v{version}"'
    return f'"v{version}.{scope.tag}{_OFFERED if newer else ""}"'


def etag_without_offer(tag: str) -> str:
    """What a tag says of the file itself, which is the same whatever is offered instead."""
    return tag.replace(_OFFERED, "")


def etag_of(layers: Layers) -> str:
    """Derived from the revisions alone: it can be compared before anything else is read."""
    scopes, revisions = [tree.scope for tree in layers], [tree.revision for tree in layers]
    return revisions_etag(tuple(scopes), tuple(revisions))


@lru_cache(maxsize=4096)
def revisions_etag(scopes: Stack, revisions: tuple[int, ...], *more: str) -> str:
    layers = zip(scopes, revisions, strict=True)
    facts = [f"{scope.kind}/{scope.name}@{revision}" for scope, revision in layers]
    return f'"{hashlib.sha256(chr(0).join([*facts, *more]).encode()).hexdigest()[:32]}"'
