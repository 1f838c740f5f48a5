"""The header of SQLite's WAL-index, read from shared memory instead of asking for it.

Every commit, by whichever process, rewrites this header before it can be seen by anybody. It is
the same that SQLite compares itself, without the locks that a question to it would take.
"""

from __future__ import annotations

import mmap
import sqlite3
import sys
from pathlib import Path as File
from typing import Final

_HEADER: Final = 48
"""Bytes of the header; a second copy follows it."""
_FRAMES: Final = slice(16, 20)


class WalIndex:
    def __init__(self, file: File, db: sqlite3.Connection) -> None:
        """Open it; it exists for as long as a connection that has read is open, like this one."""
        db.execute("SELECT count(*) FROM counter").fetchone()
        with open(f"{file}-shm", "rb") as shared:
            self._header = mmap.mmap(shared.fileno(), 2 * _HEADER, prot=mmap.PROT_READ)

    def version(self) -> bytes:
        """Changes when anybody, in any process, has committed anything."""
        return self._header[:_HEADER]

    def frames(self) -> int:
        """How many pages the log holds that wait to be moved into the file."""
        return int.from_bytes(self._header[_FRAMES], sys.byteorder)

    def close(self) -> None:
        self._header.close()
