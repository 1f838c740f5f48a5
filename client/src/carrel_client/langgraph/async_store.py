"""A store for an event loop: concurrent calls become one batch."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from langgraph.store.base import IndexConfig, Op, Result
from langgraph.store.base.batch import AsyncBatchedBaseStore

from carrel_client.drivers import AsyncDriver
from carrel_client.files import Files
from carrel_client.langgraph.store import DEFAULT_PREFIX, CarrelStore


class AsyncCarrelStore(CarrelStore, AsyncBatchedBaseStore):
    """CarrelStore over an AsyncClient, whose concurrent calls are sent as one batch.

    Create it in the event loop that uses it. Concurrent puts are one commit. Methods that block may
    be called from other threads.
    """

    def __init__(
        self,
        files: Files[AsyncDriver],
        *,
        prefix: str = DEFAULT_PREFIX,
        index: IndexConfig | None = None,
    ) -> None:
        CarrelStore.__init__(self, files, prefix=prefix, index=index)
        AsyncBatchedBaseStore.__init__(self)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        try:
            is_own_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_own_loop = False
        if is_own_loop:
            return super().batch(ops)
        return asyncio.run_coroutine_threadsafe(self.abatch(ops), self._loop).result()
