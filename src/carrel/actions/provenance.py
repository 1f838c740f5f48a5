"""Provenance of a run: its entries, prompt blocks, file versions, authors and reviews.

The number of queries does not depend on the number of files, entries or authors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from carrel.actions.accounts.audit import load_person_names
from carrel.actions.agent_access import authorize_agent_read
from carrel.actions.prompt.prompts import AssembledPrompt, load_run_prompt
from carrel.actions.runs import runs, snapshots
from carrel.actions.sessions import sessions
from carrel.core.access import Actor, Permission
from carrel.core.agents.private_access import PrivateResource
from carrel.core.errors import Conflict, NotFound
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay.compose import File, Layers, compose
from carrel.core.overlay.file_reviews import ReviewKind, find_origin, review_kind
from carrel.core.prompt.assembly import (
    DamagedPolicyFile,
)
from carrel.core.prompt.blocks import BlockStatus
from carrel.core.runs import Run
from carrel.core.sessions.session import Session, TranscriptEntry, TranscriptHit
from carrel.core.store.entry import Version
from carrel.core.store.record import KeyReference
from carrel.ports import Ports

MAX_ENTRIES = 500
"""Entries of one response."""
VersionKey = tuple[Scope, Path, int]


@dataclass(frozen=True, slots=True)
class FileReview:
    """Approval of a pinned file; author, time and reason are those of its version."""

    kind: ReviewKind
    key: KeyReference | None
    """Key through which the reviewer acted; None without one, or without an audit entry."""


@dataclass(frozen=True, slots=True)
class FileProvenance:
    """Version of a file that a run reads."""

    file: File
    version: Version | None
    """None if it was erased since."""
    in_prompt: bool
    review: FileReview | None
    origin: tuple[Scope, Version] | None
    """Version of a lower layer whose content was reviewed, if the run still saw it there."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """What a run was made of, and what it wrote."""

    run: Run | None
    entries: tuple[TranscriptHit, ...]
    has_more_entries: bool
    prompt: AssembledPrompt | None
    files: tuple[FileProvenance, ...]
    names: Mapping[str, str]
    """Names of people by id, if the caller may read people."""


async def load_run_provenance(ports: Ports, actor: Actor, id: str) -> Provenance:
    """Load what a run wrote and what it was made of. Raises NotFound or Forbidden."""
    actor.require(Permission.WORKSPACE_READ)
    run = await runs.get(ports, actor, id)
    hits: Sequence[TranscriptHit] = ()
    if run.scope.kind is ScopeKind.AGENT:
        await authorize_agent_read(ports, actor, PrivateResource.SESSIONS, run.scope.name)
        hits = await ports.sessions.read_of_run(
            run.tenant, run.scope.name, run.id, limit=MAX_ENTRIES + 1
        )
    return await _load(ports, actor, run, hits)


async def load_entry_provenance(
    ports: Ports, actor: Actor, agent: str, session_id: str, number: int
) -> tuple[Session, TranscriptEntry, Provenance]:
    """Load a session entry and what its run was made of. Raises NotFound or Forbidden.

    Without a run, or if the caller may not see it, there is no more than the entry.
    """
    actor.require(Permission.RUNS_READ)
    session, entry = await sessions.get_entry(ports, actor, agent, session_id, number)
    hits = (TranscriptHit(session.id, entry),)
    run = None
    if entry.run is not None:
        with suppress(NotFound):
            run = await runs.get(ports, actor, entry.run)
    if run is None or run.scope != Scope(session.tenant, ScopeKind.AGENT, session.agent):
        return session, entry, Provenance(None, hits, False, None, (), {})
    return session, entry, await _load(ports, actor, run, hits)


async def _load(ports: Ports, actor: Actor, run: Run, hits: Sequence[TranscriptHit]) -> Provenance:
    prompt: AssembledPrompt | None = None
    files: tuple[FileProvenance, ...] = ()
    if run.snapshot_kept:
        with suppress(Conflict, DamagedPolicyFile, NotFound):
            prompt = await load_run_prompt(ports, run)
        files = await _load_files(ports, run, prompt)
    authors = {run.author}
    for item in files:
        authors |= {item.version.author} if item.version else set()
        authors |= {item.origin[1].author} if item.origin else set()
    may_read_people = Permission.TENANT_READ in actor.permissions
    names = await load_person_names(ports, run.tenant, authors) if may_read_people else {}
    has_more = len(hits) > MAX_ENTRIES
    return Provenance(run, tuple(hits[:MAX_ENTRIES]), has_more, prompt, files, names)


async def _load_files(
    ports: Ports, run: Run, prompt: AssembledPrompt | None
) -> tuple[FileProvenance, ...]:
    layers = await ports.trees.read(run.workspace_layers)
    resolver = snapshots.render_context_of_run(run)
    workspace = compose(layers) if resolver is None else resolver.compose(layers)
    files = tuple(snapshots.visible_files(run, workspace).files.values())
    try:
        await snapshots.verify_snapshot_kept(ports, run)
    except NotFound:  # Released, or erased with its agent, meanwhile.
        return ()
    versions = await _load_versions(ports, files, layers)
    reviews = await _load_reviews(ports, run.tenant, files, versions)
    blocks = prompt.blocks if prompt else ()
    included = {block.path for block in blocks if block.kept is not BlockStatus.OMITTED}
    return tuple(
        FileProvenance(
            file,
            versions.get(_key(file)),
            file.path.text in included,
            reviews.get(_key(file)),
            _origin_version(file, layers, versions),
        )
        for file in files
    )


async def _load_versions(
    ports: Ports, files: Sequence[File], layers: Layers
) -> Mapping[VersionKey, Version]:
    """Load the versions of files and of the content that they were pinned from, in one query."""
    keys = [_key(file) for file in files]
    for file in files:
        if key := _origin_key(file, layers):
            keys.append(key)
    unique_keys = list(dict.fromkeys(keys))
    rows = await ports.trees.versions(unique_keys) if unique_keys else ()
    return {key: row for key, row in zip(unique_keys, rows, strict=True) if row}


async def _load_reviews(
    ports: Ports, tenant: str, files: Sequence[File], versions: Mapping[VersionKey, Version]
) -> Mapping[VersionKey, FileReview]:
    kinds = {
        _key(file): kind
        for file in files
        if (row := versions.get(_key(file))) and (kind := review_kind(file, row))
    }
    commits = [(versions[key].head.at, versions[key].author, versions[key].reason) for key in kinds]
    audited = await ports.records.find_audit_entries(tenant, commits) if commits else ()
    return {
        key: FileReview(kind, entry.key if entry else None)
        for (key, kind), entry in zip(kinds.items(), audited, strict=True)
    }


def _key(file: File) -> VersionKey:
    return file.source, file.path, file.head.version


def _origin_key(file: File, layers: Layers) -> VersionKey | None:
    if file.source.kind not in {ScopeKind.AGENT, ScopeKind.PINS}:
        return None
    origin = find_origin(file, layers)
    return origin and (layers[origin[0]].scope, file.path, origin[1].version)


def _origin_version(
    file: File, layers: Layers, versions: Mapping[VersionKey, Version]
) -> tuple[Scope, Version] | None:
    key = _origin_key(file, layers)
    row = key and versions.get(key)
    return (key[0], row) if key and row else None
