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
from carrel.core.files.diff import unified_diff
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay import agent_resolution
from carrel.core.overlay.compose import File, Layers, resolve
from carrel.core.overlay.file_classes import FileClass
from carrel.core.store.entry import Head
from carrel.ports import Ports

_INLINE_DIFF_BYTES = 64 * 1024
"""Larger contents are compared in a thread."""


async def list_versions(
    ports: Ports, stack: Stack, path: Path, *, before: int | None = None, limit: int = 100
) -> Page[StackVersion]:
    """List the versions of a file, newest first. Raises NotFound.

    Inherited versions are listed where the file is inherited, and before its first override.
    """
    return await (await load_versioned_path(ports, stack, path)).page(before, limit)


async def diff(ports: Ports, stack: Stack, path: Path, old: int | None, new: int | None) -> str:
    """Diff two versions, by default the newest and its predecessor; 0 is no file."""
    versioned = await load_versioned_path(ports, stack, path)
    newest = (await versioned.page(None, 1)).items[0].number
    last = newest if new is None else new
    if old is None:
        older = (await versioned.page(last, 1)).items if last else ()
        old = older[0].number if older else 0
    return await diff_contents(
        await _load_version(versioned, old), await _load_version(versioned, last), path
    )


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
