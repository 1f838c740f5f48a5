"""The header of SQLite's WAL-index, read from shared memory instead of asking for it.

Every commit, by whichever process, rewrites this header before it can be seen by anybody. It is
the same that SQLite compares itself, without the locks that a question to it would take.

SQLite holds POSIX locks on this file, and a process loses all its locks on a file when it closes
any handle of it. Hence a handle is shared by all who look in this process, and closed only by the
last of them, after their connections.
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

_HEADER: Final = 48
"""Bytes of the header; a second copy follows it."""
_FRAMES: Final = slice(16, 20)


@dataclass(slots=True)
class _Handle:
    number: int
    header: mmap.mmap
    users: int = 0


_HANDLES: Final[dict[tuple[int, int], _Handle]] = {}
_LOCK: Final = threading.Lock()


class WalIndex:
    def __init__(self, file: File, db: sqlite3.Connection) -> None:
        """Open it; it exists for as long as a connection that has read is open, like this one."""
        db.execute("SELECT count(*) FROM counter").fetchone()
        shared = f"{file}-shm"
        with _LOCK:
            known = os.stat(shared)
            self._key = (known.st_dev, known.st_ino)
            if self._key not in _HANDLES:
                number = os.open(shared, os.O_RDONLY | os.O_CLOEXEC)
                header = mmap.mmap(number, 2 * _HEADER, prot=mmap.PROT_READ)
                _HANDLES[self._key] = _Handle(number, header)
            handle = _HANDLES[self._key]
            handle.users += 1
        self._header = handle.header

    def version(self) -> bytes:
        """Changes when anybody, in any process, has committed anything."""
        return self._header[:_HEADER]

    def frames(self) -> int:
        """How many pages the log holds that wait to be moved into the file."""
        return int.from_bytes(self._header[_FRAMES], sys.byteorder)

    def close(self) -> None:
        """Let go of it, once the connections of whoever looked are closed."""
        with _LOCK:
            handle = _HANDLES[self._key]
            handle.users -= 1
            if handle.users == 0:
                del _HANDLES[self._key]
                handle.header.close()
                os.close(handle.number)
