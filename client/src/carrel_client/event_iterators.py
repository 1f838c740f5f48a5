"""Event streams for ``for`` and ``async for``."""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, Generic, overload
from weakref import WeakSet

from carrel_client.drivers import Arguments, AsyncDriver, Resource, SyncDriver
from carrel_client.event_reader import Event, EventReader


class EventStream:
    """Iterator of events; ends when closed or when its run ends."""

    def __init__(self, driver: SyncDriver, reader: EventReader) -> None:
        self._driver = driver
        self._reader = reader
        self._ready: deque[Event] = deque()
        self._is_over = False

    def start(self) -> None:
        """Connect now, rather than when the first event is requested."""
        self._driver.drive(self._reader.connect())

    def close(self) -> None:
        self._is_over = True
        self._driver.drive(self._reader.close())

    def __iter__(self) -> EventStream:
        return self

    def __next__(self) -> Event:
        while not self._ready:
            if self._is_over:
                raise StopIteration
            events = self._driver.drive(self._reader.next_events())
            self._is_over = self._is_over or not events
            self._ready.extend(events)
        return self._ready.popleft()

    def __enter__(self) -> EventStream:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class AsyncEventStream:
    """Async iterator of events; ends when closed or when its run ends.

    Waiting for the next event may be cancelled, as by a timeout, and resumed: none is lost.
    """

    def __init__(self, driver: AsyncDriver, reader: EventReader) -> None:
        self._driver = driver
        self._reader = reader
        self._ready: deque[Event] = deque()
        self._pull: asyncio.Task[tuple[Event, ...]] | None = None
        self._is_over = False
        open_streams(driver).add(self)

    async def start(self) -> None:
        """Connect now, rather than when the first event is requested."""
        await self._driver.drive(self._reader.connect())

    async def aclose(self) -> None:
        self._is_over = True
        if self._pull is not None:
            self._pull.cancel()
            await asyncio.wait({self._pull})
        await self._driver.drive(self._reader.close())

    def __aiter__(self) -> AsyncEventStream:
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            if self._is_over:
                raise StopAsyncIteration
            pull = self._pull = self._pull or asyncio.create_task(
                self._driver.drive(self._reader.next_events())
            )
            await asyncio.wait({pull})
            if self._pull is pull:
                self._pull = None
                events = () if pull.cancelled() else pull.result()
                self._is_over = self._is_over or not events
                self._ready.extend(events)
        return self._ready.popleft()

    async def __aenter__(self) -> AsyncEventStream:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


def open_streams(driver: AsyncDriver) -> WeakSet[AsyncEventStream]:
    """Return the open streams of a driver; they are closed before the driver."""
    streams: WeakSet[AsyncEventStream] = driver.__dict__.setdefault("_event_streams", WeakSet())
    return streams


async def close_streams(driver: AsyncDriver) -> None:
    for stream in list(open_streams(driver)):
        await stream.aclose()


if TYPE_CHECKING:

    class event_stream(Generic[Arguments]):
        """Turns a method that returns an EventReader into one that returns a stream."""

        def __init__(self, open: Callable[Concatenate[Any, Arguments], EventReader]) -> None: ...

        @overload
        def __get__(
            self, resource: Resource[SyncDriver], owner: type
        ) -> Callable[Arguments, EventStream]: ...
        @overload
        def __get__(
            self, resource: Resource[AsyncDriver], owner: type
        ) -> Callable[Arguments, AsyncEventStream]: ...
        @overload
        def __get__(self, resource: None, owner: type) -> event_stream[Arguments]: ...
        def __get__(self, resource: Any, owner: type) -> Any: ...

else:

    def event_stream(open: Callable[..., EventReader]) -> Callable[..., Any]:
        """Turn a method that returns an EventReader into one that returns a stream."""

        @functools.wraps(open)
        def call(self: Any, *args: Any, **options: Any) -> Any:
            driver, reader = self._driver, open(self, *args, **options)
            stream = EventStream if isinstance(driver, SyncDriver) else AsyncEventStream
            return stream(driver, reader)

        return call
