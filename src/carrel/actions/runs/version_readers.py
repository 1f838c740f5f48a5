"""Runs that read one version of a file."""

from __future__ import annotations

from collections.abc import Sequence

from carrel.actions.agent_access import list_open
from carrel.actions.overlay.stack_versions import StackVersion, load_versioned_path
from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import Page, validate_cursor
from carrel.actions.runs.snapshots import can_see, render_context_of_run
from carrel.core.access import Actor, Permission
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.agent_resolution import FileSource
from carrel.core.overlay.compose import File, resolve
from carrel.core.overlay.file_classes import FileClass
from carrel.core.runs import Run
from carrel.core.store.tree import Tree
from carrel.ports import Ports

_PAGE_SIZE = 100


async def list_version_readers(  # noqa: PLR0913 - a place in a history and a page
    ports: Ports,
    actor: Actor,
    stack: Stack,
    path: Path,
    number: int,
    *,
    cursor: str = "",
    limit: int = 50,
) -> Page[Run]:
    """List runs that read a version, newest first; the number is the stack's.

    They read it from its layer, or a pinned copy of it. Omits those whose snapshot was released,
    and those of agents that the caller may not open. A page may be shorter than its limit and have
    a successor. Raises NotFound and Forbidden.
    """
    actor.require(Permission.RUNS_READ)
    version = await (await load_versioned_path(ports, stack, path)).find(number)
    is_pinned = await _is_pinned(ports, actor.tenant, path)
    end = None if is_pinned else await _end_revision(ports, version)
    revisions = version.row.head.revision, end
    scope = actor.scope if actor.is_confined else None

    async def load_page(before: str, size: int) -> Page[Run]:
        rows = await ports.runs.list_with_layer(
            version.layer, revisions, scope=scope, before=before, limit=size + 1
        )
        reading = await _select_readers(ports, rows[:size], path, version)
        return Page(reading, rows[size - 1].id if len(rows) > size else None)

    before = validate_cursor(cursor, "run")
    return await list_open(
        ports, actor, load_page, lambda run: run.agent, cursor=before, limit=limit
    )


async def _is_pinned(ports: Ports, tenant: str, path: Path) -> bool:
    """Return whether copies of the file are read that are older than its layer."""
    rules = await load_rules(ports, tenant)
    return rules.policy.classes.class_of(path) is FileClass.PINNED


async def _end_revision(ports: Ports, version: StackVersion) -> int | None:
    """Return the revision of the next version that is left; None for the newest."""
    head = version.row.head
    before: int | None = None
    following: int | None = None
    while True:
        rows = await ports.trees.history(version.layer, head.path, before=before, limit=_PAGE_SIZE)
        for row in rows:
            if row.head.version <= head.version:
                return following
            following = row.head.revision
        if len(rows) < _PAGE_SIZE:
            return following
        before = rows[-1].head.version


async def _select_readers(
    ports: Ports, runs: Sequence[Run], path: Path, version: StackVersion
) -> tuple[Run, ...]:
    """Select the runs in which no nearer layer has another text of the path, in one query."""
    layers = list(dict.fromkeys(layer for run in runs for layer in run.workspace_layers))
    trees = await ports.trees.read(layers, (path,)) if layers else ()
    by_layer = dict(zip(layers, trees, strict=True))

    def reads(run: Run) -> bool:
        own: list[Tree] = [by_layer[layer] for layer in run.workspace_layers]
        resolver = render_context_of_run(run)
        file = resolve(path, own) if resolver is None else resolver.resolve(path, own)
        return file is not None and _is_version(file, version) and can_see(run, path)

    return tuple(run for run in runs if reads(run))


def _is_version(file: File, version: StackVersion) -> bool:
    """Whether a file is the version itself, or a pin with its content."""
    head = version.row.head
    if file.source == version.layer:
        return file.head.version == head.version
    is_pin = file.source_label is FileSource.PIN
    return is_pin and head.entry is not None and file.blob == head.entry.blob
