"""Checkpoints SQLite's WAL in a thread, so that no request waits for it."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path as File
from typing import Final, Protocol

from carrel.adapters.sqlite.database import connect
from carrel.adapters.sqlite.wal_index import WalIndex
from carrel.adapters.sqlite.write_lock import WriteLock

_CHECKPOINT_PAGES: Final = 2_000
"""WAL pages (8 MB) after which a checkpoint starts."""
_NICENESS: Final = 5
"""Lowers the thread's priority, but not so far that it starves.

In its last pass writers wait for it.
"""


class CheckpointCounter(Protocol):
    checkpoints: int


class WalCheckpointer:
    def __init__(self, file: File, counts: CheckpointCounter) -> None:
        self._file, self._counts = file, counts
        self._db = connect(file)
        self._index = WalIndex(file, self._db)
        self._checkpointed_frames = 0
        self._needs_checkpoint = False
        """Whether a checkpoint is due."""
        self.is_running = False
        self._wake = threading.Event()
        self._stopping = False
        self._lock = WriteLock(file)
        self._thread = threading.Thread(target=self._run, name="carrel-checkpoint", daemon=True)
        self._thread.start()

    def after_commit(self) -> None:
        """Check whether a checkpoint is due. Called after every commit."""
        frames = self._index.frames()
        if frames < self._checkpointed_frames:
            self._checkpointed_frames = 0
        if frames > self._checkpointed_frames + _CHECKPOINT_PAGES:
            self._checkpointed_frames = frames
            self._needs_checkpoint = self.is_running = True
            self._wake.set()

    def close(self) -> None:
        self._stopping = True
        self._wake.set()
        self._thread.join()
        self._db.close()

    def release(self) -> None:
        """Close the index. Call after all connections of the writer are closed."""
        self._index.close()

    def _run(self) -> None:
        if sys.platform == "linux":  # other systems have no per-thread priority
            with suppress(OSError):
                own_priority = os.getpriority(os.PRIO_PROCESS, 0)
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), own_priority + _NICENESS)
        with closing(self._lock):
            while self._wake.wait() and not self._stopping:
                self._wake.clear()
                if self._needs_checkpoint:
                    self._needs_checkpoint = False
                    self._checkpoint(self._lock)
                self.is_running = self._needs_checkpoint

    def _checkpoint(self, lock: WriteLock) -> None:
        """Two passes run beside the writer; the third blocks it for the remaining pages.

        The WAL restarts only if all of it was checkpointed.
        """
        with suppress(sqlite3.OperationalError):
            self._checkpoint_passive()
            self._checkpoint_passive()
            with lock.hold():
                self._checkpoint_passive()
            self._counts.checkpoints += 1

    def _checkpoint_passive(self) -> None:
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
