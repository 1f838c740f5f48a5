"""Pinned files: status of an agent's pin and the changes made by a review."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from carrel.core.errors import NotFound, WorkspaceConflict
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.overlay.agent_resolution import (
    is_own_file,
    is_pin,
    pinned_entry,
    resolve_as,
    upstream_layers,
)
from carrel.core.overlay.agent_writes import plan_write
from carrel.core.overlay.compose import Layers, upstream_blob
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.planned_writes import PlannedWrite
from carrel.core.store.blob import Blob
from carrel.core.store.entry import MARKDOWN, Entry, Head


class PinStatus(Struct, frozen=True):
    """Status of one pinned file of an agent."""

    path: Path
    pinned: Blob | None
    """Reviewed content; None if never reviewed."""
    latest: Blob | None
    """Content that the layers below offer."""
    overridden: bool
    version: int
    latest_from: Scope | None = None
    """Layer that offers the latest content."""
    latest_head: Head | None = None
    """Head of the latest content."""

    @property
    def update_available(self) -> bool:
        return self.latest is not None and self.latest != self.pinned


def pin_status(path: Path, layers: Layers) -> PinStatus:
    file = resolve_as(FileClass.PINNED, path, layers)
    entry = file.entry if file else None
    offering = next((tree for tree in upstream_layers(layers) if tree.entry(path)), None)
    latest = offering.entry(path) if offering else None
    return PinStatus(
        path,
        pinned=entry.base if entry else None,
        latest=latest.blob if latest else None,
        overridden=entry is not None and entry.blob != entry.base,
        version=file.version if file else layers[0].stack_version(path),
        latest_from=offering.scope if offering else None,
        latest_head=offering.heads[path] if offering else None,
    )


def plan_accept(layers: Layers, path: Path, reviewed: Digest) -> PlannedWrite | None:
    """Accept the upstream content as reviewed and drop an override.

    None if nothing changes. Raises NotFound if there is no upstream file, WorkspaceConflict if it
    changed since the review.
    """
    latest = upstream_blob(path, upstream_layers(layers))
    if latest is None:
        raise NotFound(f"no upstream version of {path} to accept")
    if latest.digest != reviewed:
        version = pin_status(path, layers).version
        raise WorkspaceConflict(f"{path} changed since it was reviewed; review it again", version)
    entry = pinned_entry(path, layers)
    if entry is not None and entry.blob == entry.base == latest:
        return None
    accepted = Entry(latest, latest, _upstream_type(layers, path))
    return plan_write(layers, path, accepted, FileClass.PINNED)


def plan_pin(layers: Layers, path: Path, file_class: FileClass) -> PlannedWrite | None:
    """Keep the current content when a file becomes pinned; `file_class` is its class before.

    None if nothing is to be written.
    """
    latest = upstream_blob(path, upstream_layers(layers))
    served = resolve_as(file_class, path, layers)
    entry = served.entry if served and is_own_file(served) else None
    if entry is not None:
        if entry.base == latest:
            return None
        return plan_write(layers, path, _with_base(entry, latest), file_class)
    previous = layers[0].entry(path)
    if latest is None:
        return plan_write(layers, path, None, file_class) if previous else None
    if previous is not None and previous.blob == previous.base == latest:
        return None
    pin = Entry(latest, latest, _upstream_type(layers, path))
    return plan_write(layers, path, pin, file_class)


def plan_unpin(layers: Layers, path: Path) -> PlannedWrite | None:
    """Keep the content when a file becomes live and no layer below has it; else None."""
    entry = pinned_entry(path, layers)
    if (
        entry is None
        or not is_pin(entry)
        or upstream_blob(path, upstream_layers(layers)) is not None
    ):
        return None
    return plan_write(layers, path, Entry(entry.blob, None, entry.type), FileClass.PINNED)


def resurfacing_pins(layers: Layers, paths: Iterable[Path]) -> Sequence[Path]:
    """Paths that are absent now and would show an old pin if they became pinned."""
    agent_tree, pins = layers[0], layers[1] if len(layers) > 1 else None
    if pins is None or pins.scope.kind is not ScopeKind.PINS:
        return ()
    lower_layers = upstream_layers(layers)
    absent = [
        path
        for path in paths
        if agent_tree.entry(path) is None and not upstream_blob(path, lower_layers)
    ]
    return [path for path in absent if pins.entry(path)]


def plan_roll_back(layers: Layers, path: Path, earlier: Head) -> PlannedWrite:
    """Return to the reviewed content of an earlier version.

    Raises NotFound if it has none.
    """
    base = earlier.entry.base if earlier.entry else None
    if base is None:
        raise NotFound(f"version {earlier.version} of {path} was never reviewed")
    assert earlier.entry
    return plan_write(layers, path, Entry(base, base, earlier.entry.type), FileClass.PINNED)


def _with_base(entry: Entry, base: Blob | None) -> Entry:
    return Entry(entry.blob, base, entry.type)


def _upstream_type(layers: Layers, path: Path) -> str:
    entries = (tree.entry(path) for tree in upstream_layers(layers))
    return next((entry.type for entry in entries if entry), MARKDOWN)
