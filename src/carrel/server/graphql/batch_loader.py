"""Asking once for what many fields of one request want."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class DataLoader(Generic[Key, Value]):
    """Gathers keys for as long as more of them come, then fetches all in one go.

    ``fetch`` gives one value for each key, in order, or the exception that its askers shall see.
    """

    def __init__(
        self, fetch: Callable[[Sequence[Key]], Awaitable[Sequence[Value | Exception]]]
    ) -> None:
        self._fetch = fetch
        self._known: dict[Key, asyncio.Future[Value]] = {}
        self._askers: dict[Key, list[asyncio.Future[Value]]] = {}
        self._waiting: list[Key] = []
        self._work: set[asyncio.Task[None]] = set()

    async def load(self, key: Key) -> Value:
        """Everybody waits alone, since one who is given up must not take the others along."""
        promised = self._promised(key)
        if promised.done():
            return promised.result()
        own: asyncio.Future[Value] = asyncio.get_running_loop().create_future()
        self._askers.setdefault(key, []).append(own)
        return await own

    async def many(self, keys: Sequence[Key]) -> list[Value]:
        for key in keys:
            self._promised(key)
        return [await self.load(key) for key in keys]

    def prime(self, key: Key, value: Value) -> None:
        """Take note of what is known anyway."""
        if key not in self._known:
            self._known[key] = asyncio.get_running_loop().create_future()
            self._known[key].set_result(value)

    def _promised(self, key: Key) -> asyncio.Future[Value]:
        if key not in self._known:
            loop = asyncio.get_running_loop()
            self._known[key] = loop.create_future()
            self._waiting.append(key)
            if len(self._waiting) == 1:
                loop.call_soon(self._soon, 0)
        return self._known[key]

    def _soon(self, seen: int) -> None:
        """Wait for a turn of the loop in which nobody wanted anything more."""
        if len(self._waiting) > seen:
            asyncio.get_running_loop().call_soon(self._soon, len(self._waiting))
            return
        keys, self._waiting = self._waiting, []
        task = asyncio.ensure_future(self._settle(keys))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _settle(self, keys: Sequence[Key]) -> None:
        try:
            values = await self._fetch(keys)
        except Exception as error:
            values = [error] * len(keys)
        for key, value in zip(keys, values, strict=True):
            for promised in (self._known[key], *self._askers.pop(key, ())):
                if not promised.done():
                    _keep(promised, value)


def _keep(promised: asyncio.Future[Value], value: Value | Exception) -> None:
    if isinstance(value, Exception):
        promised.set_exception(value)
        promised.exception()  # seen, even if whoever asked has gone
    else:
        promised.set_result(value)
