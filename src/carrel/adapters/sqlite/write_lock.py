"""Writers of several processes queue on a lock file, instead of polling for SQLite's own lock."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as File


class WriteLock:
    """One handle on the lock file; two threads with one handle would not exclude each other."""

    def __init__(self, file: File) -> None:
        self._handle = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def try_acquire(self) -> None:
        fcntl.flock(self._handle, fcntl.LOCK_EX)

    def take_if_free(self) -> bool:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        fcntl.flock(self._handle, fcntl.LOCK_UN)

    @contextmanager
    def held(self) -> Iterator[None]:
        self.try_acquire()
        try:
            yield
        finally:
            self.release()

    def close(self) -> None:
        os.close(self._handle)
