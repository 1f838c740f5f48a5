"""Read timeouts for request bodies, driven by one shared timer.

A timer per request would cost more than most requests. All waiting tasks share one timer that
checks their deadlines several times per timeout.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

Result = TypeVar("Result")
_CHECKS_PER_TIMEOUT: Final = 8
"""How often deadlines are checked within one timeout."""


class ReadTimeouts:
    """Deadlines of the tasks that wait for a client."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Task[object], float] = {}
        self._expired: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._interval = 0.0

    async def wait_for(
        self, awaitable: Awaitable[Result], deadline: float, timeout_seconds: float
    ) -> Result:
        """Await `awaitable`; raise TimeoutError once the loop clock passes `deadline`.

        `timeout_seconds` sets how often deadlines are checked.
        """
        task = asyncio.current_task()
        assert task is not None
        cancel_count = task.cancelling()
        self._waiting[task] = deadline
        if self._timer is None or timeout_seconds < self._interval * _CHECKS_PER_TIMEOUT:
            self._schedule_check(timeout_seconds / _CHECKS_PER_TIMEOUT)
        try:
            return await awaitable
        except asyncio.CancelledError:
            if task in self._expired and task.cancelling() == cancel_count + 1:
                raise TimeoutError from None
            raise
        finally:
            del self._waiting[task]
            if task in self._expired:  # balance our cancel(), whatever the outcome
                self._expired.remove(task)
                task.uncancel()

    def _schedule_check(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._interval = seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._cancel_expired)

    def _cancel_expired(self) -> None:
        now = asyncio.get_running_loop().time()
        for task, deadline in self._waiting.items():
            if now > deadline and task not in self._expired:
                self._expired.add(task)
                task.cancel()
        self._timer = None
        if self._waiting:
            self._schedule_check(self._interval)
