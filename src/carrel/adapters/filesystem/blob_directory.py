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
from typing import Final

from carrel.core.identifiers import Digest, TimestampMs

_BATCH: Final = 1000
_TEMPORARY_PREFIX: Final = "unfinished-"
_ABANDONED_AFTER_SECONDS: Final = 24 * 3600
"""Age after which a temporary file is taken for the remains of a crash."""


class DirectoryBlobStore:
    """Writes a temporary file, syncs it and renames it, so that no file is partial.

    Every put syncs the directories, even if the file exists: another process may not have synced it
    yet.
    """

    def __init__(self, root: File) -> None:
        self._root = root

    async def put(self, digest: Digest, content: bytes) -> None:
        await asyncio.to_thread(self._put, digest, content)

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

    def _get(self, digest: Digest) -> bytes | None:
        """Read from the main directory or the trash.

        Repeats, since the file may move between the two reads.
        """
        for root in (self._root, self._trash) * 3:
            with suppress(FileNotFoundError):
                return _blob_path(root, digest).read_bytes()
        return None

    def _put(self, digest: Digest, content: bytes) -> None:
        file = _blob_path(self._root, digest)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _touch(file):
            _write_atomically(file, content)
        for directory in (file.parent, file.parent.parent, self._root):
            _sync_directory(directory)

    def _move(self, digests: Collection[Digest], source: File, target: File) -> None:
        for digest in digests:
            file, destination = _blob_path(source, digest), _blob_path(target, digest)
            if not _touch(file):
                continue
            destination.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                os.replace(file, destination)
                _sync_directory(destination.parent)


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


def _write_atomically(file: File, content: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=_TEMPORARY_PREFIX, dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, file)
    except BaseException:
        File(temporary).unlink(missing_ok=True)
        raise


def _sync_directory(directory: File) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_files(files: Collection[File]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
