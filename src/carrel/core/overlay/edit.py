"""Deciding a write: from what the caller saw and asks, to what the commit must expect and write."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from carrel.core.errors import Conflict, NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay.compose import File, Layers, etag_without_offer, resolve, upstream_blob
from carrel.core.store.tree import MARKDOWN, Blob, Entry, Expect, PathFree, PathOccupied, Write

_ALONE: Final = re.compile(r'"v([1-9][0-9]{0,17})"')
"""The tag of a file in a stack of one: see compose.file_etag."""


class WriteCondition(Struct, frozen=True, gc=False):
    """What must be true of the file as the caller last saw it, composed, for the write to go on."""

    etags: frozenset[str] | None = None
    """One of these must be current; with ``*`` among them, any that exists will do.

    Current is the file itself: an update that has come since is no reason to refuse.
    """
    absent: bool = False

    def check(self, path: Path, current: File | None) -> None:
        version = current.head.version if current else 0
        if self.absent and current:
            raise WorkspaceConflict(f"{path} already exists", version)
        if self.etags is None:
            return
        if current is None:
            raise WorkspaceConflict(f"{path} does not exist", version)
        if not {"*", etag_without_offer(current.etag)} & set(map(etag_without_offer, self.etags)):
            raise WorkspaceConflict(f"{path} is not as it was read", version)

    def as_single_layer_expect(self, scope: Scope, path: Path) -> tuple[Expect, ...] | None:
        """What it comes to where a file has no other layers; None if only reading can tell."""
        if self.etags is None:
            return (Expect(scope, path, live=False),) if self.absent else ()
        if self.absent or len(self.etags) != 1:
            return None
        [tag] = self.etags
        version = _ALONE.fullmatch(tag)
        return (Expect(scope, path, int(version[1]), live=True),) if version else None


UNCONDITIONAL = WriteCondition()


def parse_condition(if_match: str | None, if_none_match: str | None) -> WriteCondition:
    """A Condition from HTTP's two headers, as they stand on a write."""
    if if_none_match is not None and if_none_match.strip() != "*":
        raise ValidationError("on a write, If-None-Match may only be *")
    etags = None if if_match is None else entity_tags(if_match)
    return WriteCondition(etags, absent=if_none_match is not None)


def entity_tags(header: str) -> frozenset[str]:
    """The tags of an If-Match or If-None-Match list, quotes kept; none of ours holds a comma."""
    return frozenset([tag.strip() for tag in header.split(",") if tag.strip()])


class PlannedWrite(Struct, frozen=True, gc=False):
    """A decision: everything it read becomes an expectation, so a retry is the only race left."""

    expects: tuple[Expect, ...]
    write: Write
    rooms: tuple[PathFree, ...] = ()
    """Where the path may be new: that it is neither a directory nor within a file."""


def path_occupied_error(blocked: PathOccupied) -> Conflict:
    """What whoever wanted to write there is told."""
    path, author = blocked.room.path, blocked.by
    if author in path.parents:
        return Conflict(
            f"{path} cannot be a file: {author} is a file, and no directory", path=author.text
        )
    return Conflict(f"{path} cannot be a file: it is the directory of {author}", path=author.text)


def put(
    layers: Layers,
    path: Path,
    blob: Blob,
    condition: WriteCondition = UNCONDITIONAL,
    type: str | None = None,
) -> PlannedWrite:
    """Write content at the nearest layer, leaving those beneath untouched."""
    current = resolve(path, layers)
    condition.check(path, current)
    kept = current.entry.type if current else MARKDOWN
    entry = Entry(blob, upstream_blob(path, layers[1:]), type or kept)
    rooms = _path_checks(path, tuple(tree.scope for tree in layers))
    return PlannedWrite(_seen(layers, path, condition), Write(layers[0].scope, path, entry), rooms)


def put_without_read(
    scope: Scope, path: Path, blob: Blob, condition: WriteCondition, type: str = MARKDOWN
) -> PlannedWrite | None:
    """The same where there is one layer, without looking at it first: the commit does.

    None where the condition cannot be told by a version alone.
    """
    expect = condition.as_single_layer_expect(scope, path)
    if expect is None:
        return None
    write = Write(scope, path, Entry(blob, None, type))
    return PlannedWrite(expect, write, _path_checks(path, (scope,)))


def _path_checks(path: Path, scopes: Stack) -> tuple[PathFree, ...]:
    """A workspace is RFC 0059's, in which a path is a name with slashes and nothing is nested.

    One that agents share is put on a disk for commands, and so has directories.
    """
    own = scopes[0]
    flat = own.kind is ScopeKind.WORKSPACE and not own.name.startswith("ws_")
    return () if flat else (PathFree(path, scopes),)


def delete(layers: Layers, path: Path, condition: WriteCondition = UNCONDITIONAL) -> PlannedWrite:
    """Forget what the nearest layer says, so that the file is gone, or inherited again."""
    current = resolve(path, layers)
    if current is None and condition == UNCONDITIONAL:
        raise NotFound(f"there is no {path}")
    condition.check(path, current)
    if current is None or current.depth > 0:
        raise NotFound(f"there is no {path} here to delete")
    seen = _seen(layers, path, condition) or (Expect(layers[0].scope, path, live=True),)
    return PlannedWrite(seen, Write(layers[0].scope, path, None))


def _seen(layers: Layers, path: Path, condition: WriteCondition) -> tuple[Expect, ...]:
    """What must still hold: on one layer only what was asked for, on several all that was read."""
    if len(layers) > 1:
        return tuple(Expect(tree.scope, path, tree.version(path)) for tree in layers)
    if condition.absent:
        return (Expect(layers[0].scope, path, live=False),)
    if condition.etags is None:
        return ()
    return (Expect(layers[0].scope, path, layers[0].version(path)),)
