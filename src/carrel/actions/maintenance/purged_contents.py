"""Removes one text from the contents of all versions of a tenant."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.actions.blob_contents import load_contents
from carrel.actions.maintenance.purged_offers import find_declines, replaced_offer
from carrel.core.access import Actor
from carrel.core.errors import ValidationError
from carrel.core.files.file_kinds import BINARY_TYPE, file_kind, typed_as
from carrel.core.identifiers import Digest, Path
from carrel.core.redaction.text_purge import MARKER, TextPurge
from carrel.core.store.blob import Blob
from carrel.core.store.commit import Applied, Commit, Expect, Write
from carrel.core.store.entry import Entry
from carrel.ports import CorruptContent, Ports
from carrel.ports.erasure import StoredVersion, VersionReplacement

REASON: Final = "purge a text"
_BATCH_SIZE: Final = 100
_MAX_LOADED_BYTES: Final = 4 * 2**20
"""Contents in memory at once; a larger one is read in parts."""
_KEEP_ALL_VERSIONS: Final = 2**31
_MAX_PATH_ATTEMPTS: Final = 100

VersionPosition = tuple[int, str, int]


class VersionStep(Struct, frozen=True):
    position: VersionPosition | None
    """None at the end."""
    examined: int
    versions: int
    """Versions with the text."""
    paths: int
    """Paths with the text."""


async def purge_versions(
    ports: Ports,
    actor: Actor,
    purge: TextPurge,
    after: VersionPosition | None,
    *,
    dry_run: bool,
) -> VersionStep:
    """Remove the text from a batch of versions.

    A head gets a new version first, as any change of a file, so that caches and followers see it.
    """
    batch = await ports.erasure.list_versions(actor.tenant, after=after, limit=_BATCH_SIZE)
    named = [item for item in batch if _has_path_with_text(purge, item)]
    contents = await _replace_contents(ports, purge, batch, dry_run=dry_run)
    affected = [item for item in batch if item not in named and _is_affected(purge, item, contents)]
    if not dry_run:
        await _replace_heads(ports, actor, purge, affected, contents)
        replacements = [_replacement(purge, item, contents) for item in affected]
        await ports.erasure.replace_versions(replacements, ports.clock.now())
        for item in named:
            if item.is_head:
                await _move_path(ports, actor, purge, item, contents)
    position = batch[-1].position if len(batch) == _BATCH_SIZE else None
    return VersionStep(position, len(batch), len(affected), len(named))


def _has_path_with_text(purge: TextPurge, item: StoredVersion) -> bool:
    return purge.is_in(item.version.head.path.text.encode())


def _blobs(item: StoredVersion) -> Sequence[Blob]:
    entry = item.version.head.entry
    return [blob for blob in (entry.blob, entry.base) if blob] if entry else []


def _is_affected(purge: TextPurge, item: StoredVersion, contents: Mapping[Digest, Blob]) -> bool:
    entry = item.version.head.entry
    has_text = entry is not None and purge.is_in(entry.type.encode())
    return has_text or any(blob.digest in contents for blob in _blobs(item))


def _replaced_entry(
    purge: TextPurge, item: StoredVersion, contents: Mapping[Digest, Blob]
) -> Entry:
    """Entry without the text; a media type with it becomes that of any file."""
    entry = item.version.head.entry
    assert entry is not None
    base = entry.base and contents.get(entry.base.digest, entry.base)
    has_text = purge.is_in(entry.type.encode())
    type = typed_as(file_kind(entry.type), BINARY_TYPE) if has_text else entry.type
    return replace(entry, blob=contents.get(entry.blob.digest, entry.blob), base=base, type=type)


def _replacement(
    purge: TextPurge, item: StoredVersion, contents: Mapping[Digest, Blob]
) -> VersionReplacement:
    head, entry = item.version.head, _replaced_entry(purge, item, contents)
    return VersionReplacement(item.scope, head.path, head.version, entry, item.version.redacted)


async def _replace_heads(
    ports: Ports,
    actor: Actor,
    purge: TextPurge,
    affected: Sequence[StoredVersion],
    contents: Mapping[Digest, Blob],
) -> None:
    """Commit a new version of each affected head; one that changed meanwhile is left.

    So do the agents for which one of these contents was declined: it is not offered again.
    """
    heads = [item for item in affected if item.is_head]
    own = {(item.scope, item.version.head.path) for item in heads}
    writes = [
        (write, version)
        for write, version in await find_declines(ports, affected, contents)
        if (write.scope, write.path) not in own
    ]
    for item in heads:
        head, entry = item.version.head, _replaced_entry(purge, item, contents)
        reviewed = replaced_offer(head.reviewed, contents)
        writes.append((Write(item.scope, head.path, entry, reviewed=reviewed), head.version))
    commits = [
        _commit(ports, actor, [write], [Expect(write.scope, write.path, version)])
        for write, version in writes
    ]
    await ports.trees.commit(commits)


def _commit(
    ports: Ports, actor: Actor, writes: Sequence[Write], expects: Sequence[Expect]
) -> Commit:
    return Commit(
        tuple(writes),
        actor.name,
        REASON,
        ports.clock.now(),
        expects=tuple(expects),
        max_versions=_KEEP_ALL_VERSIONS,
        key=actor.key_reference,
    )


async def _move_path(
    ports: Ports,
    actor: Actor,
    purge: TextPurge,
    item: StoredVersion,
    contents: Mapping[Digest, Blob],
) -> None:
    """Move a file whose path has the text, and erase the path with its history."""
    head = item.version.head
    for target in _paths_without_text(purge, head.path) if head.entry else ():
        writes = [
            Write(item.scope, head.path, None),
            Write(
                item.scope,
                target,
                _replaced_entry(purge, item, contents),
                file_id=head.file_id(item.scope),
            ),
        ]
        expects = [
            Expect(item.scope, head.path, head.version),
            Expect(item.scope, target, live=False),
        ]
        [outcome] = await ports.trees.commit([_commit(ports, actor, writes, expects)])
        if isinstance(outcome, Applied):
            break
    await ports.erasure.erase_paths([(item.scope, head.path)])


def _paths_without_text(purge: TextPurge, path: Path) -> Iterator[Path]:
    with suppress(ValidationError):
        yield Path(purge.replace_text(path.text))
    for number in range(1, _MAX_PATH_ATTEMPTS):
        yield Path(f"{MARKER}-{number}")


async def _replace_contents(
    ports: Ports, purge: TextPurge, batch: Sequence[StoredVersion], *, dry_run: bool
) -> Mapping[Digest, Blob]:
    """Store the contents of a batch without the text; return new blobs by old digest."""
    blobs = {blob.digest: blob for item in batch for blob in _blobs(item)}
    replaced: dict[Digest, Blob] = {}
    for group in _group_by_size(list(blobs.values())):
        if group[0].size > _MAX_LOADED_BYTES:
            replaced |= await _replace_large(ports, purge, group[0], dry_run=dry_run)
            continue
        loaded = await load_contents(ports, group)
        changed = await asyncio.to_thread(_replace_all, purge, loaded)
        new = [blobs[old] for old in changed]
        if not dry_run:
            new = list(await ports.blobs.put(list(changed.values())))
        replaced |= dict(zip(changed, new, strict=True))
    return replaced


def _replace_all(
    purge: TextPurge, contents: Mapping[Digest, bytes | CorruptContent]
) -> dict[Digest, bytes]:
    return {
        digest: purge.replace(content)
        for digest, content in contents.items()
        if isinstance(content, bytes) and purge.is_in(content)
    }


def _group_by_size(blobs: Sequence[Blob]) -> Iterator[Sequence[Blob]]:
    group: list[Blob] = []
    size = 0
    for blob in sorted(blobs, key=lambda blob: blob.size):
        if group and size + blob.size > _MAX_LOADED_BYTES:
            yield group
            group, size = [], 0
        group.append(blob)
        size += blob.size
    if group:
        yield group


async def _replace_large(
    ports: Ports, purge: TextPurge, blob: Blob, *, dry_run: bool
) -> Mapping[Digest, Blob]:
    try:
        if not await _is_in_parts(purge, ports.blobs.read_parts(blob)):
            return {}
    except CorruptContent:
        return {}
    if dry_run:
        return {blob.digest: blob}
    loop, parts = asyncio.get_running_loop(), ports.blobs.read_parts(blob)

    def read_parts() -> Iterator[bytes]:
        while (part := asyncio.run_coroutine_threadsafe(_next_part(parts), loop).result()) != b"":
            yield part

    return {blob.digest: await ports.blobs.put_parts(purge.replace_parts(read_parts()))}


async def _is_in_parts(purge: TextPurge, parts: AsyncIterator[bytes]) -> bool:
    previous = b""
    async for part in parts:
        window = previous + part
        if await asyncio.to_thread(purge.is_in, window):
            return True
        previous = window[-purge.longest :]
    return False


async def _next_part(parts: AsyncIterator[bytes]) -> bytes:
    async for part in parts:
        if part:
            return part
    return b""
