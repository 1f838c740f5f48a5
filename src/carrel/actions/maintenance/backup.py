"""Backups: a whole store in one file, verified as it is taken, and a store made from one again.

A backup holds everything but the key of the vault: secrets stay sealed in it, and whoever restores
it needs the key that they were sealed with.
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
from carrel.actions.maintenance.integrity import check_external_blobs, check_rows, examine
from carrel.actions.progress import ProgressCounter, Watch, no_progress
from carrel.core.errors import Conflict, NotFound
from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.identifiers import digest as digest_of
from carrel.core.maintenance.findings import FindingList, Severity
from carrel.core.maintenance.tables import TABLES
from carrel.core.version import VERSION
from carrel.ports import CorruptContent, LargeBlobStore, StoreMaintenance, StoreSnapshot

Rows = Sequence[Sequence[Any]]
_ANY_AGE: Final = 2**62
"""A grace so long that what nothing refers to is no matter: a backup holds it as the store did."""


@dataclass(frozen=True, slots=True)
class BackupResult:
    file: File
    size: int
    manifest: Manifest


async def take(
    upkeep: StoreMaintenance,
    objects: LargeBlobStore | None,
    file: File,
    *,
    now: TimestampMs,
    vault_key: str | None = None,
    watch: Watch = no_progress,
) -> BackupResult:
    """Write the store as it is at this moment to a new file, while others go on writing.

    The file has its name only once it is whole, durable, and has been read back and examined.
    Raises Taken if there is such a file, Corrupt if the store or what was written is damaged.
    """
    _must_be_new(file)
    with _aside(file) as (aside, opened), closing(ArchiveWriter(opened)) as packing:
        async with upkeep.snapshot() as frozen:
            outside = await _pack_tables(packing, frozen, ProgressCounter(watch, "writing rows"))
        await _pack_objects(packing, outside, objects, ProgressCounter(watch, "writing objects"))
        manifest = packing.finish(VERSION, now, await upkeep.migrations(), vault_key)
        opened.flush()
        os.fsync(opened.fileno())
        await verify(aside, watch=watch)
        size = _name(aside, file)
    return BackupResult(file, size, manifest)


async def verify(file: File, *, watch: Watch = no_progress) -> Manifest:
    """Read a backup to its last byte and examine what it holds. Raises Corrupt or Malformed."""
    with _reading(file) as archive:
        findings = await inspect(archive, watch=watch)
        if not findings.clean:
            first = next(each for each in findings.items if each.level is Severity.ERROR)
            raise CorruptContent(
                f"what the backup holds does not agree with itself: {first.subject}: {first.text}"
                f" ({findings.errors} findings in all)"
            )
        return archive.manifest


async def examine_backup(file: File, *, watch: Watch = no_progress) -> FindingList:
    """Examine what a backup holds as one examines a store. Raises Corrupt or Malformed."""
    with _reading(file) as archive:
        return await inspect(archive, watch=watch)


async def restore(
    file: File,
    upkeep: StoreMaintenance,
    objects: LargeBlobStore | None,
    *,
    now: TimestampMs,
    watch: Watch = no_progress,
) -> tuple[Manifest, FindingList]:
    """Fill an empty store from a backup: all of it or nothing, verified before and examined after.

    Large bytes are put first, and are harmless if the rows never follow. Where the store has no
    place outside for them, they go into its rows. Raises Taken if the store is not empty.
    """
    manifest = await verify(file, watch=watch)
    await _must_be_empty(upkeep)
    with _reading(file) as archive:
        if archive.manifest != manifest:
            raise CorruptContent("the backup changed while it was being read")
        if objects is not None:
            await _unpack_objects(archive, objects, ProgressCounter(watch, "restoring objects"))
        rows = _unpacked(archive, objects is None, ProgressCounter(watch, "restoring rows"))
        await upkeep.load(rows)
    return manifest, await examine(upkeep, objects, now=now, grace=_ANY_AGE, watch=watch)


async def inspect(archive: ArchiveReader, *, watch: Watch = no_progress) -> FindingList:
    rows, objects = (
        ProgressCounter(watch, "verifying rows"),
        ProgressCounter(watch, "verifying objects"),
    )
    examination = await check_rows(archive, archive.manifest.created, _ANY_AGE, rows)
    findings = examination.finish()
    await check_external_blobs(findings, examination.outside, archive.object, objects)
    for digest in archive.objects:
        if bytes.fromhex(digest.removeprefix("sha256:")) not in examination.outside:
            findings.error(f"object {digest}", "nothing in the backup refers to it")
    await archive.check()
    return findings


async def _pack_tables(
    packing: ArchiveWriter, frozen: StoreSnapshot, tally: ProgressCounter
) -> dict[Digest, None]:
    """The digests of bytes that are kept outside, in the order in which they were met."""
    outside: dict[Digest, None] = {}

    async def noted(table: str) -> AsyncIterator[Rows]:
        async for rows in frozen.rows(table):
            if table == "content":
                outside.update((_digest(row), None) for row in rows if row[4] is None)
            yield rows
            tally.add(len(rows))

    tally.expect(sum([await frozen.count(table) for table in TABLES]))
    for table in TABLES:
        await packing.add_table(table, noted(table))
    return outside


async def _pack_objects(
    packing: ArchiveWriter,
    outside: dict[Digest, None],
    objects: LargeBlobStore | None,
    tally: ProgressCounter,
) -> None:
    tally.expect(len(outside))
    for digest in outside:
        content = await objects.get(digest) if objects else None
        if content is None or await asyncio.to_thread(digest_of, content) != digest:
            raise CorruptContent(f"the bytes of {digest} are gone or damaged; see carrel doctor")
        await packing.add_object(digest, content)
        tally.add(1)


async def _unpack_objects(
    archive: ArchiveReader, objects: LargeBlobStore, tally: ProgressCounter
) -> None:
    tally.expect(len(archive.objects))
    for digest in archive.objects:
        content = await archive.object(digest)
        assert content is not None
        await objects.put(digest, content)
        tally.add(1)


async def _unpacked(
    archive: ArchiveReader, inline: bool, tally: ProgressCounter
) -> AsyncIterator[tuple[str, Rows]]:
    tally.expect(sum([await archive.count(table) for table in TABLES]))
    for table in TABLES:
        async for rows in archive.rows(table):
            fill = inline and table == "content"
            yield table, [await _filled(archive, row) for row in rows] if fill else rows
            tally.add(len(rows))


async def _filled(archive: ArchiveReader, row: Sequence[Any]) -> Sequence[Any]:
    """A content row with its bytes in it."""
    return row if row[4] is not None else (*row[:4], await archive.object(_digest(row)))


def _digest(row: Sequence[Any]) -> Digest:
    """That of a content row."""
    return Digest("sha256:" + row[1].hex())


async def _must_be_empty(upkeep: StoreMaintenance) -> None:
    async with upkeep.snapshot() as frozen:
        if await frozen.count("scope") or await frozen.count("record"):
            raise Conflict("the store is not empty; a backup is restored into an empty one")


@contextmanager
def _reading(file: File) -> Iterator[ArchiveReader]:
    try:
        opened = file.open("rb")
    except FileNotFoundError:
        raise NotFound(f"there is no file {file.name}") from None
    with opened:
        yield ArchiveReader(opened)


@contextmanager
def _aside(file: File) -> Iterator[tuple[File, IO[bytes]]]:
    """A file beside the one that it will become, gone if it does not."""
    aside = file.with_name(f".{file.name}.{secrets.token_hex(8)}.unfinished")
    descriptor = os.open(aside, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w+b") as opened:
            yield aside, opened
    finally:
        aside.unlink(missing_ok=True)


def _must_be_new(file: File) -> None:
    if file.exists():
        raise Conflict(f"there is a file {file.name} already")


def _name(aside: File, file: File) -> int:
    """Give it its name, and say its size. A link never takes the place of what is there."""
    size = aside.stat().st_size
    try:
        os.link(aside, file)
    except FileExistsError:
        raise Conflict(f"there is a file {file.name} already") from None
    except OSError:  # this file system has no links
        os.rename(aside, file)
    descriptor = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return size
