"""Writers of large contents, for adapters: into memory and into a file."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import IO, Final

from carrel.core.identifiers import Digest
from carrel.core.outages import FULL_ERRNOS, StorageFull
from carrel.core.store.blob import Blob
from carrel.ports.blobs import Hasher

TEMPORARY_FILES: Final = "temporary files"
"""Name of the component in messages about a full disk."""


class MemoryPartWriter:
    """Collects the parts, for stores that hold contents whole."""

    def __init__(self, put: Callable[[bytes], Awaitable[Blob]]) -> None:
        self._put, self._parts = put, list[bytes]()
        self._hash = hashlib.sha256()

    def write(self, part: bytes) -> None:
        self._hash.update(part)
        self._parts.append(part)

    def copy_hash(self) -> Hasher:
        return self._hash.copy()

    async def finish(self) -> Blob:
        content = await asyncio.to_thread(b"".join, self._parts)
        self._parts.clear()
        return await self._put(content)

    async def discard(self) -> None:
        self._parts.clear()


class FilePartWriter:
    """Writes the parts into a file, which `store` then keeps under its digest.

    `remove` runs in a thread. A full disk raises StorageFull with the name of the component.
    """

    def __init__(
        self,
        component: str,
        open_file: Callable[[], IO[bytes]],
        store: Callable[[IO[bytes], Digest], Awaitable[None]],
        remove: Callable[[IO[bytes]], None],
    ) -> None:
        self._component = component
        self._open_file, self._store, self._remove = open_file, store, remove
        self._file: IO[bytes] | None = None
        self._hash, self._size = hashlib.sha256(), 0
        self._lock, self._is_closed = Lock(), False

    def write(self, part: bytes) -> None:
        with self._lock, report_full_disk(self._component):
            if self._is_closed:
                raise ValueError("the writer is closed")
            if self._file is None:
                self._file = self._open_file()
            self._hash.update(part)
            self._size += len(part)
            self._file.write(part)

    def copy_hash(self) -> Hasher:
        return self._hash.copy()

    async def finish(self) -> Blob:
        if self._file is None:
            await asyncio.to_thread(self.write, b"")
        file = self._file
        assert file is not None
        digest = Digest(f"sha256:{self._hash.hexdigest()}")
        with report_full_disk(self._component):
            await self._store(file, digest)
        self._is_closed = True
        return Blob(digest, self._size)

    async def discard(self) -> None:
        """Waits for a part that is being written, whose caller may be gone."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                if self._file is not None:
                    self._remove(self._file)


@contextmanager
def report_full_disk(component: str) -> Iterator[None]:
    """Raise StorageFull if there is no space."""
    try:
        yield
    except OSError as problem:
        if problem.errno in FULL_ERRNOS:
            raise StorageFull(component) from problem
        raise


def close_temporary(file: IO[bytes]) -> None:
    """Close a temporary file, which removes it. Blocks; takes longer for a larger one."""
    with suppress(OSError):  # what was not written yet may not fit on the disk
        file.close()
