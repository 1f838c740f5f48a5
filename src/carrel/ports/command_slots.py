"""Slots for running commands: a bounded number, granted to tenants in turn."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic
from typing import Final

from carrel.core.errors import Conflict, TooManyCommands
from carrel.core.sandbox.fair_queue import FairQueue
from carrel.ports import request_scope

DEFAULT_SLOTS: Final = 4
DEFAULT_WAITING: Final = 100
DEFAULT_JOBS: Final = 20

IsRunning = Callable[[], Awaitable[bool]]


class _SlotRequest:
    """A command that waits for a slot or holds one."""

    __slots__ = ("granted", "instance_key", "tenant")

    def __init__(self, tenant: str, instance_key: str | None) -> None:
        self.tenant, self.instance_key = tenant, instance_key
        self.granted = asyncio.Event()


class CommandSlots:
    """Slots of one process; all sandbox providers and protocols share them."""

    def __init__(
        self,
        limit: int = DEFAULT_SLOTS,
        waiting_limit: int = DEFAULT_WAITING,
        job_limit: int = DEFAULT_JOBS,
    ) -> None:
        self._limit, self._waiting_limit, self._job_limit = limit, waiting_limit, job_limit
        self._jobs: dict[str, dict[str, IsRunning | None]] = {}
        """Background jobs by tenant and id; None while a job starts."""
        self._queue: FairQueue[_SlotRequest] = FairQueue()
        self._busy_instances: set[str] = set()
        self.running = 0
        self.started = 0
        self.refused = 0
        self.waited_seconds = 0.0
        """Total waiting time of started commands."""

    @property
    def waiting_count(self) -> int:
        return len(self._queue)

    @asynccontextmanager
    async def hold(
        self, tenant: str, *, instance_key: str | None = None, can_refuse: bool = True
    ) -> AsyncIterator[bool]:
        """Hold a slot; yields whether the command had to wait for it.

        Commands with the same instance key run one after another. Raises TooManyCommands if too
        many commands of the tenant wait, unless `can_refuse` is false, or if the caller disconnects
        while the command waits.
        """
        request = _SlotRequest(tenant, instance_key)
        self._queue.push(tenant, request)
        self._grant_free()
        waits = not request.granted.is_set()
        try:
            if waits:
                await self._wait(request, can_refuse=can_refuse)
            yield waits
        finally:
            self._release(request)

    @asynccontextmanager
    async def count_job(self, tenant: str, id: str, is_running: IsRunning) -> AsyncIterator[None]:
        """Count the background job that is started in this context until it ends.

        Raises Conflict if too many of the tenant's jobs run.
        """
        jobs = self._jobs.setdefault(tenant, {})
        if len(jobs) >= self._job_limit:
            for job, is_job_running in list(jobs.items()):
                if is_job_running is not None and not await is_job_running():
                    jobs.pop(job, None)
        if len(jobs) >= self._job_limit:
            raise Conflict(f"{self._job_limit} background jobs of this tenant are already running")
        jobs[id] = None
        try:
            yield
        except BaseException:
            del jobs[id]
            raise
        jobs[id] = is_running

    async def _wait(self, request: _SlotRequest, *, can_refuse: bool) -> None:
        if can_refuse and self._queue.count(request.tenant) > self._waiting_limit:
            self.refused += 1
            raise TooManyCommands(
                f"{self._waiting_limit} commands of this tenant are waiting; nothing was run, try"
                " again later"
            )
        since = monotonic()
        tasks = [
            asyncio.ensure_future(request.granted.wait()),
            asyncio.ensure_future(request_scope.wait_for_disconnect()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if not request.granted.is_set():
            raise TooManyCommands("the caller disconnected while the command waited")
        self.waited_seconds += monotonic() - since

    def _grant_free(self) -> None:
        while self.running < self._limit and (request := self._queue.pop(self._is_blocked)):
            self.running += 1
            self.started += 1
            if request.instance_key is not None:
                self._busy_instances.add(request.instance_key)
            request.granted.set()

    def _is_blocked(self, request: _SlotRequest) -> bool:
        return request.instance_key in self._busy_instances

    def _release(self, request: _SlotRequest) -> None:
        if request.granted.is_set():
            self.running -= 1
            self._busy_instances.discard(request.instance_key or "")
        else:
            self._queue.remove(request.tenant, request)
        self._grant_free()
