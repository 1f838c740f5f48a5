"""Events as they happen, one after the other."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from carrel.actions.events.streams import Batch, Batches
from carrel.core.store import event as store_event

Listen = Callable[[], Awaitable[tuple[str, Batches]]]


@dataclass(frozen=True, slots=True)
class Event:
    """That something happened and where, never the content of a file."""

    cursor: str
    """Give it as ``since`` to go on after this event."""
    id: str
    type: str
    payload: Mapping[str, Any]
    at: datetime
    workspace: str | None
    """As ``kind/name``."""
    run: str | None


class EventStream:
    """Events for ``async for``. It goes on until it is closed, or the run that it follows ends.

    Waiting for the next event can be given up, as by a time-out, and taken up again: none is lost.
    """

    def __init__(self, listen: Listen) -> None:
        self._listen = listen
        self._batches: Batches | None = None
        self._ready: deque[store_event.Event] = deque()
        self._pull: asyncio.Task[Batch] | None = None
        self._over = False

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            if self._over:
                raise StopAsyncIteration
            pull = self._pull = self._pull or asyncio.create_task(self._read())
            await asyncio.wait({pull})
            if self._pull is pull:
                self._pull = None
                self._take(pull)
        return _shown(self._ready.popleft())

    async def start(self) -> None:
        """Listen from now on, rather than from when the first event is asked for."""
        if self._batches is None:
            _, self._batches = await self._listen()

    async def aclose(self) -> None:
        self._over = True
        if self._pull is not None:
            self._pull.cancel()
            await asyncio.wait({self._pull})
        if self._batches is not None:
            await self._batches.aclose()

    async def __aenter__(self) -> EventStream:
        await self.start()
        return self

    async def __aexit__(self, *problem: object) -> None:
        await self.aclose()

    async def _read(self) -> Batch:
        await self.start()
        assert self._batches is not None
        async for batch in self._batches:
            return batch
        return ()

    def _take(self, pull: asyncio.Task[Batch]) -> None:
        batch = () if pull.cancelled() else pull.result()
        self._over |= not batch
        self._ready.extend(batch)


def _shown(event: store_event.Event) -> Event:
    scope = event.scope
    return Event(
        cursor=event.cursor,
        id=event.id,
        type=event.type,
        payload=event.payload,
        at=datetime.fromtimestamp(event.at / 1000, UTC),
        workspace=f"{scope.kind}/{scope.name}" if scope else None,
        run=event.run,
    )
