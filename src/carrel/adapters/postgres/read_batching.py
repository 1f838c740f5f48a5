"""Batches requests: those made while a batch is in flight form the next batch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

import asyncpg

_UNCERTAIN_ERRORS: Final = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.OperatorInterventionError,
    asyncpg.PostgresConnectionError,
)
"""Errors after which the statement may or may not have been applied."""

Request = TypeVar("Request")
Response = TypeVar("Response")


class RequestBatcher(Generic[Request, Response]):
    """Sends each request in a batch that starts after the request was made.

    ``send`` returns one response per request, all or none. If it raises and the connection still
    works, nothing was applied; the requests are sent one by one, and only the faulty one fails.
    ``weight_of`` returns the share of a batch that a request takes; a batch is full at 1. A caller
    that is cancelled before its request is sent withdraws it; after that the request is still
    executed.
    """

    def __init__(
        self,
        send: Callable[[Sequence[Request]], Awaitable[Sequence[Response]]],
        weight_of: Callable[[Request], float],
    ) -> None:
        self._send, self._weight_of = send, weight_of
        self._waiting: deque[tuple[Request, asyncio.Future[Response]]] = deque()
        self._sender: asyncio.Task[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    async def submit(self, request: Request) -> Response:
        if self._closed:
            raise RuntimeError("the store is closed")
        future: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._sender is None:
            self._sender = asyncio.create_task(self._send_all())
        return await future

    async def close(self) -> None:
        """Finish all requests and accept no more."""
        self._closed = True
        if self._sender is not None:
            await self._sender

    async def _send_all(self) -> None:
        try:
            while batch := self._take_batch():
                await self._send_batch(batch)
        finally:
            self._sender = None

    def _take_batch(self) -> list[tuple[Request, asyncio.Future[Response]]]:
        batch: list[tuple[Request, asyncio.Future[Response]]] = []
        weight = 0.0
        while self._waiting and weight < 1:
            request, future = self._waiting.popleft()
            if not future.done():
                batch.append((request, future))
                weight += self._weight_of(request)
        return batch

    async def _send_batch(self, batch: Sequence[tuple[Request, asyncio.Future[Response]]]) -> None:
        try:
            responses = await self._send([request for request, _ in batch])
        except Exception as problem:
            await self._handle_failure(batch, problem)
            return
        for (_, future), response in zip(batch, responses, strict=True):
            if not future.done():
                future.set_result(response)

    async def _handle_failure(
        self, batch: Sequence[tuple[Request, asyncio.Future[Response]]], problem: Exception
    ) -> None:
        is_final = len(batch) == 1 or isinstance(problem, _UNCERTAIN_ERRORS)
        for item in batch:
            if not is_final:
                await self._send_batch([item])
            elif not item[1].done():
                item[1].set_exception(problem)
