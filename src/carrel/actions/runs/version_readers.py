"""Runs that read one version of a file."""

from __future__ import annotations

from collections.abc import Sequence

from carrel.actions.agent_access import list_open
from carrel.actions.overlay.stack_versions import StackVersion, load_versioned_path
from carrel.actions.records import Page, validate_cursor
from carrel.actions.runs.snapshots import can_see, render_context_of_run
from carrel.core.access import Actor, Permission
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.compose import resolve
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
    """List runs that read a version from its layer, newest first; the number is the stack's.

    Omits those whose snapshot was released, and those of agents that the caller may not open. A
    page may be shorter than its limit and have a successor. Raises NotFound and Forbidden.
    """
    actor.require(Permission.RUNS_READ)
    version = await (await load_versioned_path(ports, stack, path)).find(number)
    revisions = version.row.head.revision, await _end_revision(ports, version)
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
    """Select the runs in which no nearer layer has the path, in one query."""
    layers = list(dict.fromkeys(layer for run in runs for layer in run.workspace_layers))
    trees = await ports.trees.read(layers, (path,)) if layers else ()
    by_layer = dict(zip(layers, trees, strict=True))

    def reads(run: Run) -> bool:
        own: list[Tree] = [by_layer[layer] for layer in run.workspace_layers]
        resolver = render_context_of_run(run)
        file = resolve(path, own) if resolver is None else resolver.resolve(path, own)
        is_same = file is not None and file.head.version == version.row.head.version
        return is_same and file is not None and file.source == version.layer and can_see(run, path)

    return tuple(run for run in runs if reads(run))
