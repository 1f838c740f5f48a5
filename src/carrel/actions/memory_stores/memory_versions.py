"""Versions of memories: lists, single ones, and their redaction."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from carrel.actions.files import version_redaction
from carrel.actions.files.version_redaction import VersionRedaction
from carrel.actions.memory_stores import stores
from carrel.actions.memory_stores.stored_memories import StoredMemory, load_memories, load_texts
from carrel.core.access import Actor
from carrel.core.errors import NotFound
from carrel.core.identifiers import Scope
from carrel.core.memory_stores.memory_versions import (
    MemoryVersion,
    VersionFilter,
    deleted_heads,
    memory_versions,
)
from carrel.core.memory_stores.object_ids import parse_version_id
from carrel.core.store.blob import Blob
from carrel.core.store.entry import Head, Version, revision_of_key, version_key
from carrel.ports import Ports

_BATCH_SIZE: Final = 1000
"""Versions that are read at once to find those that a filter selects."""
_AFTER_ALL: Final = 2**60


class VersionView(Struct, frozen=True):
    """A version with what is shown of it."""

    version: MemoryVersion
    content: str | None
    redaction: VersionRedaction | None
    """Set if it was redacted."""


class VersionPage(Struct, frozen=True):
    items: Sequence[VersionView]
    next: str | None
    """Key of the last version, if there are more."""


async def list_versions(  # noqa: PLR0913 - options of one page
    ports: Ports,
    actor: Actor,
    store: str,
    version_filter: VersionFilter,
    *,
    before: str | None,
    limit: int,
    with_content: bool,
) -> VersionPage:
    """List versions, newest first, before the key of one. Raises NotFound."""
    scope = await stores.load_scope(ports, actor, store)
    matching: list[MemoryVersion] = []
    batch = limit if version_filter == VersionFilter() else _BATCH_SIZE
    async for version in _iter_versions(ports, scope, before, batch):
        if version_filter.matches(version):
            matching.append(version)
        if len(matching) > limit or version_filter.is_complete_at(version):
            break
    page = matching[:limit]
    views = await _load_views(ports, scope, page, with_content=with_content)
    return VersionPage(views, page[-1].key if len(matching) > limit else None)


async def get(
    ports: Ports, actor: Actor, store: str, version: str, *, with_content: bool
) -> VersionView:
    """Get a version. Raises NotFound."""
    scope = await stores.load_scope(ports, actor, store)
    row = await find_version(ports, scope, version)
    [view] = await _load_views(ports, scope, [row], with_content=with_content)
    return view


async def redact(ports: Ports, actor: Actor, store: str, version: str) -> VersionView:
    """Remove the content of a version; a repeated redaction changes nothing. Raises NotFound.

    A current version is replaced by a new one first, whose text says that it was redacted.
    """
    scope = await stores.load_scope(ports, actor, store)
    head = (await find_version(ports, scope, version)).row.head
    if head.entry is not None:
        await version_redaction.redact_version(ports, actor, (scope,), head.path, head.version)
    return await get(ports, actor, store, version, with_content=False)


async def find_version(ports: Ports, scope: Scope, version: str) -> MemoryVersion:
    """Find a version by its id. Raises NotFound."""
    key = parse_version_id(version)
    for candidate in await load_revision(ports, scope, revision_of_key(key)):
        if candidate.key == key:
            return candidate
    raise NotFound(f"no such memory version: {version}")


async def load_revision(ports: Ports, scope: Scope, revision: int) -> Sequence[MemoryVersion]:
    """Load the versions that one commit wrote."""
    rows = await _read_revisions(ports, scope, revision + 1, limit=1)
    return await _derive(ports, scope, [row for row in rows if row.head.revision == revision])


async def load_written(ports: Ports, actor: Actor, store: str, revision: int) -> StoredMemory:
    """Load the memory that one commit wrote, as it was then. Raises NotFound."""
    scope = await stores.load_scope(ports, actor, store)
    for version in await load_revision(ports, scope, revision):
        head = version.row.head
        if head.entry is not None:
            [memory] = await load_memories(ports, scope, [head], with_content=False)
            return memory
    raise NotFound("the memory was deleted")


async def _iter_versions(
    ports: Ports, scope: Scope, before: str | None, batch: int
) -> AsyncIterator[MemoryVersion]:
    revision = _AFTER_ALL if before is None else revision_of_key(before) + 1
    while rows := await _read_revisions(ports, scope, revision, limit=batch):
        for version in await _derive(ports, scope, rows):
            if before is None or version.key < before:
                yield version
        revision = rows[-1].head.revision


async def _read_revisions(
    ports: Ports, scope: Scope, revision: int, *, limit: int
) -> list[Version]:
    """Read complete revisions below one, newest first; at least one unless there is none."""
    rows: list[Version] = []
    before = (revision, "", 0)
    while page := await ports.trees.latest_versions(scope, before=before, limit=limit + 1):
        rows += page
        last = rows[-1].head
        if len(page) <= limit:
            break
        if rows[0].head.revision != last.revision:
            return [row for row in rows if row.head.revision != last.revision]
        before = (last.revision, last.path.text, last.version)
    return rows


async def _derive(ports: Ports, scope: Scope, rows: Sequence[Version]) -> list[MemoryVersion]:
    deletions = list(deleted_heads(rows))
    requests = [(scope, head.path, head.version - 1) for head in deletions]
    removed = await ports.trees.versions(requests) if requests else ()
    deleted: Mapping[str, Head] = {
        version_key(scope, head): row.head
        for head, row in zip(deletions, removed, strict=True)
        if row is not None
    }
    return list(memory_versions(scope, rows, deleted))


async def _load_views(
    ports: Ports, scope: Scope, versions: Sequence[MemoryVersion], *, with_content: bool
) -> list[VersionView]:
    redacted = [version.row.head for version in versions if version.row.redacted]
    redactions = await version_redaction.load_redactions(ports, scope, redacted)
    texts = (
        await load_texts(ports, filter(None, map(_shown_blob, versions))) if with_content else {}
    )
    views = []
    for version in versions:
        redaction, blob = None, _shown_blob(version)
        if version.row.redacted:
            unknown = VersionRedaction("", version.row.head.at)
            redaction = redactions.get(version.key, unknown)
        views.append(VersionView(version, texts.get(blob) if blob else None, redaction))
    return views


def _shown_blob(version: MemoryVersion) -> Blob | None:
    entry = version.row.head.entry
    return None if entry is None or version.row.redacted else entry.blob
