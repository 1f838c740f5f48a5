"""Full-text search in files that the caller may read, newest first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.agents import overview
from carrel.actions.blob_contents import load_contents
from carrel.actions.overlay import stacks
from carrel.core.access import Actor
from carrel.core.files.file_kinds import is_binary
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind, TimestampMs
from carrel.core.overlay.placeholders import PlaceholderValues, render_bytes
from carrel.core.search.passages import count_matches
from carrel.core.store.blob import Blob
from carrel.core.store.record import Record, RecordType
from carrel.ports import Ports

MAX_FILES: Final = 4_000
"""Distinct contents searched per query."""
MAX_BYTES: Final = 8 * 2**20
"""Total bytes searched per query."""
MAX_FILE_BYTES: Final = 2**20
_BATCH_SCOPES: Final = 500
_BATCH_BYTES: Final = 2**20


class FileCandidate(Struct, frozen=True):
    scope: Scope
    """Scope through which the caller reads the file."""
    path: Path
    blob: Blob
    updated_at: TimestampMs
    variables: PlaceholderValues | None = None
    """Placeholder values, if the file is rendered for an agent."""


class MatchedFile(Struct, frozen=True):
    """File whose name or content contains a term."""

    file: FileCandidate
    content: str


async def list_candidates(
    ports: Ports, actor: Actor, agents: Sequence[Record]
) -> list[FileCandidate]:
    """List readable files: an agent's workspace, or else every scope's own files."""
    if actor.agent is not None:
        return await _list_agent_files(ports, actor)
    files: list[FileCandidate] = []
    scopes = await _list_scopes(ports, actor, agents)
    for start in range(0, len(scopes), _BATCH_SCOPES):
        for tree in await ports.trees.read(scopes[start : start + _BATCH_SCOPES]):
            files += [
                FileCandidate(tree.scope, path, head.entry.blob, head.at)
                for path, head in tree.heads.items()
                if head.entry
            ]
    return _without_copies(files)


async def _list_agent_files(ports: Ports, actor: Actor) -> list[FileCandidate]:
    stack = await stacks.default_stack(ports, actor)
    [workspace] = await overview.load_workspaces(ports, [stack])
    files = workspace.files.values() if workspace else ()
    return [
        FileCandidate(stack[0], file.path, file.blob, file.head.at, file.variables)
        for file in files
    ]


async def _list_scopes(ports: Ports, actor: Actor, agents: Sequence[Record]) -> Sequence[Scope]:
    if actor.is_confined:
        return await stacks.default_stack(ports, actor)
    tenant = actor.tenant
    scopes = [Scope(tenant, ScopeKind.DEFAULTS, ""), actor.scope]
    for record_type, kind in (
        (RecordType.TEMPLATE, ScopeKind.TEMPLATE),
        (RecordType.WORKSPACE, ScopeKind.WORKSPACE),
    ):
        records = await ports.records.list(tenant, record_type, limit=_BATCH_SCOPES)
        scopes += [Scope(tenant, kind, record.id) for record in records]
    return [*scopes, *(Scope(tenant, ScopeKind.AGENT, agent.id) for agent in agents)]


def _without_copies(files: Sequence[FileCandidate]) -> list[FileCandidate]:
    """Omit agents' copies that equal the file of a template or the defaults."""
    shared = {
        (file.path, file.blob.digest)
        for file in files
        if file.scope.kind in {ScopeKind.DEFAULTS, ScopeKind.TEMPLATE}
    }
    return [
        file
        for file in files
        if file.scope.kind is not ScopeKind.AGENT or (file.path, file.blob.digest) not in shared
    ]


def select_files(
    terms: Sequence[str], files: Sequence[FileCandidate]
) -> tuple[list[FileCandidate], bool]:
    """Select files to search, name matches and newest first; also whether that is all."""
    ordered = sorted(
        files,
        key=lambda file: (count_matches(terms, file.path.text), file.updated_at, file.path.text),
        reverse=True,
    )
    digests: set[Digest] = set()
    selected: list[FileCandidate] = []
    size = 0
    for file in ordered:
        if file.blob.size > MAX_FILE_BYTES:
            continue
        if file.blob.digest not in digests:
            if len(digests) == MAX_FILES or size + file.blob.size > MAX_BYTES:
                continue
            digests.add(file.blob.digest)
            size += file.blob.size
        selected.append(file)
    return selected, len(selected) == len(files)


async def search(
    ports: Ports, terms: Sequence[str], selected: Sequence[FileCandidate]
) -> AsyncIterator[list[MatchedFile]]:
    """Yield batches of files that contain a term; unreadable files are skipped."""
    for batch in _batches(selected):
        contents = await load_contents(ports, {file.blob for file in batch})
        pairs = [(file, contents[file.blob.digest]) for file in batch]
        texts = [(file, content) for file, content in pairs if isinstance(content, bytes)]
        yield await asyncio.to_thread(_find_matches, terms, texts)


def _find_matches(
    terms: Sequence[str], files: Sequence[tuple[FileCandidate, bytes]]
) -> list[MatchedFile]:
    matches: list[MatchedFile] = []
    for file, content in files:
        served = content if file.variables is None else render_bytes(content, file.variables)
        text = "" if is_binary(served) else served.decode(errors="replace")
        if count_matches(terms, f"{file.path.text}\n{text}"):
            matches.append(MatchedFile(file, text))
    return matches


def _batches(files: Sequence[FileCandidate]) -> Iterator[list[FileCandidate]]:
    batch: list[FileCandidate] = []
    size = 0
    for file in files:
        if batch and size + file.blob.size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.blob.size
    if batch:
        yield batch
