"""Lock file on which writers of several processes queue.

SQLite's own lock would have to be polled.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path as File


class WriteLock:
    """One descriptor of the lock file. Threads sharing it do not exclude each other."""

    def __init__(self, file: File) -> None:
        self._handle = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(self) -> None:
        fcntl.flock(self._handle, fcntl.LOCK_EX)

    def acquire_nowait(self) -> bool:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        fcntl.flock(self._handle, fcntl.LOCK_UN)

    @contextmanager
    def hold(self) -> Iterator[None]:
        self.acquire()
        try:
            yield
        finally:
            self.release()

    def close(self) -> None:
        os.close(self._handle)
