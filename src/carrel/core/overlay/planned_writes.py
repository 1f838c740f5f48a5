"""Plans the writes of files: what to write and what the commit expects."""

from __future__ import annotations

from msgspec import Struct

from carrel.core.errors import Busy, Conflict, NotFound
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay.compose import File, Layers, resolve, upstream_blob
from carrel.core.overlay.write_condition import UNCONDITIONAL, WriteCondition
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Expect, ExpectPathFree, PathOccupied, Write
from carrel.core.store.entry import MARKDOWN, Entry, FileAttributes
from carrel.core.store.tree import Tree


class PlannedWrite(Struct, frozen=True, gc=False):
    """A write with expectations for everything the decision read."""

    expects: tuple[Expect, ...]
    write: Write
    path_checks: tuple[ExpectPathFree, ...] = ()
    """Checks that a possibly new path is free."""


def path_occupied_error(occupied: PathOccupied) -> Conflict | Busy:
    """Refusal for a path that is not free; Busy if the decision must be repeated."""
    path, occupant = occupied.check.path, occupied.occupant
    if occupied.is_by_variant:
        return Busy(f"{path} collides on some file systems with {occupant}, a new file")
    if occupant in path.parents:
        return Conflict(f"{path} cannot be a file: {occupant} is a file", path=occupant.text)
    if occupant == path:
        return Conflict(f"{path} cannot be a file: it is a directory", path=occupant.text)
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
    if len(layers) == 1 and condition == UNCONDITIONAL:
        return _plan_single_put(layers[0], path, blob, type)
    current = resolve(path, layers)
    condition.check(path, current)
    current_type = current.entry.type if current else MARKDOWN
    attributes = _kept_attributes(layers[0].entry(path))
    entry = Entry(blob, upstream_blob(path, layers[1:]), type or current_type, attributes)
    checks = new_path_checks(path, tuple([tree.scope for tree in layers]))
    write = Write(layers[0].scope, path, entry, version_offset(layers, path, current))
    return PlannedWrite(_expectations(layers, path, condition), write, checks)


def _plan_single_put(tree: Tree, path: Path, blob: Blob, type: str | None) -> PlannedWrite:
    """Plan a put without a condition in a stack of one layer: nothing is resolved."""
    head = tree.heads.get(path)
    current = head.entry if head else None
    current_type = current.type if current else MARKDOWN
    entry = Entry(blob, None, type or current_type, _kept_attributes(current))
    write = Write(tree.scope, path, entry, head.version_offset if head else 0)
    return PlannedWrite((), write, new_path_checks(path, (tree.scope,)))


def _kept_attributes(current: Entry | None) -> FileAttributes | None:
    """Attributes of a file that gets a new content: its mode, and a new time."""
    attributes = current.attributes if current else None
    return FileAttributes(attributes.mode) if attributes and attributes.mode is not None else None


def version_offset(layers: Layers, path: Path, replaced: File | None) -> int:
    """Offset with which the next version of the nearest layer follows the file it replaces.

    Without such a file, it follows those that the layers below no longer have.
    """
    nearest, *lower = layers
    if replaced is None:
        deleted = max((tree.version(path) for tree in lower), default=0)
        return nearest.stack_version(path) - nearest.version(path) + deleted
    return replaced.version - nearest.version(path)


def plan_put_without_read(
    scope: Scope, path: Path, blob: Blob, condition: WriteCondition, type: str = MARKDOWN
) -> PlannedWrite | None:
    """Plan a single-layer put without reading: the commit checks the condition.

    None if the condition cannot be expressed as an expected version, and in a shared workspace,
    where a file keeps its mode.
    """
    if scope.is_shared_workspace:
        return None
    expect = condition.as_single_layer_expect(scope, path)
    if expect is None:
        return None
    write = Write(scope, path, Entry(blob, None, type))
    return PlannedWrite(expect, write, new_path_checks(path, (scope,)))


def new_path_checks(path: Path, scopes: Stack) -> tuple[ExpectPathFree, ...]:
    """RFC 0059 workspaces are flat: a path is a name and needs no check.

    Shared workspaces are materialized on disk for commands, so their paths must not nest in files.
    """
    scope = scopes[0]
    is_flat = scope.kind is ScopeKind.WORKSPACE and not scope.is_shared_workspace
    return () if is_flat else (ExpectPathFree(path, scopes),)


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
