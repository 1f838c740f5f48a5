"""History of a file: versions, diffs, and why a layer's version is served."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from carrel.actions.overlay.agent_layers import load_resolver
from carrel.actions.overlay.stack_versions import (
    StackVersion,
    VersionedPath,
    load_versioned_path,
)
from carrel.actions.records import Page
from carrel.core.errors import NotFound, ValidationError
from carrel.core.files.diff import unified_diff
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay import agent_resolution
from carrel.core.overlay.compose import File, Layers, resolve
from carrel.core.overlay.file_classes import FileClass
from carrel.core.store.entry import Head, TransferKind
from carrel.ports import Ports

_HISTORY_LIMIT = 1000
_MAX_MOVES = 100
"""Moves that the history of a file follows."""
_INLINE_DIFF_BYTES = 64 * 1024
"""Larger contents are compared in a thread."""


async def list_versions(
    ports: Ports, stack: Stack, path: Path, *, before: int | None = None, limit: int = 100
) -> Page[StackVersion]:
    """List the versions of a file, newest first. Raises NotFound.

    Inherited versions are listed where the file is inherited, and before its first override.
    """
    return await (await load_versioned_path(ports, stack, path)).page(before, limit)


async def follow_versions(
    ports: Ports, stack: Stack, path: Path, *, cursor: str | None = None, limit: int = 100
) -> Page[StackVersion]:
    """List the versions of a file, newest first, then those at the paths it was moved from.

    Raises NotFound, and ValidationError for a cursor of another list.
    """
    position, before = _parse_cursor(cursor)
    parts: list[tuple[Path, int | None]] = [(path, None)]
    parts += await _earlier_paths(ports, stack, path) if position else ()
    if position >= len(parts):
        raise ValidationError("the cursor is not of this history")
    rows: list[StackVersion] = []
    while True:
        part, newest = parts[position]
        ceiling = min((n for n in (before, newest) if n is not None), default=None)
        page = await _page(ports, stack, part, ceiling, limit - len(rows))
        rows += page.items
        if page.next is not None:
            return Page(tuple(rows), f"{position}.{page.next}" if position else page.next)
        if position == 0 and len(parts) == 1:
            parts += await _earlier_paths(ports, stack, path)
        position, before = position + 1, None
        if position == len(parts):
            break
        if len(rows) == limit:
            start = parts[position][1]
            return Page(tuple(rows), f"{position}.{start}")
    if not rows:
        raise NotFound(f"{path} has no history here")
    return Page(tuple(rows), None)


def _parse_cursor(cursor: str | None) -> tuple[int, int | None]:
    """Position of a path among those of the file, and the version to list before."""
    if cursor is None:
        return 0, None
    position, _, before = cursor.rpartition(".")
    return int(position or 0), int(before)


async def _page(
    ports: Ports, stack: Stack, path: Path, before: int | None, limit: int
) -> Page[StackVersion]:
    try:
        return await list_versions(ports, stack, path, before=before, limit=limit)
    except NotFound:
        return Page((), None)


async def _earlier_paths(ports: Ports, stack: Stack, path: Path) -> list[tuple[Path, int | None]]:
    """Paths that a file was moved from, newest first, each with the version to list before.

    A path that the file came back to is listed once, with its newest versions.
    """
    visited = {path}
    earlier: list[tuple[Path, int | None]] = []
    before: int | None = None
    for _ in range(_MAX_MOVES):
        rows = await ports.trees.history(stack[0], path, limit=_HISTORY_LIMIT)
        sources = (
            row.source
            for row in rows
            if row.source and (before is None or row.head.stack_version < before)
        )
        move = next((source for source in sources if source.kind is TransferKind.MOVE), None)
        if move is None:
            break
        path, before = Path(move.path), move.version + 1
        if path not in visited:
            visited.add(path)
            earlier.append((path, before))
    return earlier


async def diff(ports: Ports, stack: Stack, path: Path, old: int | None, new: int | None) -> str:
    """Diff two versions, by default the newest and its predecessor; 0 is no file."""
    versioned = await load_versioned_path(ports, stack, path)
    newest = (await versioned.page(None, 1)).items[0].number
    last = newest if new is None else new
    if old is None:
        before, old = await _load_predecessor(versioned, last)
        if old is None:
            return await diff_contents(before, await _load_version(versioned, last), path)
    return await diff_contents(
        await _load_version(versioned, old), await _load_version(versioned, last), path
    )


async def _load_predecessor(
    versioned: VersionedPath, number: int
) -> tuple[bytes | None, int | None]:
    """The content that a version was moved or copied from, or else the number before it."""
    source = (await versioned.find(number)).row.source if number else None
    if source is not None:
        origin = await load_versioned_path(versioned.ports, versioned.stack, Path(source.path))
        try:
            return await _load_version(origin, source.version), None
        except NotFound:  # It was pruned.
            pass
    older = (await versioned.page(number, 1)).items if number else ()
    return None, older[0].number if older else 0


async def diff_contents(before: bytes | None, after: bytes | None, path: Path) -> str:
    if max(len(before or b""), len(after or b"")) <= _INLINE_DIFF_BYTES:
        return unified_diff(before, after, path.text)
    return await asyncio.to_thread(unified_diff, before, after, path.text)


async def _load_version(versioned: VersionedPath, number: int) -> bytes | None:
    """Load the stored content of a version; None for version 0 or a deletion."""
    if number == 0:
        return None
    entry = (await versioned.find(number)).row.head.entry
    if entry is None:
        return None
    return (await versioned.ports.blobs.get([entry.blob]))[entry.blob.digest]


@dataclass(frozen=True, slots=True)
class LayerEntry:
    """One layer's entry at a path, None if it has none."""

    scope: Scope
    head: Head | None


@dataclass(frozen=True, slots=True)
class Explanation:
    layers: tuple[LayerEntry, ...]
    winner: File | None
    reason: str


async def explain(ports: Ports, stack: Stack, path: Path) -> Explanation:
    """List every layer's entry at a path and explain which one is served."""
    layers = await ports.trees.read(stack, (path,))
    resolver = await load_resolver(ports, stack)
    visible_layers = [
        tree for tree in layers if tree.scope.kind is not ScopeKind.PINS or path in tree.heads
    ]
    entries = tuple(LayerEntry(tree.scope, tree.heads.get(path)) for tree in visible_layers)
    winner = resolve(path, layers) if resolver is None else resolver.resolve(path, layers)
    if resolver is not None and resolver.classes.class_of(path) is not FileClass.LIVE:
        return Explanation(
            entries, winner, agent_resolution.explain_resolution(path, layers, winner)
        )
    return Explanation(
        entries, winner, _explain_nearest(agent_resolution.layers_without_pins(layers), winner)
    )


def _explain_nearest(layers: Layers, winner: File | None) -> str:
    if winner is None:
        return "no layer has it"
    layers_without = [tree.scope.kind for tree in layers[: winner.depth]]
    verb = "has" if len(layers_without) == 1 else "have"
    cause = (
        f"{' and '.join(layers_without)} {verb} no such file"
        if layers_without
        else "it is the nearest layer"
    )
    return f"{winner.source.kind} wins, since {cause}"
