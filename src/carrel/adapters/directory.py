"""Large bytes as files of a directory, named by their digest."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Collection, Iterator
from itertools import islice
from pathlib import Path as File
from typing import Final

from carrel.core.names import Digest, Moment

_BATCH: Final = 1000
_UNFINISHED: Final = "unfinished-"
_ABANDONED: Final = 24 * 3600
"""Seconds after which an unfinished file can only be what a crash left behind."""


class DirectoryObjects:
    """A file is written aside, synced, and only then given its name, so that it is never partial.

    Every put, also of what is there, ends with the directories synced: whoever is told that the
    bytes are kept may rely on it, even if another process was still busy putting the same.
    """

    def __init__(self, root: File) -> None:
        self._root = root

    async def put(self, digest: Digest, content: bytes) -> None:
        await asyncio.to_thread(self._put, digest, content)

    async def get(self, digest: Digest) -> bytes | None:
        try:
            return await asyncio.to_thread(self._file(digest).read_bytes)
        except FileNotFoundError:
            return None

    async def delete(self, digests: Collection[Digest]) -> None:
        files = [self._file(digest) for digest in digests]
        await asyncio.to_thread(_remove, files)

    async def each(self) -> AsyncIterator[tuple[Digest, int, Moment]]:
        found = self._scan()
        while batch := await asyncio.to_thread(list, islice(found, _BATCH)):
            for one in batch:
                yield one

    def _file(self, digest: Digest) -> File:
        name = digest.removeprefix("sha256:")
        return self._root / name[:2] / name[2:4] / name

    def _put(self, digest: Digest, content: bytes) -> None:
        file = self._file(digest)
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _renewed(file):
            _write(file, content)
        for directory in (file.parent, file.parent.parent, self._root):
            _sync(directory)

    def _scan(self) -> Iterator[tuple[Digest, int, Moment]]:
        for file in self._root.glob("??/??/*"):
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
