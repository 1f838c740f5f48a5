"""Waiting for clients, but not for ever.

A timer for each request would cost more than most requests do. Here all who wait stand in one
list, which is looked through a few times within the shortest patience.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

Heard = TypeVar("Heard")
_LOOKS: Final = 8
"""How often the list is looked through within one patience."""


class ReadTimeouts:
    def __init__(self) -> None:
        self._waiting: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._step = 0.0

    async def wait_for(self, awaited: Awaitable[Heard], until: float, every: float) -> Heard:
        """What is awaited, or TimeoutError once the loop's time has passed ``until``.

        ``every`` is a span of seconds in which to notice that.
        """
        task = asyncio.current_task()
        assert task is not None
        before = task.cancelling()
        self._waiting[task] = until
        if self._timer is None or every < self._step * _LOOKS:
            self._look_again(every / _LOOKS)
        try:
            return await awaited
        except asyncio.CancelledError:
            if task in self._late and task.cancelling() == before + 1:
                raise TimeoutError from None
            raise
        finally:
            del self._waiting[task]
            if task in self._late:  # however it ended, our cancellation has been used up
                self._late.remove(task)
                task.uncancel()

    def _look_again(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._step = seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        now = asyncio.get_running_loop().time()
        for task, until in self._waiting.items():
            if now > until and task not in self._late:
                self._late.add(task)
                task.cancel()
        self._timer = None
        if self._waiting:
            self._look_again(self._step)
