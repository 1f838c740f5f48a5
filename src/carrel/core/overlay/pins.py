"""Pinned files: status of an agent's pin and the changes made by a review."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from carrel.core.errors import Conflict, NotFound, WorkspaceConflict
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.overlay.agent_resolution import (
    is_own_file,
    is_pin,
    offered_digest,
    pinned_entry,
    resolve_as,
    upstream_layers,
)
from carrel.core.overlay.agent_writes import agent_write, plan_checked_write, plan_write
from carrel.core.overlay.compose import Layers, upstream_blob
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.planned_writes import PlannedWrite
from carrel.core.overlay.write_condition import WriteCondition
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Write
from carrel.core.store.entry import MARKDOWN, OFFERED_REMOVAL, Entry, Head


class PinStatus(Struct, frozen=True):
    """Status of one pinned file of an agent."""

    path: Path
    pinned: Blob | None
    """Reviewed content; None if never reviewed."""
    latest: Blob | None
    """Content that the layers below offer; None for a pinned file offers its removal."""
    overridden: bool
    version: int
    latest_from: Scope | None = None
    """Layer that offers the latest content."""
    latest_head: Head | None = None
    """Head of the latest content."""
    served: Blob | None = None
    """Content that the agent is served: the override, else the pinned one."""
    reviewed: str | None = None
    """Offer that a person reviewed and did not take: see Head."""

    @property
    def update_available(self) -> bool:
        return self.latest != self.pinned and not self.is_declined

    @property
    def is_declined(self) -> bool:
        """Whether the offered content, or the removal, was declined."""
        is_offered = self.latest != self.pinned
        return is_offered and self.reviewed == offered_digest(self.latest)

    @property
    def is_removal(self) -> bool:
        """Whether the layers below no longer have the file."""
        return self.latest is None and self.pinned is not None


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
        served=entry.blob if entry else None,
        reviewed=layers[0].reviewed_offer(path),
    )


def plan_accept(layers: Layers, path: Path, reviewed: Digest | None) -> PlannedWrite | None:
    """Accept what the layers below offer, as reviewed, and drop an override.

    `reviewed` None accepts that the file was removed. None if nothing changes. Raises NotFound if
    there is nothing to accept, WorkspaceConflict if the offer changed since the review.
    """
    latest = _require_offer(layers, path, reviewed)
    entry = pinned_entry(path, layers)
    if latest is None:
        write = Write(layers[0].scope, path, None, reviewed=OFFERED_REMOVAL)
        return None if entry is None else plan_checked_write(layers, write)
    if entry is not None and entry.blob == entry.base == latest:
        return None
    accepted = Entry(latest, latest, _upstream_type(layers, path))
    return plan_write(layers, path, accepted, FileClass.PINNED)


def plan_decline(layers: Layers, path: Path, reviewed: Digest | None) -> PlannedWrite | None:
    """Keep what is served, and no longer offer the reviewed content.

    `reviewed` None declines that the file is removed. None if it is declined already. Raises
    NotFound if nothing is offered, WorkspaceConflict if the offer changed since the review.
    """
    latest = _require_offer(layers, path, reviewed)
    pin = pin_status(path, layers)
    if pin.is_declined:
        return None
    if not pin.update_available:
        raise NotFound(f"no update of {path} is offered")
    write = agent_write(layers, path, pinned_entry(path, layers), FileClass.PINNED)
    return plan_checked_write(layers, replace(write, reviewed=offered_digest(latest)))


def plan_merge(
    layers: Layers, path: Path, reviewed: Digest, merged: Blob, condition: WriteCondition
) -> PlannedWrite:
    """Replace an override by its merge with the offered content, which becomes the pinned one.

    Raises NotFound if nothing is offered, Conflict without an override, WorkspaceConflict if the
    offer or the override changed since they were read.
    """
    latest = _require_offer(layers, path, reviewed)
    file = resolve_as(FileClass.PINNED, path, layers)
    condition.check(path, file)
    pin = pin_status(path, layers)
    if pin.latest == pin.pinned:
        raise NotFound(f"no update of {path} is offered")
    if file is None or not pin.overridden:
        raise Conflict(f"{path} has no override to merge; accept the update")
    return plan_write(layers, path, Entry(merged, latest, file.entry.type), FileClass.PINNED)


def plan_undo(layers: Layers, path: Path, earlier: Head | None) -> PlannedWrite:
    """Return to an earlier version as it was, its override and declined offer included.

    Without one the agent has had no version of its own, nor a pin.
    """
    entry = earlier.entry if earlier else None
    write = agent_write(layers, path, entry, FileClass.PINNED)
    reviewed = earlier.reviewed if earlier else None
    if entry is None and reviewed is None and pinned_entry(path, layers) is None:
        reviewed = ""
    return plan_checked_write(layers, replace(write, reviewed=reviewed))


def _require_offer(layers: Layers, path: Path, reviewed: Digest | None) -> Blob | None:
    """Content that is offered; None for the removal of a pinned file."""
    latest = upstream_blob(path, upstream_layers(layers))
    entry = pinned_entry(path, layers)
    is_removed = entry is None and layers[0].reviewed_offer(path) == OFFERED_REMOVAL
    is_pinned = entry is not None and entry.base is not None
    if latest is None and not (is_pinned or is_removed):
        raise NotFound(f"no upstream version of {path} to review")
    if (latest.digest if latest else None) != reviewed:
        version = pin_status(path, layers).version
        raise WorkspaceConflict(f"{path} changed since it was reviewed; review it again", version)
    return latest


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
