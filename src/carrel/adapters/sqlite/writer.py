"""Single writer that groups waiting jobs into one transaction and one fsync.

Statements of a group run on the event loop, where they take microseconds. Only the commit, which
waits for the disk, runs in a thread if the disk is slow; meanwhile the loop reads and collects the
next group. In a thread each statement would wait for the interpreter lock, which under load takes
longer than the statement.
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
from carrel.adapters.sqlite.reserve import DiskReserve
from carrel.adapters.sqlite.rows import HeadKey
from carrel.adapters.sqlite.wal_checkpoint import WalCheckpointer
from carrel.adapters.sqlite.write_lock import WriteLock
from carrel.adapters.sqlite.writer_cache import WriterCache
from carrel.core.outages import StorageFull
from carrel.core.store.commit import Commit
from carrel.core.store.entry import Head

Result = TypeVar("Result")
Work = Callable[[sqlite3.Connection, CommitBatch], Any]

_MAX_GROUP_JOBS: Final = 64
"""Jobs per group, so that the event loop is never blocked for long."""

_FAST_COMMIT_SECONDS: Final = 0.002
_FAST_COMMITS_REQUIRED: Final = 16
"""Consecutive fast commits after which commits run on the event loop.

This saves two thread hops. After one slow commit they run in the thread again.
"""


@dataclass(slots=True)
class WriteJob:
    work: Work
    future: asyncio.Future[Any]
    is_long: bool
    commits: Sequence[Commit]
    frees_space: bool
    result: Any = None
    problem: BaseException | None = None


@dataclass(slots=True)
class WriterCounters:
    """Counters since start, exposed as metrics."""

    transactions: int = 0
    jobs: int = 0
    commits: int = 0
    conflicts: int = 0
    checkpoints: int = 0


@dataclass
class Writer:
    """Belongs to the event loop that created it. Results are durable when returned."""

    file: File
    reader: Reader
    on_commit: Callable[[], None] = lambda: None
    counts: WriterCounters = field(default_factory=WriterCounters)

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._db = connect(self.file)
        self._lock = WriteLock(self.file)
        self.reserve = DiskReserve(self.file)
        self._waiting: deque[WriteJob] = deque()
        self._idle = asyncio.Event()
        self._idle.set()
        self._closed = False
        self._cache: WriterCache | None = None
        self._version_before = b""
        """WAL index version when the current transaction began."""
        self._version_after = b""
        """WAL index version after our last commit."""
        self._fast_commits = 0
        """Consecutive fast commits."""
        self._gathered_jobs = 0
        self._expects_more = False
        """Whether the last group had several jobs, so that more may follow."""
        self._single_jobs = 0
        """Jobs still to run one by one, after their group failed."""
        self._thread_tasks: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="carrel-writer", daemon=True)
        self._thread.start()
        self._checkpoints = WalCheckpointer(self.file, self.counts)

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    async def submit(
        self,
        work: Callable[[sqlite3.Connection, CommitBatch], Result],
        *,
        is_long: bool = False,
        commits: Sequence[Commit] = (),
        frees_space: bool = False,
    ) -> Result:
        """Run work in a shared transaction and return once it is durable.

        Long work runs in the thread. Heads that ``commits`` need are read together with those of
        other jobs. On a full disk, work that frees space uses the reserve. Cancelling stops
        waiting; the work may still be done. Raises StorageFull.
        """
        if self._closed:
            raise RuntimeError("the store is closed")
        if self.reserve.was_full and not frees_space and self.is_disk_full():
            raise StorageFull("database")
        future: asyncio.Future[Result] = self._loop.create_future()
        self._waiting.append(WriteJob(work, future, is_long, commits, frees_space))
        if self._idle.is_set():
            self._idle.clear()
            self._loop.call_soon(self._begin)
        return await future

    def is_disk_full(self) -> bool:
        """Whether only work that frees space is accepted."""
        [(pages,)] = self.reader.db.execute("PRAGMA freelist_count")
        [(page_size,)] = self.reader.db.execute("PRAGMA page_size")
        return self.reserve.is_disk_full(pages * page_size)

    async def close(self) -> None:
        """Finish all submitted jobs, then stop."""
        self._closed = True
        await self._idle.wait()
        self._thread_tasks.put(None)
        await asyncio.to_thread(self._thread.join)
        await asyncio.to_thread(self._checkpoints.close)
        self._truncate_wal()
        self._db.close()
        self._checkpoints.release()
        self._lock.close()

    def _truncate_wal(self) -> None:
        """Truncate the WAL unless another process uses it."""
        if self._lock.acquire_nowait():
            with suppress(sqlite3.Error):
                self._db.execute("PRAGMA busy_timeout = 0")
                self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._lock.release()

    def _run(self) -> None:
        while task := self._thread_tasks.get():
            task()

    def _begin(self) -> None:
        """Start the next group, or wait in the thread for the lock."""
        if not self._waiting:
            self._idle.set()
        elif self._should_wait_for_more():
            self._loop.call_soon(self._begin)
        elif self._waiting[0].is_long:
            job = self._waiting.popleft()
            self._thread_tasks.put(lambda: self._run_group_in_thread([job]))
        elif self._lock.acquire_nowait():
            self._run_group(self._take_group())
        else:
            self._thread_tasks.put(self._wait_for_lock)

    def _should_wait_for_more(self) -> bool:
        """Whether the group may still grow: jobs came in the last loop iteration."""
        before, self._gathered_jobs = self._gathered_jobs, len(self._waiting)
        return self._expects_more and before < self._gathered_jobs < _MAX_GROUP_JOBS

    def _wait_for_lock(self) -> None:
        """Wait for the write lock. Runs in the thread."""
        self._lock.acquire()
        self._loop.call_soon_threadsafe(lambda: self._run_group(self._take_group()))

    def _take_group(self) -> Sequence[WriteJob]:
        """Return waiting jobs up to the first long one."""
        limit = 1 if self._single_jobs else _MAX_GROUP_JOBS
        jobs: list[WriteJob] = []
        while self._waiting and len(jobs) < limit and not self._waiting[0].is_long:
            jobs.append(self._waiting.popleft())
        self._single_jobs = max(0, self._single_jobs - len(jobs))
        self._gathered_jobs = 0
        self._expects_more = len(jobs) > 1
        return jobs

    def _run_group(self, jobs: Sequence[WriteJob]) -> None:
        """Run a group on the loop, except for a slow commit."""
        outcome = self._run_jobs(jobs, self.reader.current_heads())
        if isinstance(outcome, CommitBatch):
            if self._fast_commits >= _FAST_COMMITS_REQUIRED and not self._checkpoints.is_running:
                self._finish(jobs, *self._commit_transaction(outcome))
            else:
                self._thread_tasks.put(lambda: self._commit_in_thread(jobs, outcome))
        else:
            self._lock.release()
            self._finish(jobs, outcome)

    def _run_group_in_thread(self, jobs: Sequence[WriteJob]) -> None:
        """Run a group entirely in the thread."""
        self._lock.acquire()
        outcome = self._run_jobs(jobs, dict(self.reader.current_heads()))
        if isinstance(outcome, CommitBatch):
            self._commit_in_thread(jobs, outcome)
        else:
            self._lock.release()
            self._loop.call_soon_threadsafe(self._finish, jobs, outcome)

    def _run_jobs(
        self, jobs: Sequence[WriteJob], heads: Mapping[HeadKey, Head | None]
    ) -> CommitBatch | BaseException:
        """Run the jobs up to the commit. Returns the exception if one fails."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._version_before = self.reader.index.version()
            batch = CommitBatch(self._db, self._current_cache(), heads)
            if len(jobs) > 1 and not heads:
                batch.preload([commit for job in jobs for commit in job.commits])
            for job in jobs:
                job.result = job.work(self._db, batch)
            batch.flush()
        except BaseException as problem:  # passed on to the submitter
            self._roll_back()
            return self._translate(problem)
        return batch

    def _current_cache(self) -> WriterCache:
        """Return the cache, new if another process committed since our last commit."""
        if (
            self._cache is None
            or self._version_before != self._version_after
            or self._cache.is_full
        ):
            self._cache = WriterCache(self._db)
        return self._cache

    def _translate(self, problem: BaseException) -> BaseException:
        """Return StorageFull for a full disk."""
        return self.reserve.translate(problem)

    def _roll_back(self) -> None:
        self._cache = None
        with suppress(sqlite3.Error):
            self._db.execute("ROLLBACK")

    def _commit_in_thread(self, jobs: Sequence[WriteJob], batch: CommitBatch) -> None:
        """Commit in the thread and finish on the loop."""
        self._loop.call_soon_threadsafe(self._finish, jobs, *self._commit_transaction(batch))

    def _commit_transaction(
        self, batch: CommitBatch
    ) -> tuple[BaseException | None, CommitBatch, bytes]:
        """Commit durably; return the error if any, the batch and the new version."""
        problem, started = None, perf_counter()
        try:
            self._db.execute("COMMIT")
        except BaseException as error:  # e.g. a full disk: nothing of the group was applied
            problem = self._translate(error)
            self._roll_back()
        after = self._version_after = self.reader.index.version()
        self._lock.release()
        self._fast_commits = (
            self._fast_commits + 1 if perf_counter() - started < _FAST_COMMIT_SECONDS else 0
        )
        return problem, batch, after

    def _finish(
        self,
        jobs: Sequence[WriteJob],
        problem: BaseException | None,
        batch: CommitBatch | None = None,
        after: bytes = b"",
    ) -> None:
        """Resolve all futures; after a failed group retry its jobs one by one."""
        if problem is None and batch is not None:
            revisions = {scope: state.revision for scope, state in batch.changed_scopes.items()}
            records_changed = batch.records.has_changed
            self.reader.apply_commit(
                self._version_before,
                after,
                batch.written_heads,
                revisions,
                records_changed=records_changed,
            )
            self.reserve.was_full &= jobs[0].frees_space
            self.counts.transactions += 1
            self.counts.jobs += len(jobs)
            self.on_commit()
            self._checkpoints.after_commit()
        elif len(jobs) > 1 or self._frees_reserve(jobs[0], problem):
            self._waiting.extendleft(reversed(jobs))
            self._single_jobs = len(jobs)
            self._begin()
            return
        for job in jobs:
            if not job.future.done():
                if problem is None:
                    job.future.set_result(job.result)
                else:
                    job.future.set_exception(problem)
        if self._waiting:
            self._loop.call_soon(self._begin)
        else:
            self._idle.set()

    def _frees_reserve(self, job: WriteJob, problem: BaseException | None) -> bool:
        """Release the reserve for a job that frees space. Return whether to try it again."""
        return isinstance(problem, StorageFull) and job.frees_space and self.reserve.release()
