"""Moving the log into the file and keeping room in it, in a thread, so that no request has to."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path as File
from typing import Final, Protocol

from carrel.adapters.sqlite.database import connect
from carrel.adapters.sqlite.wal_file import WalFile
from carrel.adapters.sqlite.wal_index import WalIndex
from carrel.adapters.sqlite.write_lock import WriteLock

_PAGES: Final = 2_000
"""8 MB of them, after which the log is moved: a little at a time holds nobody up for long."""
_YIELDING: Final = 5
"""How nice the thread is to others, who are being waited for; not so much that it starves on a busy
machine, since in its last pass writers wait for it."""


class Counted(Protocol):
    checkpoints: int


class WalCheckpointer:
    def __init__(self, file: File, counts: Counted) -> None:
        self._file, self._counts = file, counts
        self._db = connect(file)
        self._index = WalIndex(file, self._db)
        self._log = WalFile(file, 2 * _PAGES)
        self._noted = 0
        self._short = False
        """Whether the log's file is to be made longer."""
        self._full = False
        """Whether there is enough to be moved."""
        self.running = False
        self._due = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="carrel-checkpoint", daemon=True)
        self._thread.start()

    def after_commit(self) -> None:
        """Called after every commit: see whether it is time."""
        frames = self._index.frames()
        if frames < self._noted:
            self._noted = 0
            self._log.reset()
        if self._log.should_preallocate(frames):
            self._short = True
            self._due.set()
        if frames > self._noted + _PAGES:
            self._noted = frames
            self._full = self.running = True
            self._due.set()

    def close(self) -> None:
        self._stopping = True
        self._due.set()
        self._thread.join()
        self._db.close()

    def release(self) -> None:
        """Let go of the index, once every connection of this store's writer is closed."""
        self._index.close()

    def _run(self) -> None:
        if sys.platform == "linux":  # elsewhere threads have no priority of their own
            with suppress(OSError):
                ours = os.getpriority(os.PRIO_PROCESS, 0)
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), ours + _YIELDING)
        lock = WriteLock(self._file)
        with closing(lock):
            while self._due.wait() and not self._stopping:
                self._due.clear()
                if self._short:
                    self._short = False
                    with suppress(OSError):  # a full disk, say, is for who has something to write
                        self._log.preallocate()
                if self._full:
                    self._full = False
                    self._move(lock)
                self.running = self._full

    def _move(self, lock: WriteLock) -> None:
        """Two passes run beside the writer. The third makes it wait for the little that came
        meanwhile, since the log starts over only when all of it has been moved."""
        with suppress(sqlite3.OperationalError):
            self._pass()
            self._pass()
            with lock.held():
                self._pass()
            self._counts.checkpoints += 1

    def _pass(self) -> None:
        self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
