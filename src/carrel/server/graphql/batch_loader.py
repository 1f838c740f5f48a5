"""Data loader: batches the lookups of one request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class BatchLoader(Generic[Key, Value]):
    """Collects keys until the event loop is idle, then fetches them in one call.

    `fetch` returns one value per key, in order, or the exception to raise for it.
    """

    def __init__(
        self, fetch: Callable[[Sequence[Key]], Awaitable[Sequence[Value | Exception]]]
    ) -> None:
        self._fetch = fetch
        self._futures: dict[Key, asyncio.Future[Value]] = {}
        self._waiters: dict[Key, list[asyncio.Future[Value]]] = {}
        self._pending: list[Key] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def load(self, key: Key) -> Value:
        """Load one value.

        Each caller awaits its own future, so that cancelling one does not affect others.
        """
        future = self._future_for(key)
        if future.done():
            return future.result()
        waiter: asyncio.Future[Value] = asyncio.get_running_loop().create_future()
        self._waiters.setdefault(key, []).append(waiter)
        return await waiter

    async def load_many(self, keys: Sequence[Key]) -> list[Value]:
        for key in keys:
            self._future_for(key)
        return [await self.load(key) for key in keys]

    def prime(self, key: Key, value: Value) -> None:
        """Store a value that is already loaded."""
        if key not in self._futures:
            self._futures[key] = asyncio.get_running_loop().create_future()
            self._futures[key].set_result(value)

    def _future_for(self, key: Key) -> asyncio.Future[Value]:
        if key not in self._futures:
            loop = asyncio.get_running_loop()
            self._futures[key] = loop.create_future()
            self._pending.append(key)
            if len(self._pending) == 1:
                loop.call_soon(self._fetch_when_idle, 0)
        return self._futures[key]

    def _fetch_when_idle(self, pending_count: int) -> None:
        """Fetch the pending keys once a loop iteration added none."""
        if len(self._pending) > pending_count:
            asyncio.get_running_loop().call_soon(self._fetch_when_idle, len(self._pending))
            return
        keys, self._pending = self._pending, []
        task = asyncio.ensure_future(self._fetch_batch(keys))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _fetch_batch(self, keys: Sequence[Key]) -> None:
        try:
            values = await self._fetch(keys)
        except Exception as error:
            values = [error] * len(keys)
        for key, value in zip(keys, values, strict=True):
            for future in (self._futures[key], *self._waiters.pop(key, ())):
                if not future.done():
                    _resolve(future, value)


def _resolve(future: asyncio.Future[Value], value: Value | Exception) -> None:
    if isinstance(value, Exception):
        future.set_exception(value)
        future.exception()  # mark as retrieved, even if no caller awaits it
    else:
        future.set_result(value)
