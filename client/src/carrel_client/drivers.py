"""Sans-I/O operations: generators of steps, run by a sync or an async driver.

An operation yields what it needs done (a request, a pause, a blocking call) and receives the
result. It does no I/O itself, so one implementation serves every driver.
"""

from __future__ import annotations

import asyncio
import functools
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    overload,
)

from carrel_client.http_messages import HttpRequest, HttpResponse

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class TransportFailure(Exception):
    """No complete response arrived. Raised into operations by drivers.

    ``server`` is the server's URL without credentials, or empty if unknown.
    """

    def __init__(self, message: str = "", *, server: str = "") -> None:
        super().__init__(message)
        self.server = server


class UndecodableBody(TransportFailure):
    """The body of the response could not be decompressed."""


class UnsendableRequest(TransportFailure):
    """The request is not valid HTTP, so it was not sent."""


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: float
    started_at: float | None = None
    """Start of the request that is retried; its deadline includes the pause."""


@dataclass(frozen=True, slots=True)
class BlockingCall:
    """Blocking call; its return value is the result of the step."""

    call: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class OpenStream:
    """A request whose response is read in chunks; its result is an OpenedStream."""

    request: HttpRequest


@dataclass(frozen=True, slots=True)
class ReadChunk:
    """The next bytes of a stream, or None at its end."""

    stream: Any


@dataclass(frozen=True, slots=True)
class CloseStream:
    stream: Any


@dataclass(frozen=True, slots=True)
class OpenedStream:
    response: HttpResponse
    """Contains the body only if the status is an error."""
    stream: Any
    """The driver's own handle."""


Step: TypeAlias = HttpRequest | Sleep | BlockingCall | OpenStream | ReadChunk | CloseStream
Steps: TypeAlias = Generator[Step, Any, Result]


def run_blocking(call: Callable[[], Result]) -> Steps[Result]:
    """Run a blocking call outside the event loop."""
    result: Result = yield BlockingCall(call)
    return result


class SyncDriver(ABC):
    """Runs each step in the calling thread."""

    @abstractmethod
    def send(self, request: HttpRequest) -> HttpResponse:
        """Raises TransportFailure, DeadlineExceeded or ResponseTooLarge."""

    @abstractmethod
    def open_stream(self, request: HttpRequest) -> OpenedStream: ...

    @abstractmethod
    def read_chunk(self, stream: Any) -> bytes | None: ...

    @abstractmethod
    def close_stream(self, stream: Any) -> None: ...

    @abstractmethod
    def check_pause(self, pause: Sleep) -> None:
        """Raises DeadlineExceeded if the deadline ends before the pause does."""

    @abstractmethod
    def close(self) -> None: ...

    def drive(self, steps: Steps[Result]) -> Result:
        try:
            step = next(steps)
            while True:
                try:
                    result = self._run(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # the generator's return value
        finally:
            steps.close()

    def _run(self, step: Step) -> Any:
        match step:
            case HttpRequest():
                return self.send(step)
            case Sleep(seconds):
                self.check_pause(step)
                return time.sleep(seconds)
            case BlockingCall(call):
                return call()
            case OpenStream(request):
                return self.open_stream(request)
            case ReadChunk(stream):
                return self.read_chunk(stream)
            case CloseStream(stream):
                return self.close_stream(stream)


class AsyncDriver(ABC):
    """Runs each step without blocking the event loop; blocking calls run in a thread."""

    @abstractmethod
    async def send(self, request: HttpRequest) -> HttpResponse:
        """Raises TransportFailure, DeadlineExceeded or ResponseTooLarge."""

    @abstractmethod
    async def open_stream(self, request: HttpRequest) -> OpenedStream: ...

    @abstractmethod
    async def read_chunk(self, stream: Any) -> bytes | None: ...

    @abstractmethod
    async def close_stream(self, stream: Any) -> None: ...

    @abstractmethod
    def check_pause(self, pause: Sleep) -> None:
        """Raises DeadlineExceeded if the deadline ends before the pause does."""

    @abstractmethod
    async def aclose(self) -> None: ...

    async def drive(self, steps: Steps[Result]) -> Result:
        try:
            step = next(steps)
            while True:
                try:
                    if type(step) is HttpRequest:
                        result = await self.send(step)
                    else:
                        result = await self._run(step)
                except Exception as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # the generator's return value
        finally:
            steps.close()

    async def _run(self, step: Step) -> Any:
        match step:
            case HttpRequest():
                return await self.send(step)
            case Sleep(seconds):
                self.check_pause(step)
                return await asyncio.sleep(seconds)
            case BlockingCall(call):
                return await run_in_thread(call)
            case OpenStream(request):
                return await self.open_stream(request)
            case ReadChunk(stream):
                return await self.read_chunk(stream)
            case CloseStream(stream):
                return await self.close_stream(stream)


async def run_in_thread(call: Callable[[], Any]) -> Any:
    """Run a call in a thread.

    A cancelled caller waits for its end, since the call may hold a lock file.
    """
    return await run_to_end(asyncio.get_running_loop().run_in_executor(None, call))


async def run_to_end(future: asyncio.Future[Result]) -> Result:
    """Wait for a future that is not cancelled with its caller, who is cancelled after its end."""
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        while not future.done():
            try:
                await asyncio.wait({future})
            except asyncio.CancelledError:
                continue
        future.exception()  # Retrieved, so that asyncio does not log it.
        raise


def steps_of(call: Any, *args: Any, **options: Any) -> Steps[Any]:
    """The steps of a resource's operation, as a part of another operation."""
    steps: Steps[Any] = call.__wrapped__(call.__self__, *args, **options)
    return steps


def run_steps(driver: SyncDriver | AsyncDriver, steps: Steps[Result]) -> Result:
    """Run steps in the calling thread. Raises InvalidStateError for an AsyncClient."""
    if isinstance(driver, SyncDriver):
        return driver.drive(steps)
    raise asyncio.InvalidStateError("an AsyncClient has only methods that await; give a Client")


async def await_steps(driver: SyncDriver | AsyncDriver, steps: Steps[Result]) -> Result:
    """Run steps without blocking the event loop; those of a blocking client in a thread."""
    if isinstance(driver, AsyncDriver):
        return await driver.drive(steps)
    result: Result = await run_in_thread(lambda: driver.drive(steps))
    return result


async def read_in_thread(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield parts whose iterator blocks."""
    while (part := await run_in_thread(lambda: next(parts, None))) is not None:
        yield part


Driver = TypeVar("Driver", bound=SyncDriver | AsyncDriver)


class Resource(Generic[Driver]):
    """Base class of objects with operations."""

    __slots__ = ("_driver",)

    def __init__(self, driver: Driver) -> None:
        self._driver: Driver = driver


class _HasDriver(Protocol):
    _driver: Any


if TYPE_CHECKING:

    class operation(Generic[Arguments, Result]):
        """Turns a method that returns Steps into one that runs them."""

        def __init__(self, steps: Callable[Concatenate[Any, Arguments], Steps[Result]]) -> None: ...

        @overload
        def __get__(
            self, resource: Resource[SyncDriver], owner: type
        ) -> Callable[Arguments, Result]: ...
        @overload
        def __get__(
            self, resource: Resource[AsyncDriver], owner: type
        ) -> Callable[Arguments, Coroutine[Any, Any, Result]]: ...
        @overload
        def __get__(self, resource: None, owner: type) -> operation[Arguments, Result]: ...
        def __get__(self, resource: Any, owner: type) -> Any: ...

else:

    def operation(steps: Callable[..., Steps[Any]]) -> Callable[..., Any]:
        """Turn a method that returns Steps into one that runs them."""

        @functools.wraps(steps)
        def call(self: _HasDriver, *args: Any, **options: Any) -> Any:
            return self._driver.drive(steps(self, *args, **options))

        return call
