"""Plans writes: preconditions and expectations of a put or delete."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from carrel.core.errors import Conflict, NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay.compose import File, Layers, etag_without_update, resolve, upstream_blob
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Expect, PathFree, PathOccupied, Write
from carrel.core.store.entry import MARKDOWN, Entry

_SINGLE_LAYER_ETAG: Final = re.compile(r'"v([1-9][0-9]{0,17})"')
"""ETag of a file in a stack of one layer: see compose.file_etag."""


class WriteCondition(Struct, frozen=True, gc=False):
    """Precondition on the composed file that a write requires."""

    etags: frozenset[str] | None = None
    """One of these must match; `*` matches any existing file.

    An available update does not make an ETag stale.
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
        if not {"*", etag_without_update(current.etag)} & set(map(etag_without_update, self.etags)):
            raise WorkspaceConflict(f"{path} changed since it was read", version)

    def as_single_layer_expect(self, scope: Scope, path: Path) -> tuple[Expect, ...] | None:
        """The condition as expectations on one layer; None if the file must be read first."""
        if self.etags is None:
            return (Expect(scope, path, live=False),) if self.absent else ()
        if self.absent or len(self.etags) != 1:
            return None
        [tag] = self.etags
        version = _SINGLE_LAYER_ETAG.fullmatch(tag)
        return (Expect(scope, path, int(version[1]), live=True),) if version else None


UNCONDITIONAL = WriteCondition()


def parse_condition(if_match: str | None, if_none_match: str | None) -> WriteCondition:
    """Parse the If-Match and If-None-Match headers of a write."""
    if if_none_match is not None and if_none_match.strip() != "*":
        raise ValidationError("on a write, If-None-Match may only be *")
    etags = None if if_match is None else parse_entity_tags(if_match)
    return WriteCondition(etags, absent=if_none_match is not None)


def parse_entity_tags(header: str) -> frozenset[str]:
    """Tags of an If-Match or If-None-Match list, with quotes.

    Our tags contain no comma.
    """
    return frozenset([tag.strip() for tag in header.split(",") if tag.strip()])


class PlannedWrite(Struct, frozen=True, gc=False):
    """A write with expectations for everything the decision read."""

    expects: tuple[Expect, ...]
    write: Write
    path_checks: tuple[PathFree, ...] = ()
    """Checks that a possibly new path is free."""


def path_occupied_error(occupied: PathOccupied) -> Conflict:
    """Refusal for a path that is not free."""
    path, occupant = occupied.check.path, occupied.occupant
    if occupant in path.parents:
        return Conflict(f"{path} cannot be a file: {occupant} is a file", path=occupant.text)
    return Conflict(
        f"{path} cannot be a file: it is a directory that contains {occupant}", path=occupant.text
    )


def plan_put(
    layers: Layers,
    path: Path,
    blob: Blob,
    condition: WriteCondition = UNCONDITIONAL,
    type: str | None = None,
) -> PlannedWrite:
    """Write content at the nearest layer; layers below are unchanged."""
    current = resolve(path, layers)
    condition.check(path, current)
    current_type = current.entry.type if current else MARKDOWN
    entry = Entry(blob, upstream_blob(path, layers[1:]), type or current_type)
    path_checks = _path_checks(path, tuple(tree.scope for tree in layers))
    return PlannedWrite(
        _expectations(layers, path, condition), Write(layers[0].scope, path, entry), path_checks
    )


def plan_put_without_read(
    scope: Scope, path: Path, blob: Blob, condition: WriteCondition, type: str = MARKDOWN
) -> PlannedWrite | None:
    """Plan a single-layer put without reading: the commit checks the condition.

    None if the condition cannot be expressed as an expected version.
    """
    expect = condition.as_single_layer_expect(scope, path)
    if expect is None:
        return None
    write = Write(scope, path, Entry(blob, None, type))
    return PlannedWrite(expect, write, _path_checks(path, (scope,)))


def _path_checks(path: Path, scopes: Stack) -> tuple[PathFree, ...]:
    """RFC 0059 workspaces are flat: a path is a name and needs no check.

    Shared workspaces are materialized on disk for commands, so their paths must not nest in files.
    """
    scope = scopes[0]
    is_flat = scope.kind is ScopeKind.WORKSPACE and not scope.is_shared_workspace
    return () if is_flat else (PathFree(path, scopes),)


def plan_delete(
    layers: Layers, path: Path, condition: WriteCondition = UNCONDITIONAL
) -> PlannedWrite:
    """Delete at the nearest layer: the file is gone or inherited again."""
    current = resolve(path, layers)
    if current is None and condition == UNCONDITIONAL:
        raise NotFound(f"no such file: {path}")
    condition.check(path, current)
    if current is None or current.depth > 0:
        raise NotFound(f"no such file in this layer: {path}")
    expects = _expectations(layers, path, condition) or (Expect(layers[0].scope, path, live=True),)
    return PlannedWrite(expects, Write(layers[0].scope, path, None))


def _expectations(layers: Layers, path: Path, condition: WriteCondition) -> tuple[Expect, ...]:
    """For one layer only the requested condition.

    For several, everything that was read.
    """
    if len(layers) > 1:
        return tuple(Expect(tree.scope, path, tree.version(path)) for tree in layers)
    if condition.absent:
        return (Expect(layers[0].scope, path, live=False),)
    if condition.etags is None:
        return ()
    return (Expect(layers[0].scope, path, layers[0].version(path)),)
