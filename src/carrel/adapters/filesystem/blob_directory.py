"""Large bytes as files of a directory, named by their digest."""

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
_UNFINISHED: Final = "unfinished-"
_ABANDONED: Final = 24 * 3600
"""Seconds after which an unfinished file can only be what a crash left behind."""


class DirectoryBlobStore:
    """A file is written aside, synced, and only then given its name, so that it is never partial.

    Every put, also of what is there, ends with the directories synced: whoever is told that the
    bytes are kept may rely on it, even if another process was still busy putting the same.
    """

    def __init__(self, root: File) -> None:
        self._root = root

    async def put(self, digest: Digest, content: bytes) -> None:
        await asyncio.to_thread(self._put, digest, content)

    async def get(self, digest: Digest) -> bytes | None:
        return await asyncio.to_thread(self._get, digest)

    async def discard(self, digests: Collection[Digest]) -> None:
        """Its age in the trash counts from a moment before it gets there, never from long ago."""
        await asyncio.to_thread(self._move, digests, self._root, self._trash)

    async def restore(self, digests: Collection[Digest]) -> None:
        await asyncio.to_thread(self._move, digests, self._trash, self._root)

    async def delete(self, digests: Collection[Digest]) -> None:
        files = [_file(self._trash, digest) for digest in digests]
        await asyncio.to_thread(_remove, files)

    async def trash(self) -> AsyncIterator[tuple[Digest, TimestampMs]]:
        async for digest, _, at in _each(self._trash):
            yield digest, at

    async def each(self) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
        async for found in _each(self._root):
            yield found

    @property
    def _trash(self) -> File:
        return self._root / "trash"

    def _get(self, digest: Digest) -> bytes | None:
        """Looks more than once: it may be moved to where was looked a moment before."""
        for root in (self._root, self._trash) * 3:
            with suppress(FileNotFoundError):
                return _file(root, digest).read_bytes()
        return None

    def _put(self, digest: Digest, content: bytes) -> None:
        file = _file(self._root, digest)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _renewed(file):
            _write(file, content)
        for directory in (file.parent, file.parent.parent, self._root):
            _sync(directory)

    def _move(self, digests: Collection[Digest], source: File, target: File) -> None:
        for digest in digests:
            file, there = _file(source, digest), _file(target, digest)
            if not _renewed(file):
                continue
            there.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileNotFoundError):
                os.replace(file, there)
                _sync(there.parent)


def _file(root: File, digest: Digest) -> File:
    name = digest.removeprefix("sha256:")
    return root / name[:2] / name[2:4] / name


async def _each(root: File) -> AsyncIterator[tuple[Digest, int, TimestampMs]]:
    found = _scan(root)
    while batch := await asyncio.to_thread(list, islice(found, _BATCH)):
        for one in batch:
            yield one


def _scan(root: File) -> Iterator[tuple[Digest, int, TimestampMs]]:
    for file in root.glob("??/??/*"):
        try:
            facts = file.stat()
        except FileNotFoundError:
            continue
        if not file.name.startswith(_UNFINISHED):
            yield Digest(f"sha256:{file.name}"), facts.st_size, facts.st_mtime_ns // 1_000_000
        elif facts.st_mtime < time.time() - _ABANDONED:
            file.unlink(missing_ok=True)


def _renewed(file: File) -> bool:
    """Whether the file is there; its age is now counted from this put."""
    try:
        os.utime(file)
    except FileNotFoundError:
        return False
    return True


def _write(file: File, content: bytes) -> None:
    descriptor, aside = tempfile.mkstemp(prefix=_UNFINISHED, dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(aside, file)
    except BaseException:
        File(aside).unlink(missing_ok=True)
        raise


def _sync(directory: File) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(files: Collection[File]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
