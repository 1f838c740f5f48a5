"""Asking together: what is asked while others are being answered goes out in one go next."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

import asyncpg

_UNCLEAR: Final = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresConnectionError,
)
"""Errors after which what was sent may have been done all the same."""

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")


class ReadBatcher(Generic[Ask, Answer]):
    """Answers each ask from a batch that was sent after the ask was made, so never with the past.

    ``send`` gives one answer per ask, all or none. If it raises and the connection is still there,
    nothing was done and one of them is to blame: they are sent one by one, and only that one fails.
    ``weigh`` says which part of a batch an ask takes up: a batch is full when its asks add up to 1.
    A caller that gives up before its ask is sent takes it back; later, it is only no longer told.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Ask]], Awaitable[Sequence[Answer]]],
        weigh: Callable[[Ask], float],
    ) -> None:
        self._send, self._weigh = send, weigh
        self._waiting: deque[tuple[Ask, asyncio.Future[Answer]]] = deque()
        self._sender: asyncio.Task[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    async def ask(self, ask: Ask) -> Answer:
        if self._closed:
            raise RuntimeError("the store is closed")
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((ask, future))
        if self._sender is None:
            self._sender = asyncio.create_task(self._serve())
        return await future

    async def close(self) -> None:
        """Answer everything that was asked, and take no more."""
        self._closed = True
        if self._sender is not None:
            await self._sender

    async def _serve(self) -> None:
        try:
            while batch := self._take():
                await self._answer(batch)
        finally:
            self._sender = None

    def _take(self) -> list[tuple[Ask, asyncio.Future[Answer]]]:
        batch: list[tuple[Ask, asyncio.Future[Answer]]] = []
        weight = 0.0
        while self._waiting and weight < 1:
            ask, future = self._waiting.popleft()
            if not future.done():
                batch.append((ask, future))
                weight += self._weigh(ask)
        return batch

    async def _answer(self, batch: Sequence[tuple[Ask, asyncio.Future[Answer]]]) -> None:
        try:
            answers = await self._send([ask for ask, _ in batch])
        except Exception as problem:
            await self._failed(batch, problem)
            return
        for (_, future), answer in zip(batch, answers, strict=True):
            if not future.done():
                future.set_result(answer)

    async def _failed(
        self, batch: Sequence[tuple[Ask, asyncio.Future[Answer]]], problem: Exception
    ) -> None:
        alone = len(batch) == 1 or isinstance(problem, _UNCLEAR)
        for one in batch:
            if not alone:
                await self._answer([one])
            elif not one[1].done():
                one[1].set_exception(problem)
