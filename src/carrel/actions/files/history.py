"""What became of a file: its versions, what changed between two, and why one layer won."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from carrel.actions.overlay.agent_layers import render_context_of
from carrel.actions.records import Page
from carrel.core.errors import NotFound
from carrel.core.files.diff import unified
from carrel.core.identifiers import Path, Scope, ScopeKind, Stack
from carrel.core.overlay import agent_files
from carrel.core.overlay.compose import File, Layers, resolve
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.layers import own_scopes
from carrel.core.store.tree import Head, Version
from carrel.ports import Ports

_AT_ONCE = 64 * 1024
"""Bytes up to which comparing takes a moment; more is compared in a thread."""


async def page(
    ports: Ports, stack: Stack, path: Path, *, before: int | None = None, limit: int = 100
) -> Page[Version]:
    """What the nearest layer said of a path, newest first. Raises Missing."""
    for scope in own_scopes(stack):
        found = await ports.trees.history(scope, path, before=before, limit=limit + 1)
        if found or before is not None:
            break
    if not found and before is None:
        raise NotFound(f"nothing was ever said of {path} here")
    more = len(found) > limit
    return Page(found[:limit], str(found[limit - 1].head.version) if more else None)


async def diff(ports: Ports, stack: Stack, path: Path, old: int | None, new: int | None) -> str:
    """From one version to another: by default, what the newest changed. 0 is before the first."""
    [tree] = await ports.trees.read(stack[:1], (path,))
    newest = tree.version(path)
    if newest == 0:
        raise NotFound(f"nothing was ever said of {path} here")
    last = newest if new is None else new
    first = max(0, last - 1) if old is None else old
    return await compared(
        await _text(ports, stack, path, first), await _text(ports, stack, path, last), path
    )


async def compared(before: bytes | None, after: bytes | None, path: Path) -> str:
    if max(len(before or b""), len(after or b"")) <= _AT_ONCE:
        return unified(before, after, path.text)
    return await asyncio.to_thread(unified, before, after, path.text)


async def _text(ports: Ports, stack: Stack, path: Path, number: int) -> bytes | None:
    """The bytes of a version, None where it is a tombstone or comes before the first."""
    if number == 0:
        return None
    [found] = await ports.trees.versions([(stack[0], path, number)])
    if found is None:
        raise NotFound(f"there is no version {number} of {path}")
    if found.head.entry is None:
        return None
    blob = found.head.entry.blob
    return (await ports.blobs.get([blob]))[blob.digest]


@dataclass(frozen=True, slots=True)
class LayerEntry:
    """One layer's say about a path: None where it is silent."""

    scope: Scope
    head: Head | None


@dataclass(frozen=True, slots=True)
class Explanation:
    layers: tuple[LayerEntry, ...]
    winner: File | None
    why: str


async def explain(ports: Ports, stack: Stack, path: Path) -> Explanation:
    """What every layer says of a path, and why the one that is shown won."""
    layers = await ports.trees.read(stack, (path,))
    render_context = await render_context_of(ports, stack)
    heard = [tree for tree in layers if tree.scope.kind is not ScopeKind.PINS or path in tree.heads]
    said = tuple(LayerEntry(tree.scope, tree.heads.get(path)) for tree in heard)
    winner = (
        resolve(path, layers) if render_context is None else render_context.resolve(path, layers)
    )
    if render_context is not None and render_context.classes.class_of(path) is not FileClass.LIVE:
        return Explanation(said, winner, agent_files.explain_resolution(path, layers, winner))
    return Explanation(said, winner, _nearest(agent_files.layers_without_pins(layers), winner))


def _nearest(layers: Layers, winner: File | None) -> str:
    if winner is None:
        return "no layer has it"
    silent = [tree.scope.kind for tree in layers[: winner.depth]]
    says = "says" if len(silent) == 1 else "say"
    because = (
        f"{' and '.join(silent)} {says} nothing of it" if silent else "it is the nearest layer"
    )
    return f"{winner.source.kind} decides, since {because}"
