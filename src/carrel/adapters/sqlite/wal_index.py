"""Reads the header of SQLite's WAL index from shared memory.

Every commit of any process rewrites this header. SQLite compares it itself; reading it needs no
locks or queries.

SQLite holds POSIX locks on this file, and a process loses all locks on a file when it closes any
descriptor of it. So all users in this process share one descriptor, and the last closes it after
the connections are closed.
"""

from __future__ import annotations

import mmap
import os
import sqlite3
import sys
import threading
from dataclasses import dataclass
from pathlib import Path as File
from typing import Final

_HEADER_BYTES: Final = 48
"""Size of the header; a second copy follows it."""
_FRAME_COUNT_SLICE: Final = slice(16, 20)


@dataclass(slots=True)
class _Handle:
    descriptor: int
    header: mmap.mmap
    users: int = 0


_HANDLES: Final[dict[tuple[int, int], _Handle]] = {}
_LOCK: Final = threading.Lock()


class WalIndex:
    def __init__(self, file: File, db: sqlite3.Connection) -> None:
        """Open the index. It exists while a connection that has read is open."""
        db.execute("SELECT count(*) FROM counter").fetchone()
        shm_path = f"{file}-shm"
        with _LOCK:
            status = os.stat(shm_path)
            self._key = (status.st_dev, status.st_ino)
            if self._key not in _HANDLES:
                descriptor = os.open(shm_path, os.O_RDONLY | os.O_CLOEXEC)
                header = mmap.mmap(descriptor, 2 * _HEADER_BYTES, prot=mmap.PROT_READ)
                _HANDLES[self._key] = _Handle(descriptor, header)
            handle = _HANDLES[self._key]
            handle.users += 1
        self._header = handle.header

    def version(self) -> bytes:
        """Return bytes that change with every commit of any process."""
        return self._header[:_HEADER_BYTES]

    def frames(self) -> int:
        """Number of pages in the WAL."""
        return int.from_bytes(self._header[_FRAME_COUNT_SLICE], sys.byteorder)

    def close(self) -> None:
        """Release the shared descriptor. Call after the connections are closed."""
        with _LOCK:
            handle = _HANDLES[self._key]
            handle.users -= 1
            if handle.users == 0:
                del _HANDLES[self._key]
                handle.header.close()
                os.close(handle.descriptor)
