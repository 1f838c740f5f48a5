"""Reserved disk space, released so that deletions work on a full disk."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path as File
from typing import Final

from carrel.core.outages import FULL_ERRNOS, StorageFull

RESERVE_BYTES: Final = 4 * 2**20
_MIN_FREE_BYTES: Final = 64 * 2**10
"""Less than this is too little for a commit."""


class DiskReserve:
    """File beside the database that occupies space until a deletion needs it.

    SQLite appends to its log even to delete rows. Several processes may share the file.
    """

    def __init__(self, database: File) -> None:
        self._file = database.with_name(f"{database.name}.reserve")
        self.was_full = self._file.exists() and not self._size()
        """Whether a write failed because the disk was full, and none succeeded since."""

    def fill(self) -> None:
        """Occupy the space if the disk has twice as much left."""
        if self._free_bytes() < 2 * RESERVE_BYTES or self._size() >= RESERVE_BYTES:
            return
        with suppress(OSError):
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
            finally:
                os.close(descriptor)

    def release(self) -> bool:
        """Give the space back. Return whether there was any."""
        if not self._size():
            return False
        os.truncate(self._file, 0)
        return True

    def is_disk_full(self, reusable_bytes: int) -> bool:
        """Whether writes fail, with this much unused space within the database.

        After a failure, until as much as the reserve is free: the rest is for deletions.
        """
        required_bytes = RESERVE_BYTES if self.was_full else _MIN_FREE_BYTES
        return self._free_bytes() + reusable_bytes < required_bytes

    def translate(self, problem: BaseException) -> BaseException:
        """Return StorageFull if the disk is the cause of a failed write."""
        if isinstance(problem, StorageFull):
            return problem
        if isinstance(problem, OSError) and problem.errno in FULL_ERRNOS:
            return self._storage_full()
        if not isinstance(problem, sqlite3.Error):
            return problem
        code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
        is_io_error = code in {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN}
        if code == sqlite3.SQLITE_FULL or (is_io_error and self._free_bytes() < _MIN_FREE_BYTES):
            return self._storage_full()
        return problem

    def _storage_full(self) -> StorageFull:
        self.was_full = True
        return StorageFull("database")

    def _size(self) -> int:
        try:
            return self._file.stat().st_size
        except FileNotFoundError:
            return 0

    def _free_bytes(self) -> int:
        status = os.statvfs(self._file.parent)
        return status.f_bavail * status.f_frsize
