"""One implementation, two colours: operations are generators, and a driver does what they ask.

An operation yields what it needs done (a request, a pause, work on files) and is given the result.
It never does such a thing itself, so it can be driven by blocking calls or by an event loop.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, overload

from carrel.client.httpx_import import httpx
from carrel.client.limits import ClientLimits, OpenConnections

Given = ParamSpec("Given")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request; its result is the httpx.Response."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    began: float | None = None
    """When the answer was first asked for, by the clock of ``time.monotonic``."""

    def arguments(self) -> dict[str, Any]:
        """As both clients of httpx take them."""
        headers = {name: value.encode() for name, value in self.headers.items()}
        asked = {"method": self.method, "url": self.path, "headers": headers}
        if self.query:
            asked["params"] = self.query
        return asked if self.body is None else asked | {"json": self.body}


@dataclass(frozen=True, slots=True)
class Sleep:
    seconds: float
    began: float | None = None
    """As that of the request that is to be sent again, if it waits for one."""


@dataclass(frozen=True, slots=True)
class BlockingCall:
    """Something that takes time or blocks, on this machine; its result is what it returns."""

    call: Callable[[], Any]


Step: TypeAlias = HttpRequest | Sleep | BlockingCall
Steps: TypeAlias = Generator[Step, Any, Result]


def run_blocking(call: Callable[[], Result]) -> Steps[Result]:
    """Have it done where it holds nobody up."""
    result: Result = yield BlockingCall(call)
    return result


class SyncDriver:
    """Does each step in the thread that asks."""

    def __init__(self, http: httpx.Client, bounds: ClientLimits) -> None:
        self.http = http
        self._bounds = bounds
        self._lines = OpenConnections()

    def drive(self, steps: Steps[Result]) -> Result:
        try:
            step = next(steps)
            while True:
                try:
                    result = self._do(step)
                except Exception as problem:
                    step = steps.throw(problem)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # it is what the steps return
        finally:
            steps.close()

    def _do(self, step: Step) -> Any:
        match step:
            case HttpRequest():
                return self._answer(step)
            case Sleep(seconds, began):
                self._bounds.allow(seconds, began)
                return time.sleep(seconds)
            case BlockingCall(call):
                return call()

    def _answer(self, step: HttpRequest) -> httpx.Response:
        left = self._bounds.left(step.began)
        asked = step.arguments() | self._bounds.within(left) | self._lines.traced()
        try:
            with self._lines.cut_after(left), self.http.stream(**asked) as coming:
                taking = self._bounds.taking(coming)
                for piece in coming.iter_bytes():
                    taking.add(piece)
                    self._bounds.left(step.began)
                return taking.whole()
        except httpx.TransportError:
            self._bounds.left(step.began)  # The line was cut, or one wait took all that was left.
            raise


class AsyncDriver:
    """Does each step without holding up the event loop; what blocks goes to a thread."""

    def __init__(self, http: httpx.AsyncClient, bounds: ClientLimits) -> None:
        self.http = http
        self._bounds = bounds

    async def drive(self, steps: Steps[Result]) -> Result:
        try:
            step = next(steps)
            while True:
                try:
                    result = await self._do(step)
                except Exception as problem:
                    step = steps.throw(problem)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # it is what the steps return
        finally:
            steps.close()

    async def _do(self, step: Step) -> Any:
        match step:
            case HttpRequest():
                return await self._answer(step)
            case Sleep(seconds, began):
                self._bounds.allow(seconds, began)
                return await asyncio.sleep(seconds)
            case BlockingCall(call):
                return await _in_thread(call)

    async def _answer(self, step: HttpRequest) -> httpx.Response:
        left = self._bounds.left(step.began)
        asked = step.arguments() | self._bounds.within(left)
        try:
            async with asyncio.timeout(left), self.http.stream(**asked) as coming:
                taking = self._bounds.taking(coming)
                async for piece in coming.aiter_bytes():
                    taking.add(piece)
                return taking.whole()
        except (TimeoutError, httpx.TransportError) as problem:
            self._bounds.left(step.began)
            if isinstance(problem, TimeoutError):
                raise self._bounds.overdue() from None
            raise


async def _in_thread(call: Callable[[], Any]) -> Any:
    """Whoever is cancelled waits for the thread, lest it go on where a lock was already let go."""
    working = asyncio.get_running_loop().run_in_executor(None, call)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        while not working.done():
            try:
                await asyncio.wait({working})
            except asyncio.CancelledError:
                continue
        working.exception()  # What went wrong there is of no interest any more.
        raise


Driver = TypeVar("Driver", bound=SyncDriver | AsyncDriver)


class Resource(Generic[Driver]):
    """Whatever operations are asked of, over either driver."""

    def __init__(self, driver: Driver) -> None:
        self._driver: Driver = driver


class operation(Generic[Given, Result]):
    """Makes a method that gives Steps into one that gives their result, or a coroutine of it."""

    def __init__(self, steps: Callable[Concatenate[Any, Given], Steps[Result]]) -> None:
        self._steps = steps
        self.__doc__ = steps.__doc__

    @overload
    def __get__(self, record_type: Resource[SyncDriver], kind: type) -> Callable[Given, Result]: ...
    @overload
    def __get__(
        self, record_type: Resource[AsyncDriver], kind: type
    ) -> Callable[Given, Coroutine[Any, Any, Result]]: ...
    @overload
    def __get__(self, record_type: None, kind: type) -> operation[Given, Result]: ...
    def __get__(self, record_type: Any, kind: type) -> Any:
        if record_type is None:
            return self

        @functools.wraps(self._steps)
        def asked(*given: Given.args, **named: Given.kwargs) -> Any:
            return record_type._driver.drive(self._steps(record_type, *given, **named))

        return asked
