"""The one writer: it groups what is waiting into one transaction and one fsync.

The statements of a group run on the event loop, where they take microseconds; only the commit,
which waits for the disk, runs in a thread where the disk is slow, while the loop goes on reading
and gathers the next group. In a thread of their own each statement would have to win the
interpreter back from the loop, which under load takes far longer than the statement.
"""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path as File
from time import perf_counter
from typing import Any, Final, TypeVar

from carrel.adapters.sqlite.commit_batch import CommitBatch
from carrel.adapters.sqlite.database import connect
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.rows import Key
from carrel.adapters.sqlite.wal_checkpoint import WalCheckpointer
from carrel.adapters.sqlite.write_lock import WriteLock
from carrel.adapters.sqlite.writer_cache import WriterCache
from carrel.core.store.tree import Commit, Head

Answer = TypeVar("Answer")
Work = Callable[[sqlite3.Connection, CommitBatch], Any]

_MOST: Final = 64
"""Jobs a group, so that the loop is never held for long."""

_QUICK: Final = 0.002
_STREAK: Final = 16
"""A commit runs on the loop, which saves two hops between threads, for as long as the disk is that
quick: this many commits in a row within so many seconds. The first slow one is the last."""


@dataclass(slots=True)
class WriteJob:
    work: Work
    future: asyncio.Future[Any]
    long: bool
    commits: Sequence[Commit]
    answer: Any = None
    problem: BaseException | None = None


@dataclass(slots=True)
class WriterCounters:
    """What the writer has done since it started; read by whoever shows it."""

    transactions: int = 0
    jobs: int = 0
    commits: int = 0
    conflicts: int = 0
    checkpoints: int = 0


@dataclass
class Writer:
    """Belongs to the event loop in which it was made; what it has answered is durable."""

    file: File
    reader: Reader
    on_commit: Callable[[], None] = lambda: None
    counts: WriterCounters = field(default_factory=WriterCounters)

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._db = connect(self.file)
        self._lock = WriteLock(self.file)
        self._waiting: deque[WriteJob] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False
        self._known: WriterCache | None = None
        self._before = b""
        """The index as the transaction under way found it."""
        self._left = b""
        """And as our last one left it."""
        self._streak = 0
        """How many commits in a row were quick."""
        self._gathered = 0
        self._sociable = False
        """Whether the last group was of several."""
        self._alone = 0
        """How many jobs are still to be tried one by one, after a group of them has failed."""
        self._errands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="carrel-writer", daemon=True)
        self._thread.start()
        self._checkpoints = WalCheckpointer(self.file, self.counts)

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def submit(
        self,
        work: Callable[[sqlite3.Connection, CommitBatch], Answer],
        *,
        long: bool = False,
        commits: Sequence[Commit] = (),
    ) -> Answer:
        """Run work inside a transaction shared with others, and return once it is durable.

        Long work runs in the thread. What it will have to look at, if it applies ``commits``, is
        read together with what the others need. A caller that is cancelled stops waiting; its
        work may still be done.
        """
        if self._closed:
            raise RuntimeError("the store is closed")
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting.append(WriteJob(work, future, long, commits))
        if self._idle.is_set():
            self._idle.clear()
            self._loop.call_soon(self._begin)
        return await future

    async def close(self) -> None:
        """Finish everything that was given, then stop."""
        self._closed = True
        await self._idle.wait()
        self._errands.put(None)
        await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self._checkpoints.close)
        self._empty_the_log()
        self._db.close()
        self._checkpoints.release()
        self._lock.close()

    def _empty_the_log(self) -> None:
        """Unless somebody else is writing, or reads from it: all would wait for them."""
        if self._lock.take_if_free():
            with suppress(sqlite3.Error):
                self._db.execute("PRAGMA busy_timeout = 0")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._lock.release()

    def _run(self) -> None:
        while errand := self._errands.get():
            errand()

    def _begin(self) -> None:
        """Start on a group, unless nothing waits; go on once no other process is writing."""
        if not self._waiting:
            self._idle.set()
        elif self._should_wait_for_more():
            self._loop.call_soon(self._begin)
        elif self._waiting[0].long:
            job = self._waiting.popleft()
            self._errands.put(lambda: self._work_aside([job]))
        elif self._lock.take_if_free():
            self._work(self._group())
        else:
            self._errands.put(self._queue)

    def _should_wait_for_more(self) -> bool:
        """Where many write, a group is gathered until a turn of the loop has added nobody."""
        before, self._gathered = self._gathered, len(self._waiting)
        return self._sociable and before < self._gathered < _MOST

    def _queue(self) -> None:
        """In the thread: wait for our turn among the processes."""
        self._lock.try_acquire()
        self._loop.call_soon_threadsafe(lambda: self._work(self._group()))

    def _group(self) -> Sequence[WriteJob]:
        """Those who wait, up to the first with long work."""
        most = 1 if self._alone else _MOST
        jobs: list[WriteJob] = []
        while self._waiting and len(jobs) < most and not self._waiting[0].long:
            jobs.append(self._waiting.popleft())
        self._alone = max(0, self._alone - len(jobs))
        self._gathered = 0
        self._sociable = len(jobs) > 1
        return jobs

    def _work(self, jobs: Sequence[WriteJob]) -> None:
        """On the loop: everything but the wait for the disk."""
        done = self._transact(jobs, self.reader.known_heads())
        if isinstance(done, CommitBatch):
            if self._streak >= _STREAK and not self._checkpoints.running:
                self._finish(jobs, *self._committed(done))
            else:
                self._errands.put(lambda: self._commit(jobs, done))
        else:
            self._lock.release()
            self._finish(jobs, done)

    def _work_aside(self, jobs: Sequence[WriteJob]) -> None:
        """In the thread: all of it, where there is much to do."""
        self._lock.try_acquire()
        done = self._transact(jobs, {})
        if isinstance(done, CommitBatch):
            self._commit(jobs, done)
        else:
            self._lock.release()
            self._loop.call_soon_threadsafe(self._finish, jobs, done)

    def _transact(
        self, jobs: Sequence[WriteJob], heads: Mapping[Key, Head | None]
    ) -> CommitBatch | BaseException:
        """Run the jobs up to their commit; or what went wrong, with nothing done."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._before = self.reader.index.version()
            batch = CommitBatch(self._db, self._cache_is_current(), heads)
            if len(jobs) > 1 and not heads:
                batch.look_ahead([commit for job in jobs for commit in job.commits])
            for job in jobs:
                job.answer = job.work(self._db, batch)
            batch.flush()
        except BaseException as problem:  # whatever it is, it is its sender's answer
            self._undo()
            return problem
        return batch

    def _cache_is_current(self) -> WriterCache:
        """What we know, if nobody has committed since we did; asked while nobody can."""
        if self._known is None or self._before != self._left or self._known.is_full:
            self._known = WriterCache(self._db)
        return self._known

    def _undo(self) -> None:
        self._known = None
        with suppress(sqlite3.Error):
            self._db.execute("ROLLBACK")

    def _commit(self, jobs: Sequence[WriteJob], batch: CommitBatch) -> None:
        """In the thread."""
        self._loop.call_soon_threadsafe(self._finish, jobs, *self._committed(batch))

    def _committed(self, batch: CommitBatch) -> tuple[BaseException | None, CommitBatch, bytes]:
        """Make it durable."""
        problem, began = None, perf_counter()
        try:
            self._db.execute("COMMIT")
        except BaseException as failed:  # a full disk, say: nothing of the group was done
            problem = failed
            self._undo()
        after = self._left = self.reader.index.version()
        self._lock.release()
        self._streak = self._streak + 1 if perf_counter() - began < _QUICK else 0
        return problem, batch, after

    def _finish(
        self,
        jobs: Sequence[WriteJob],
        problem: BaseException | None,
        batch: CommitBatch | None = None,
        after: bytes = b"",
    ) -> None:
        """On the loop: answer everybody, or, where one of many is to blame, try one by one."""
        if problem is None and batch is not None:
            revisions = {scope: place.revision for scope, place in batch.moved.items()}
            changed = batch.records.changed
            self.reader.apply_commit(
                self._before, after, batch.written, revisions, records_changed=changed
            )
            self.counts.transactions += 1
            self.counts.jobs += len(jobs)
            self.on_commit()
            self._checkpoints.after_commit()
        elif len(jobs) > 1:
            self._waiting.extendleft(reversed(jobs))
            self._alone = len(jobs)
            self._begin()
            return
        for job in jobs:
            if not job.future.done():
                if problem is None:
                    job.future.set_result(job.answer)
                else:
                    job.future.set_exception(problem)
        if self._waiting:
            self._loop.call_soon(self._begin)
        else:
            self._idle.set()
