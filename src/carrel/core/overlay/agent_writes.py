"""Plans changes of an agent's files: overrides, and the return to inherited or pinned content."""

from __future__ import annotations

from msgspec import Struct

from carrel.core.errors import Forbidden, NotFound
from carrel.core.identifiers import Path
from carrel.core.overlay.agent_resolution import (
    AgentFileResolver,
    agent_entry,
    is_own_file,
    is_pin,
    pinned_entry,
    resolve_as,
    upstream_layers,
)
from carrel.core.overlay.compose import File, Layers, upstream_blob
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.planned_writes import PlannedWrite, version_offset
from carrel.core.overlay.write_condition import UNCONDITIONAL, WriteCondition
from carrel.core.store.blob import Blob
from carrel.core.store.commit import ExpectPathFree, Write, expect_unchanged
from carrel.core.store.entry import MARKDOWN, Entry


class NewContent(Struct, frozen=True):
    """Content to write."""

    blob: Blob
    type: str = MARKDOWN
    accept_template_update: bool = False
    """The caller confirmed writing a pinned file."""


def plan_agent_put(
    layers: Layers,
    path: Path,
    content: NewContent,
    resolver: AgentFileResolver,
    condition: WriteCondition,
) -> PlannedWrite | None:
    """Plan a write of an agent's file; None if it already inherits this content.

    Raises WorkspaceConflict; Forbidden for a managed file, and for a pinned one without
    `accept_template_update`.
    """
    file_class = resolver.classes.check_path(path)
    if condition != UNCONDITIONAL:
        condition.check(path, resolver.resolve(path, layers))
    if file_class is FileClass.MANAGED:
        raise Forbidden(f"{path} is managed: it is written from the profile of the paired human")
    if file_class is FileClass.PINNED:
        if not content.accept_template_update:
            raise Forbidden(f"{path} is pinned: changing it here needs acceptTemplateUpdate: true")
        current = pinned_entry(path, layers)
        base = current.base if current else None
        return plan_write(layers, path, Entry(content.blob, base, content.type), file_class)
    inherited = upstream_blob(path, upstream_layers(layers))
    if inherited is not None and content.blob == inherited:
        override = layers[0].entry(path)
        return None if override is None else plan_write(layers, path, None, file_class)
    return plan_write(layers, path, Entry(content.blob, inherited, content.type), file_class)


def plan_agent_delete(
    layers: Layers, path: Path, resolver: AgentFileResolver, condition: WriteCondition
) -> PlannedWrite:
    """Plan a return to the inherited file; for a pinned file, to the reviewed content.

    Raises WorkspaceConflict, NotFound if there is no override, Forbidden for a managed file.
    """
    file_class = resolver.classes.class_of(path)
    condition.check(path, resolver.resolve(path, layers))
    if file_class is FileClass.MANAGED:
        raise Forbidden(f"{path} is managed: it is written from the profile of the paired human")
    pinned = file_class is FileClass.PINNED
    entry = pinned_entry(path, layers) if pinned else agent_entry(path, layers)
    if entry is None:
        raise NotFound(f"no override of {path} to delete")
    if not pinned or entry.base is None:
        return plan_write(layers, path, None, file_class)
    if entry.blob == entry.base:
        raise NotFound(f"{path} is not overridden")
    return plan_write(layers, path, Entry(entry.base, entry.base, entry.type), file_class)


def rewritten_entry(file: File, blob: Blob, layers: Layers) -> Entry | None:
    """Entry of the agent for a file that the server changes; None inherits it again.

    Updates that are available stay so. An override never equals its base, since it would be a pin.
    """
    upstream = upstream_blob(file.path, upstream_layers(layers))
    base = file.entry.base if is_own_file(file) else upstream
    if file.file_class is not FileClass.PINNED:
        if blob == upstream:
            return None
        base = None if blob == base else base
    return Entry(blob, base, file.entry.type)


def plan_write(
    layers: Layers, path: Path, entry: Entry | None, file_class: FileClass
) -> PlannedWrite:
    """Build the write with an expectation for every layer that was read.

    Only new paths are checked to be free. `file_class` is the class before the write.
    """
    return plan_checked_write(layers, agent_write(layers, path, entry, file_class))


def plan_checked_write(layers: Layers, write: Write) -> PlannedWrite:
    """Expect every layer as it was read, and a new path to be free."""
    path = write.path
    expects = tuple(expect_unchanged(tree, path) for tree in layers)
    is_new = write.entry is not None and pinned_entry(path, layers) is None
    path_checks = (ExpectPathFree(path, tuple(tree.scope for tree in layers)),) if is_new else ()
    return PlannedWrite(expects, write, path_checks)


def agent_write(layers: Layers, path: Path, entry: Entry | None, file_class: FileClass) -> Write:
    """Write of an agent's own file, whose version follows that of the file it replaces.

    A decision about the offered content stands while the reviewed content stays the same.
    """
    reviewed = None
    if file_class is FileClass.PINNED and _base(entry) == _base(pinned_entry(path, layers)):
        reviewed = layers[0].reviewed_offer(path)
    if entry is None:
        return Write(layers[0].scope, path, None, reviewed=reviewed)
    head = layers[0].heads.get(path)
    if file_class is FileClass.LIVE and head and head.entry and not is_pin(head.entry):
        offset = head.version_offset  # it replaces the agent's own file
    else:
        offset = version_offset(layers, path, resolve_as(file_class, path, layers))
    return Write(layers[0].scope, path, entry, offset, reviewed=reviewed)


def _base(entry: Entry | None) -> Blob | None:
    return entry.base if entry else None
