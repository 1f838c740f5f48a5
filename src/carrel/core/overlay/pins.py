"""A pinned file: where an agent stands with it, and what a review does to that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from carrel.core.errors import NotFound, WorkspaceConflict
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.overlay.agent_files import (
    held_entry,
    held_head,
    is_pin,
    own_entry,
    plan_write,
    upstream,
)
from carrel.core.overlay.compose import Layers, upstream_blob
from carrel.core.overlay.edit import PlannedWrite
from carrel.core.store.tree import MARKDOWN, Blob, Entry, Head


class PinStatus(Struct, frozen=True):
    """Where an agent stands with one pinned file."""

    path: Path
    pinned: Blob | None
    """What was reviewed; None where nothing was yet."""
    latest: Blob | None
    """What the layers beneath offer now."""
    overridden: bool
    version: int
    latest_from: Scope | None = None
    """The layer that offers it."""
    latest_head: Head | None = None
    """And what that says of it."""

    @property
    def update_available(self) -> bool:
        return self.latest is not None and self.latest != self.pinned


def pin_of(path: Path, layers: Layers) -> PinStatus:
    _, head = held_head(path, layers)
    entry = head.entry if head else None
    offering = next((tree for tree in upstream(layers) if tree.entry(path)), None)
    latest = offering.entry(path) if offering else None
    return PinStatus(
        path,
        pinned=entry.base if entry else None,
        latest=latest.blob if latest else None,
        overridden=entry is not None and entry.blob != entry.base,
        version=head.version if head else 0,
        latest_from=offering.scope if offering else None,
        latest_head=offering.heads[path] if offering else None,
    )


def accept(layers: Layers, path: Path, reviewed: Digest) -> PlannedWrite | None:
    """Take what lies beneath as reviewed, and drop what the agent had instead.

    None where that is so already. Raises Missing where there is nothing to take, and Stale where it
    is no longer what was reviewed.
    """
    latest = upstream_blob(path, upstream(layers))
    if latest is None:
        raise NotFound(f"there is no {path} to accept")
    if latest.digest != reviewed:
        version = layers[0].version(path)
        raise WorkspaceConflict(
            f"{path} has changed since it was reviewed: review it again", version
        )
    entry = held_entry(path, layers)
    if entry is not None and entry.blob == entry.base == latest:
        return None
    return plan_write(layers, path, Entry(latest, latest, _type_beneath(layers, path)))


def pin(layers: Layers, path: Path) -> PlannedWrite | None:
    """Hold an agent at what it has now, as its file becomes pinned; None if there is nothing."""
    latest = upstream_blob(path, upstream(layers))
    entry = own_entry(path, layers)
    if entry is not None:
        return None if entry.base == latest else plan_write(layers, path, _rebased(entry, latest))
    stale = layers[0].entry(path)
    if latest is None:
        return plan_write(layers, path, None) if stale else None
    if stale is not None and stale.blob == latest:
        return None
    return plan_write(layers, path, Entry(latest, latest, _type_beneath(layers, path)))


def unpin(layers: Layers, path: Path) -> PlannedWrite | None:
    """Leave an agent what it has as its file becomes live, where there is nothing to follow."""
    entry = held_entry(path, layers)
    if entry is None or not is_pin(entry) or upstream_blob(path, upstream(layers)) is not None:
        return None
    return plan_write(layers, path, Entry(entry.blob, None, entry.type))


def resurfacing_pins(layers: Layers, paths: Iterable[Path]) -> Sequence[Path]:
    """Paths of which an agent has nothing now, and would have an old pin if they were pinned."""
    own, pins = layers[0], layers[1] if len(layers) > 1 else None
    if pins is None or pins.scope.kind is not ScopeKind.PINS:
        return ()
    beneath = upstream(layers)
    absent = [
        path for path in paths if own.entry(path) is None and not upstream_blob(path, beneath)
    ]
    return [path for path in absent if pins.entry(path)]


def roll_back(layers: Layers, path: Path, earlier: Head) -> PlannedWrite:
    """Go back to what an earlier version of the agent's entry was reviewed to be."""
    base = earlier.entry.base if earlier.entry else None
    if base is None:
        raise NotFound(f"version {earlier.version} of {path} was never reviewed")
    assert earlier.entry
    return plan_write(layers, path, Entry(base, base, earlier.entry.type))


def _rebased(entry: Entry, base: Blob | None) -> Entry:
    return Entry(entry.blob, base, entry.type)


def _type_beneath(layers: Layers, path: Path) -> str:
    entries = (tree.entry(path) for tree in upstream(layers))
    return next((entry.type for entry in entries if entry), MARKDOWN)
