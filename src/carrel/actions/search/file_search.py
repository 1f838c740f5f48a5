"""The files in which something is looked for: those that a caller may read, the newest first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.agents import overview
from carrel.actions.blob_contents import contents_of
from carrel.actions.overlay import stacks
from carrel.core.access import Actor
from carrel.core.files.file_kinds import is_binary
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind, TimestampMs
from carrel.core.overlay.placeholders import PlaceholderValues, render_bytes
from carrel.core.search.snippets import fits
from carrel.core.store.record import Record, RecordType
from carrel.core.store.tree import Blob
from carrel.ports import Ports

MOST_FILES: Final = 4_000
"""Different contents that are looked into."""
MOST_BYTES: Final = 8 * 2**20
"""Of them together."""
LARGEST: Final = 2**20
_SCOPES: Final = 500
_BATCH: Final = 2**20


class FileCandidate(Struct, frozen=True):
    scope: Scope
    """Through which the caller reads it."""
    path: Path
    blob: Blob
    at: TimestampMs
    variables: PlaceholderValues | None = None
    """What its placeholders are filled with, where it is read as an agent sees it."""


class MatchedFile(Struct, frozen=True):
    """A file that has all that was looked for, in its name or in its content."""

    file: FileCandidate
    content: str


async def candidates(ports: Ports, actor: Actor, agents: Sequence[Record]) -> list[FileCandidate]:
    """What the caller may read: of one agent all that it sees, else what each scope itself says."""
    if actor.agent is not None:
        return await _seen(ports, actor)
    found: list[FileCandidate] = []
    scopes = await _scopes(ports, actor, agents)
    for at in range(0, len(scopes), _SCOPES):
        for tree in await ports.trees.read(scopes[at : at + _SCOPES]):
            found += [
                FileCandidate(tree.scope, path, head.entry.blob, head.at)
                for path, head in tree.heads.items()
                if head.entry
            ]
    return _without_copies(found)


async def _seen(ports: Ports, actor: Actor) -> list[FileCandidate]:
    stack = await stacks.default_stack(ports, actor)
    [workspace] = await overview.workspaces(ports, [stack])
    files = workspace.files.values() if workspace else ()
    return [
        FileCandidate(stack[0], one.path, one.blob, one.head.at, one.variables) for one in files
    ]


async def _scopes(ports: Ports, actor: Actor, agents: Sequence[Record]) -> Sequence[Scope]:
    if actor.is_confined:
        return await stacks.default_stack(ports, actor)
    tenant = actor.tenant
    found = [Scope(tenant, ScopeKind.DEFAULTS, ""), actor.scope]
    for record_type, kind in (
        (RecordType.TEMPLATE, ScopeKind.TEMPLATE),
        (RecordType.WORKSPACE, ScopeKind.WORKSPACE),
    ):
        some = await ports.records.list(tenant, record_type, limit=_SCOPES)
        found += [Scope(tenant, kind, one.id) for one in some]
    return [*found, *(Scope(tenant, ScopeKind.AGENT, agent.id) for agent in agents)]


def _without_copies(found: Sequence[FileCandidate]) -> list[FileCandidate]:
    """An agent's copy of what its template or the defaults say is found there."""
    shared = {
        (one.path, one.blob.digest)
        for one in found
        if one.scope.kind in {ScopeKind.DEFAULTS, ScopeKind.TEMPLATE}
    }
    return [
        one
        for one in found
        if one.scope.kind is not ScopeKind.AGENT or (one.path, one.blob.digest) not in shared
    ]


def chosen(
    wanted: Sequence[str], found: Sequence[FileCandidate]
) -> tuple[list[FileCandidate], bool]:
    """Those that are looked into, called so first and newest first, and whether that is all."""
    order = sorted(
        found, key=lambda one: (fits(wanted, one.path.text), one.at, one.path.text), reverse=True
    )
    counted: set[Digest] = set()
    taken: list[FileCandidate] = []
    size = 0
    for one in order:
        if one.blob.size > LARGEST:
            continue
        if one.blob.digest not in counted:
            if len(counted) == MOST_FILES or size + one.blob.size > MOST_BYTES:
                continue
            counted.add(one.blob.digest)
            size += one.blob.size
        taken.append(one)
    return taken, len(taken) == len(found)


async def search(
    ports: Ports, wanted: Sequence[str], taken: Sequence[FileCandidate]
) -> AsyncIterator[list[MatchedFile]]:
    """Those of them that have every word, some at a time. What cannot be had is not found."""
    for batch in _batches(taken):
        contents = await contents_of(ports, {one.blob for one in batch})
        pairs = [(one, contents[one.blob.digest]) for one in batch]
        texts = [(one, content) for one, content in pairs if isinstance(content, bytes)]
        yield await asyncio.to_thread(_fitting, wanted, texts)


def _fitting(
    wanted: Sequence[str], files: Sequence[tuple[FileCandidate, bytes]]
) -> list[MatchedFile]:
    found: list[MatchedFile] = []
    for one, content in files:
        served = content if one.variables is None else render_bytes(content, one.variables)
        text = "" if is_binary(served) else served.decode(errors="replace")
        if fits(wanted, f"{one.path.text}\n{text}"):
            found.append(MatchedFile(one, text))
    return found


def _batches(taken: Sequence[FileCandidate]) -> Iterator[list[FileCandidate]]:
    batch: list[FileCandidate] = []
    size = 0
    for one in taken:
        if batch and size + one.blob.size > _BATCH:
            yield batch
            batch, size = [], 0
        batch.append(one)
        size += one.blob.size
    if batch:
        yield batch
