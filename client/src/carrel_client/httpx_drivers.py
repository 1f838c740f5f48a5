"""Sync and async drivers over httpx."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, Final

from carrel_client.byte_streams import PART_BYTES
from carrel_client.drivers import (
    AsyncDriver,
    OpenedStream,
    Sleep,
    SyncDriver,
    TransportFailure,
    UndecodableBody,
    UnsendableRequest,
    read_in_thread,
    run_in_thread,
)
from carrel_client.http_messages import BodySink, HttpRequest, HttpResponse
from carrel_client.httpx_import import httpx
from carrel_client.limits import ClientLimits, OpenConnections, http_response

_COUNTS_CANCELLATIONS: Final = sys.version_info >= (3, 11)
MAX_SILENCE_SECONDS: Final = 45.0
"""Read timeout of a stream; servers send a comment every 15 seconds."""
_CONNECTION_ERRORS: Final = (
    httpx.NetworkError,
    httpx.TimeoutException,
    httpx.RemoteProtocolError,
    httpx.ProxyError,
    httpx.StreamError,
)


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Raise httpx's errors as ours."""
    try:
        yield
    except _CONNECTION_ERRORS as error:
        reason = str(error) or type(error).__name__
        raise TransportFailure(reason, server=_server_url(error)) from error
    except httpx.DecodingError as error:
        raise UndecodableBody(str(error)) from error
    except (httpx.RequestError, httpx.InvalidURL, UnicodeError) as error:
        raise UnsendableRequest(str(error)) from error


def _server_url(error: Exception) -> str:
    """Return the URL without path and credentials; empty without a request."""
    if not isinstance(error, httpx.RequestError):
        return ""
    try:
        url = error.request.url
    except RuntimeError:
        return ""
    return str(url.copy_with(userinfo=b"", raw_path=b"/", fragment=None)).rstrip("/")


def _arguments(request: HttpRequest) -> dict[str, Any]:
    """The request as arguments of httpx."""
    headers = {name: value.encode() for name, value in request.headers.items()}
    arguments = {"method": request.method, "url": request.path, "headers": headers}
    if request.query:
        arguments["params"] = request.query
    if request.source is not None:
        return arguments | {"content": request.source.parts()}
    return arguments if request.body is None else arguments | {"json": request.body}


def _async_arguments(request: HttpRequest) -> dict[str, Any]:
    arguments = _arguments(request)
    if request.source is not None:
        arguments["content"] = read_in_thread(arguments["content"])
    return arguments


class HttpxDriver(SyncDriver):
    """Sends requests with a blocking httpx client."""

    def __init__(self, http: httpx.Client, limits: ClientLimits) -> None:
        self._http = http
        self._limits = limits
        self._connections = OpenConnections()

    def send(self, request: HttpRequest) -> HttpResponse:
        remaining = self._limits.remaining(request.started_at)
        options: dict[str, Any] = {
            "timeout": self._limits.httpx_timeout(remaining, request.work_seconds),
            "extensions": {"trace": self._connections.trace},
        }
        try:
            with (
                _translate_errors(),
                self._connections.closed_after(remaining),
                self._http.stream(**_arguments(request), **options) as response,
            ):
                if request.sink is not None and response.is_success:
                    return self._forward(response, request.sink)
                buffer = self._limits.buffer_for(response)
                for chunk in response.iter_bytes():
                    buffer.add(chunk)
                    self._limits.remaining(request.started_at)
                return buffer.complete()
        except TransportFailure:
            # Raises DeadlineExceeded if the connection was shut down for that.
            self._limits.remaining(request.started_at)
            raise

    def _forward(self, response: httpx.Response, sink: BodySink) -> HttpResponse:
        head = http_response(response, b"")
        sink.begin(head)
        for chunk in response.iter_bytes(PART_BYTES):
            sink.write(chunk)
        return head

    def open_stream(self, request: HttpRequest) -> OpenedStream:
        trace = {"trace": self._connections.trace}
        with _translate_errors():
            built = self._http.build_request(
                **_arguments(request), timeout=_stream_timeout(), extensions=trace
            )
            response = self._http.send(built, stream=True)
            if not response.is_success:
                return OpenedStream(http_response(response, response.read()), None)
        return OpenedStream(http_response(response, b""), (response, response.iter_bytes()))

    def read_chunk(self, stream: tuple[httpx.Response, Iterator[bytes]]) -> bytes | None:
        with _translate_errors():
            return next(stream[1], None)

    def close_stream(self, stream: tuple[httpx.Response, Iterator[bytes]]) -> None:
        stream[0].close()

    def check_pause(self, pause: Sleep) -> None:
        self._limits.check_pause(pause.seconds, pause.started_at)

    def close(self) -> None:
        self._http.close()


class _Timeout:
    """``asyncio.timeout``, which Python 3.10 does not have.

    Not ``asyncio.wait_for``, which before Python 3.12 loses a cancellation that arrives with the
    result.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._has_expired = False

    async def __aenter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._task = task
        self._cancellations = self._task.cancelling() if _COUNTS_CANCELLATIONS else 0
        self._handle = asyncio.get_running_loop().call_later(self._seconds, self._expire)

    def _expire(self) -> None:
        self._has_expired = True
        self._task.cancel()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._handle.cancel()
        if not self._has_expired:
            return
        remaining = self._task.uncancel() if _COUNTS_CANCELLATIONS else 0
        if remaining <= self._cancellations and kind is asyncio.CancelledError:
            raise asyncio.TimeoutError


class AsyncHttpxDriver(AsyncDriver):
    """Sends requests with an async httpx client."""

    def __init__(self, http: httpx.AsyncClient, limits: ClientLimits) -> None:
        self._http = http
        self._limits = limits

    async def send(self, request: HttpRequest) -> HttpResponse:
        remaining = self._limits.remaining(request.started_at)
        try:
            async with _Timeout(remaining):
                return await self._receive(request, remaining)
        except asyncio.TimeoutError:
            raise self._limits.deadline_exceeded() from None
        except TransportFailure:
            self._limits.remaining(request.started_at)
            raise

    async def _receive(self, request: HttpRequest, remaining: float) -> HttpResponse:
        timeout = self._limits.httpx_timeout(remaining, request.work_seconds)
        with _translate_errors():
            arguments = _async_arguments(request)
            async with self._http.stream(**arguments, timeout=timeout) as response:
                if request.sink is not None and response.is_success:
                    return await self._forward(response, request.sink)
                buffer = self._limits.buffer_for(response)
                async for chunk in response.aiter_bytes():
                    buffer.add(chunk)
                return buffer.complete()

    async def _forward(self, response: httpx.Response, sink: BodySink) -> HttpResponse:
        head = http_response(response, b"")
        await run_in_thread(lambda: sink.begin(head))
        async for chunk in response.aiter_bytes(PART_BYTES):
            await run_in_thread(lambda chunk=chunk: sink.write(chunk))  # type: ignore[misc]
        return head

    async def open_stream(self, request: HttpRequest) -> OpenedStream:
        with _translate_errors():
            built = self._http.build_request(**_arguments(request), timeout=_stream_timeout())
            response = await self._http.send(built, stream=True)
            if not response.is_success:
                return OpenedStream(http_response(response, await response.aread()), None)
        return OpenedStream(http_response(response, b""), (response, response.aiter_bytes()))

    async def read_chunk(self, stream: tuple[httpx.Response, AsyncIterator[bytes]]) -> bytes | None:
        with _translate_errors():
            try:
                return await stream[1].__anext__()
            except StopAsyncIteration:
                return None

    async def close_stream(self, stream: tuple[httpx.Response, AsyncIterator[bytes]]) -> None:
        await stream[0].aclose()

    def check_pause(self, pause: Sleep) -> None:
        self._limits.check_pause(pause.seconds, pause.started_at)

    async def aclose(self) -> None:
        await self._http.aclose()


def _stream_timeout() -> httpx.Timeout:
    return httpx.Timeout(10.0, read=MAX_SILENCE_SECONDS)
