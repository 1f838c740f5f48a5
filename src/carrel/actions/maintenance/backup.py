"""Backup and restore of a whole store as one file, verified when written.

A backup holds everything but the vault key: secrets stay sealed, and a restored store needs the
key they were sealed with.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path as File
from typing import IO, Any, Final

from carrel.actions.maintenance.archive import ArchiveReader, ArchiveWriter, Manifest
from carrel.actions.maintenance.integrity import check_external_blobs, check_rows, check_store
from carrel.actions.progress import ProgressCallback, ProgressCounter, no_progress
from carrel.core.errors import Conflict, NotFound
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.identifiers import digest as digest_of
from carrel.core.maintenance.findings import FindingList, Severity
from carrel.core.maintenance.tables import TABLES
from carrel.core.version import VERSION
from carrel.ports import CorruptContent, LargeBlobStore, StoreMaintenance, StoreSnapshot

Rows = Sequence[Sequence[Any]]
_UNLIMITED_GRACE_MS: Final = 2**62
"""Grace that never ends: a backup may hold unreferenced content, as the store did."""


@dataclass(frozen=True, slots=True)
class BackupResult:
    file: File
    size: int
    manifest: Manifest


async def create_backup(
    maintenance: StoreMaintenance,
    objects: LargeBlobStore | None,
    file: File,
    *,
    now: TimestampMs,
    vault_key: str | None = None,
    on_progress: ProgressCallback = no_progress,
) -> BackupResult:
    """Write the current state of the store to a new file, concurrently with writers.

    The file gets its name only once it is complete, durable and verified. Raises Conflict if the
    file exists, and CorruptContent if the store or the written file is damaged.
    """
    _require_new(file)
    with _temporary_file(file) as (temporary, handle), closing(ArchiveWriter(handle)) as writer:
        async with maintenance.snapshot() as snapshot:
            external = await _pack_tables(
                writer, snapshot, ProgressCounter(on_progress, "writing rows")
            )
        await _pack_objects(
            writer, external, objects, ProgressCounter(on_progress, "writing objects")
        )
        manifest = writer.finish(VERSION, now, await maintenance.migrations(), vault_key)
        handle.flush()
        os.fsync(handle.fileno())
        await verify(temporary, on_progress=on_progress)
        size = _publish(temporary, file)
    return BackupResult(file, size, manifest)


async def verify(file: File, *, on_progress: ProgressCallback = no_progress) -> Manifest:
    """Read a backup completely and check it. Raises CorruptContent or ValidationError."""
    with _open_archive(file) as archive:
        findings = await check_archive(archive, on_progress=on_progress)
        if not findings.is_clean:
            first = next(
                finding for finding in findings.items if finding.severity is Severity.ERROR
            )
            raise CorruptContent(
                f"the backup is inconsistent: {first.subject}: {first.text}"
                f" ({findings.errors} errors in all)"
            )
        return archive.manifest


async def examine_backup(file: File, *, on_progress: ProgressCallback = no_progress) -> FindingList:
    """Check a backup like a store. Raises CorruptContent or ValidationError."""
    with _open_archive(file) as archive:
        return await check_archive(archive, on_progress=on_progress)


async def restore(
    file: File,
    maintenance: StoreMaintenance,
    objects: LargeBlobStore | None,
    *,
    now: TimestampMs,
    on_progress: ProgressCallback = no_progress,
) -> tuple[Manifest, FindingList]:
    """Fill an empty store from a backup: all or nothing, verified before and after.

    Large blobs are stored first and are harmless if the rows never follow. Without a large blob
    store they go into the rows. Raises Conflict if the store is not empty.
    """
    manifest = await verify(file, on_progress=on_progress)
    await _require_empty(maintenance)
    with _open_archive(file) as archive:
        if archive.manifest != manifest:
            raise CorruptContent("the backup changed while it was being read")
        if objects is not None:
            await _unpack_objects(
                archive, objects, ProgressCounter(on_progress, "restoring objects")
            )
        rows = _unpack_rows(
            archive, objects is None, ProgressCounter(on_progress, "restoring rows")
        )
        await maintenance.load(rows)
    return manifest, await check_store(
        maintenance, objects, now=now, grace=_UNLIMITED_GRACE_MS, on_progress=on_progress
    )


async def check_archive(
    archive: ArchiveReader, *, on_progress: ProgressCallback = no_progress
) -> FindingList:
    rows, objects = (
        ProgressCounter(on_progress, "verifying rows"),
        ProgressCounter(on_progress, "verifying objects"),
    )
    check = await check_rows(archive, archive.manifest.created, _UNLIMITED_GRACE_MS, rows)
    findings = check.finish()
    await check_external_blobs(findings, check.external_blobs, archive.read_object, objects)
    for digest in archive.objects:
        if bytes.fromhex(digest.removeprefix("sha256:")) not in check.external_blobs:
            findings.error(f"object {digest}", "nothing in the backup refers to it")
    await archive.check()
    return findings


async def _pack_tables(
    writer: ArchiveWriter, snapshot: StoreSnapshot, progress: ProgressCounter
) -> dict[Digest, None]:
    """Write all tables; return the digests of external blobs in order of appearance."""
    external: dict[Digest, None] = {}

    async def collect_digests(table: str) -> AsyncIterator[Rows]:
        async for rows in snapshot.rows(table):
            if table == "content":
                external.update((_digest(row), None) for row in rows if row[4] is None)
            yield rows
            progress.add(len(rows))

    progress.set_total(sum([await snapshot.count(table) for table in TABLES]))
    for table in TABLES:
        await writer.add_table(table, collect_digests(table))
    return external


async def _pack_objects(
    writer: ArchiveWriter,
    external: dict[Digest, None],
    objects: LargeBlobStore | None,
    progress: ProgressCounter,
) -> None:
    progress.set_total(len(external))
    for digest in external:
        content = await objects.get(digest) if objects else None
        if content is None or await asyncio.to_thread(digest_of, content) != digest:
            raise CorruptContent(
                f"the content of {digest} is missing or damaged; run carrel doctor"
            )
        await writer.add_object(digest, content)
        progress.add(1)


async def _unpack_objects(
    archive: ArchiveReader, objects: LargeBlobStore, progress: ProgressCounter
) -> None:
    progress.set_total(len(archive.objects))
    for digest in archive.objects:
        content = await archive.read_object(digest)
        assert content is not None
        await objects.put(digest, content)
        progress.add(1)


async def _unpack_rows(
    archive: ArchiveReader, inline: bool, progress: ProgressCounter
) -> AsyncIterator[tuple[str, Rows]]:
    progress.set_total(sum([await archive.count(table) for table in TABLES]))
    for table in TABLES:
        async for rows in archive.rows(table):
            embeds_content = inline and table == "content"
            yield (
                table,
                [await _with_content(archive, row) for row in rows] if embeds_content else rows,
            )
            progress.add(len(rows))


async def _with_content(archive: ArchiveReader, row: Sequence[Any]) -> Sequence[Any]:
    """Return a content row with its bytes embedded."""
    return row if row[4] is not None else (*row[:4], await archive.read_object(_digest(row)))


def _digest(row: Sequence[Any]) -> Digest:
    """Return the digest of a content row."""
    return Digest("sha256:" + row[1].hex())


async def _require_empty(maintenance: StoreMaintenance) -> None:
    async with maintenance.snapshot() as snapshot:
        if await snapshot.count("scope") or await snapshot.count("record"):
            raise Conflict(
                "the store is not empty; a backup can only be restored into an empty store"
            )


@contextmanager
def _open_archive(file: File) -> Iterator[ArchiveReader]:
    try:
        handle = file.open("rb")
    except FileNotFoundError:
        raise NotFound(f"no such file: {file.name}") from None
    with handle:
        yield ArchiveReader(handle)


@contextmanager
def _temporary_file(file: File) -> Iterator[tuple[File, IO[bytes]]]:
    """Create a temporary file next to `file`; removed on exit."""
    temporary = file.with_name(f".{file.name}.{secrets.token_hex(8)}.unfinished")
    descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w+b") as handle:
            yield temporary, handle
    finally:
        temporary.unlink(missing_ok=True)


def _require_new(file: File) -> None:
    if file.exists():
        raise Conflict(f"{file.name} already exists")


def _publish(temporary: File, file: File) -> int:
    """Give the file its name without replacing an existing one; return its size."""
    size = temporary.stat().st_size
    try:
        os.link(temporary, file)
    except FileExistsError:
        raise Conflict(f"{file.name} already exists") from None
    except OSError:  # this file system has no hard links
        os.rename(temporary, file)
    descriptor = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return size
