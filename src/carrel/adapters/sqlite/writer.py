"""The one writer: a thread that groups what is waiting into one transaction and one fsync."""

from __future__ import annotations

import asyncio
import fcntl
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path as File
from typing import Any, Final, TypeVar

from carrel.adapters.sqlite.batch import Batch
from carrel.adapters.sqlite.database import connect, transaction
from carrel.adapters.sqlite.index import WalIndex

Answer = TypeVar("Answer")
Work = Callable[[sqlite3.Connection, Batch], Any]

_MOST: Final = 256
_CHECKPOINT: Final = 2_000
"""Pages, 8 MB of them, after which the log is moved into the file."""


@dataclass(slots=True)
class Job:
    work: Work
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    answer: Any = None
    problem: BaseException | None = None


@dataclass(slots=True)
class Counts:
    """What the writer has done since it started; read by whoever shows it."""

    transactions: int = 0
    jobs: int = 0
    commits: int = 0
    conflicts: int = 0
    checkpoints: int = 0


@dataclass
class Writer:
    """Runs work given from any event loop; what it has answered is durable."""

    file: File
    on_commit: Callable[[], None] = lambda: None
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._db = connect(self.file)
        self._index = WalIndex(self.file, self._db)
        self._noted = 0
        self._tidy = threading.Event()
        self._stopping = False
        self._threads = [
            threading.Thread(target=self._serve, name="carrel-writer", daemon=True),
            threading.Thread(target=self._checkpoint, name="carrel-checkpoint", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        return self._jobs.qsize()

    async def do(self, work: Callable[[sqlite3.Connection, Batch], Answer]) -> Answer:
        """Run work inside a transaction shared with others, and return once it is durable.

        A caller that is cancelled stops waiting; its work may still be done.
        """
        if self._stopping:
            raise RuntimeError("the store is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Answer] = loop.create_future()
        self._jobs.put(Job(work, loop, future))
        return await future

    def close(self) -> None:
        """Finish everything that was given, then stop."""
        self._stopping = True
        self._jobs.put(None)
        self._tidy.set()
        for thread in self._threads:
            thread.join()
        with suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.close()
        self._index.close()

    def _serve(self) -> None:
        with _lock_of(self.file) as lock:
            running = True
            while running:
                jobs, running = self._take()
                if jobs:
                    self._together(jobs, lock)
                    _answer(jobs)
                    self.on_commit()
                    self._look_at_log()

    def _take(self) -> tuple[list[Job], bool]:
        """Wait for one job, then take all that have come meanwhile."""
        first = self._jobs.get()
        jobs = [] if first is None else [first]
        while first is not None and len(jobs) < _MOST:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return jobs, True
            if job is None:
                return jobs, False
            jobs.append(job)
        return jobs, first is not None

    def _together(self, jobs: Sequence[Job], lock: int) -> None:
        try:
            self._transact(jobs, lock)
        except BaseException as problem:  # whatever it is, it is its sender's answer
            if len(jobs) == 1:
                jobs[0].problem = problem
                return
            for job in jobs:  # one of them is to blame; alone, only that one fails
                self._together([job], lock)

    def _transact(self, jobs: Sequence[Job], lock: int) -> None:
        with _alone(lock), transaction(self._db):
            batch = Batch(self._db)
            for job in jobs:
                job.answer = job.work(self._db, batch)
            batch.flush()
        self.counts.transactions += 1
        self.counts.jobs += len(jobs)

    def _look_at_log(self) -> None:
        frames = self._index.frames()
        if frames < self._noted:
            self._noted = 0
        if frames > self._noted + _CHECKPOINT:
            self._noted = frames
            self._tidy.set()

    def _checkpoint(self) -> None:
        """Move the log into the file, so that no request has to.

        Two passes run beside the writer. The third makes it wait for the little that came
        meanwhile, since the log starts over only when all of it has been moved.
        """
        with closing(connect(self.file)) as db, _lock_of(self.file) as lock:
            while not self._stopping:
                self._tidy.wait()
                self._tidy.clear()
                with suppress(sqlite3.OperationalError):
                    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                    with _alone(lock):
                        db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                    self.counts.checkpoints += 1


@contextmanager
def _lock_of(file: File) -> Iterator[int]:
    """A handle of its own on the lock file: two threads with one handle would not exclude."""
    lock = os.open(f"{file}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        yield lock
    finally:
        os.close(lock)


@contextmanager
def _alone(lock: int) -> Iterator[None]:
    """Queue behind the writers of other processes, instead of polling for SQLite's own lock."""
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(lock, fcntl.LOCK_UN)


def _answer(jobs: Sequence[Job]) -> None:
    """Hand all answers over in one step per loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, group in by_loop.items():
        with suppress(RuntimeError):  # the loop has closed: nobody is waiting any more
            loop.call_soon_threadsafe(_resolve, group)


def _resolve(jobs: Sequence[Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.problem is not None:
            job.future.set_exception(job.problem)
        else:
            job.future.set_result(job.answer)
