"""Large blobs as files of a directory, named by digest."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path as File
from typing import IO, Final

from carrel.core.identifiers import Digest, TimestampMs
from carrel.core.outages import StorageFull
from carrel.ports.blobs import PART_BYTES, PartWriter
from carrel.ports.part_writers import FilePartWriter, report_full_disk

_BATCH: Final = 1000
_TEMPORARY_PREFIX: Final = "unfinished-"
_RECENT_NS: Final = 10**9
"""Two changes within the resolution of a file system's clock have the same time."""
_ABANDONED_AFTER_SECONDS: Final = 24 * 3600
"""Age after which a temporary file is taken for the remains of a crash."""


class DirectoryBlobStore:
    """Large contents as files of a directory, written whole: temporary file, sync, rename.

    Every put syncs the directories, even if the file exists: another process may not have synced it
    yet.
    """

    component = "blobs"

    def __init__(self, root: File) -> None:
        self._root = root

    async def ping(self) -> None:
        await asyncio.to_thread(self._check_space)

    async def put(self, digest: Digest, content: bytes) -> None:
        with report_full_disk(self.component):
            await asyncio.to_thread(self._put, digest, content)

    def open_writer(self) -> PartWriter:
        return FilePartWriter(
            self.component, self._open_temporary, self._store_temporary, _remove_temporary
        )

    async def read_parts(self, digest: Digest) -> AsyncIterator[bytes]:
        with await asyncio.to_thread(self._open, digest) as file:
            while part := await asyncio.to_thread(file.read, PART_BYTES):
                yield part

    async def read_range(self, digest: Digest, start: int, end: int) -> AsyncIterator[bytes]:
        with await asyncio.to_thread(self._open, digest) as file:
            file.seek(start)
            while start < end and (
                part := await asyncio.to_thread(file.read, min(PART_BYTES, end - start))
            ):
                start += len(part)
                yield part

    async def identity(self, digest: Digest) -> str | None:
        return await asyncio.to_thread(self._identity, digest)

    async def get(self, digest: Digest) -> bytes | None:
        return await asyncio.to_thread(self._get, digest)

    async def discard(self, digests: Collection[Digest]) -> None:
        """Move to the trash. The age in the trash counts from now."""
        await asyncio.to_thread(self._move, digests, self._root, self._trash)

    async def restore(self, digests: Collection[Digest]) -> None:
        await asyncio.to_thread(self._move, digests, self._trash, self._root)

    async def delete(self, digests: Collection[Digest]) -> None:
        files = [_blob_path(self._trash, digest) for digest in digests]
        await asyncio.to_thread(_remove_files, files)

    async def list_trash(self) -> AsyncIterator[tuple[Digest, TimestampMs]]:
        async for digest, _, at in _list_blobs(self._trash):
            yield digest, at

    async def list_blobs(self) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        async for blob in _list_blobs(self._root):
            yield blob

    @property
    def _trash(self) -> File:
        return self._root / "trash"

    def _check_space(self) -> None:
        _make_directory(self._root)
        if os.statvfs(self._root).f_bavail == 0:
            raise StorageFull(self.component)

    def _get(self, digest: Digest) -> bytes | None:
        try:
            with self._open(digest) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _identity(self, digest: Digest) -> str | None:
        try:
            with self._open(digest) as file:
                status = os.fstat(file.fileno())
        except FileNotFoundError:
            return None
        if time.time_ns() - status.st_ctime_ns < _RECENT_NS:
            return ""
        times = (status.st_mtime_ns, status.st_ctime_ns)
        return f"{status.st_dev} {status.st_ino} {status.st_size} {times}"

    def _open(self, digest: Digest) -> IO[bytes]:
        """Open in the main directory or the trash. Raises FileNotFoundError.

        Repeats, since the file may move between the two attempts.
        """
        for root in (self._root, self._trash) * 3:
            with suppress(FileNotFoundError):
                return _blob_path(root, digest).open("rb", buffering=0)
        raise FileNotFoundError(digest)

    def _put(self, digest: Digest, content: bytes) -> None:
        file = self._make_parent(digest)
        if not _touch(file):
            _rename(_write_temporary(file.parent, content), file)
        self._sync_parents(file)

    def _open_temporary(self) -> IO[bytes]:
        _make_directory(self._unfinished_directory)
        return _create_temporary(self._unfinished_directory)

    async def _store_temporary(self, temporary: IO[bytes], digest: Digest) -> None:
        await asyncio.to_thread(self._rename_temporary, temporary, digest)

    def _rename_temporary(self, temporary: IO[bytes], digest: Digest) -> None:
        temporary.flush()
        os.fsync(temporary.fileno())
        temporary.close()
        file = self._make_parent(digest)
        if _touch(file):
            os.unlink(temporary.name)
        else:
            os.replace(temporary.name, file)
        self._sync_parents(file)

    @property
    def _unfinished_directory(self) -> File:
        """Directory of contents whose digest is not known yet."""
        return self._root / "00" / "00"

    def _make_parent(self, digest: Digest) -> File:
        file = _blob_path(self._root, digest)
        _make_directory(file.parent)
        return file

    def _sync_parents(self, file: File) -> None:
        for directory in (file.parent, file.parent.parent, self._root):
            _sync(directory)

    def _move(self, digests: Collection[Digest], source: File, target: File) -> None:
        for digest in digests:
            file, destination = _blob_path(source, digest), _blob_path(target, digest)
            if not _touch(file):
                continue
            _make_directory(destination.parent)
            with suppress(FileNotFoundError):
                os.replace(file, destination)
                _sync(destination.parent)


def _make_directory(directory: File) -> None:
    """Create a directory and its parents with mode 0700, whatever the umask."""
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        _make_directory(directory.parent)
        directory.mkdir(mode=0o700, exist_ok=True)


def _blob_path(root: File, digest: Digest) -> File:
    name = digest.removeprefix("sha256:")
    return root / name[:2] / name[2:4] / name


async def _list_blobs(root: File) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
    scan = _scan(root)
    while batch := await asyncio.to_thread(list, islice(scan, _BATCH)):
        for item in batch:
            yield item


def _scan(root: File) -> Iterator[tuple[Digest, int, TimestampMs]]:
    for file in root.glob("??/??/*"):
        try:
            status = file.stat()
        except FileNotFoundError:
            continue
        if not file.name.startswith(_TEMPORARY_PREFIX):
            yield Digest(f"sha256:{file.name}"), status.st_size, status.st_mtime_ns // 1_000_000
        elif status.st_mtime < time.time() - _ABANDONED_AFTER_SECONDS:
            file.unlink(missing_ok=True)


def _touch(file: File) -> bool:
    """Set the modification time to now. Return whether the file exists."""
    try:
        os.utime(file)
    except FileNotFoundError:
        return False
    return True


def _create_temporary(directory: File) -> IO[bytes]:
    """Create a file that stays when it is closed."""
    return tempfile.NamedTemporaryFile(prefix=_TEMPORARY_PREFIX, dir=directory, delete=False)


def _remove_temporary(temporary: IO[bytes]) -> None:
    with suppress(OSError):  # what was not written yet may not fit on the disk
        temporary.close()
    File(temporary.name).unlink(missing_ok=True)


def _write_temporary(directory: File, content: bytes) -> File:
    """Write a temporary file; nothing remains if this fails."""
    temporary = _create_temporary(directory)
    try:
        with temporary:
            temporary.write(content)
    except BaseException:
        _remove_temporary(temporary)
        raise
    return File(temporary.name)


def _rename(temporary: File, file: File) -> None:
    """Sync a temporary file and rename it."""
    try:
        _sync(temporary)
        os.replace(temporary, file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sync(path: File) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_files(files: Collection[File]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
