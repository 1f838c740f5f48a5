"""Driver that calls a server in the same process, without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol
from urllib.parse import quote_plus

from carrel_client.drivers import (
    AsyncDriver,
    OpenedStream,
    Sleep,
    UnsendableRequest,
    read_in_thread,
    run_in_thread,
)
from carrel_client.http_messages import (
    IDEMPOTENCY_KEY,
    BodySink,
    HttpRequest,
    HttpResponse,
    Query,
)

_NO_HEADERS: Final[Mapping[bytes, bytes]] = {}
_JSON_TYPE: Final = (b"content-type", b"application/json")


class LocalResponse(Protocol):
    """The response of a server in the same process."""

    @property
    def status(self) -> int: ...

    @property
    def body(self) -> bytes: ...

    @property
    def headers(self) -> Sequence[tuple[bytes, bytes]]: ...

    @property
    def source(self) -> AsyncIterator[bytes] | None:
        """Chunks of the body, if it is streamed."""


Respond = Callable[
    [tuple[str, bytes], bytes, Mapping[bytes, bytes], bytes | AsyncIterator[bytes]],
    Awaitable[LocalResponse],
]
"""Called with (method, path), query, headers by lower-case name, and body."""


class JsonCodec(Protocol):
    def encode(self, value: Any) -> bytes: ...

    def decode(self, content: bytes) -> Any:
        """Raises ValueError."""


class InProcessResponse(HttpResponse):
    """A response whose headers are decoded when they are read."""

    __slots__ = ("_codec", "_pairs")

    def __init__(
        self, status: int, content: bytes, pairs: Sequence[tuple[bytes, bytes]], codec: JsonCodec
    ) -> None:
        self.status = status
        self.content = content
        self.reason = ""
        self.may_retry = True
        self._pairs = pairs
        self._codec = codec

    @property
    def headers(self) -> Mapping[str, str]:  # type: ignore[override]  # read-only here
        pairs = self._pairs
        return {name.decode("latin-1"): value.decode("latin-1") for name, value in pairs}

    def decode(self) -> Any:
        return self._codec.decode(self.content)


class InProcessDriver(AsyncDriver):
    """Calls a server in the same process, in the task of the caller.

    An idempotency key that the caller did not give is not sent: no response can be lost. Errors
    other than refusals are raised as they are.
    """

    def __init__(self, respond: Respond, codec: JsonCodec) -> None:
        self._respond = respond
        self._codec = codec

    async def send(self, request: HttpRequest) -> HttpResponse:
        headers = _NO_HEADERS
        body: bytes | AsyncIterator[bytes] = b""
        is_key_dropped = request.key_is_generated
        try:
            target = (request.method, request.path.encode("ascii"))
            query = _query_string(request.query) if request.query else b""
            if request.headers:
                headers = _encode_headers(request.headers, drop_key=is_key_dropped)
            if request.source is not None:
                body = read_in_thread(request.source.parts())
            if request.body is not None:
                headers = dict([*headers.items(), _JSON_TYPE])
                body = self._codec.encode(request.body)
        except UnicodeError as error:
            raise UnsendableRequest(str(error)) from error
        local = await self._respond(target, query, headers, body)
        content = local.body
        if request.sink is not None and local.status // 100 == 2:
            content = await _forward(local, request.sink, self._codec)
        elif local.source is not None:
            content = b"".join([chunk async for chunk in local.source])
        response = InProcessResponse(local.status, content, local.headers, self._codec)
        response.may_retry = not is_key_dropped
        return response

    async def open_stream(self, request: HttpRequest) -> OpenedStream:
        local = await self._respond(
            (request.method, request.path.encode("ascii")),
            _query_string(request.query),
            _encode_headers(request.headers, drop_key=False),
            b"",
        )
        response = InProcessResponse(local.status, local.body, local.headers, self._codec)
        return OpenedStream(response, local.source)

    async def read_chunk(self, stream: AsyncIterator[bytes]) -> bytes | None:
        try:
            return await stream.__anext__()
        except StopAsyncIteration:
            return None

    async def close_stream(self, stream: Any) -> None:
        if (close := getattr(stream, "aclose", None)) is not None:
            await close()

    def check_pause(self, pause: Sleep) -> None:
        """There is no deadline in process."""

    async def aclose(self) -> None:
        """The store is closed by the program that opened it."""


async def _forward(local: LocalResponse, sink: BodySink, codec: JsonCodec) -> bytes:
    """Write the body to a sink; what remains is empty."""
    head = InProcessResponse(local.status, b"", local.headers, codec)
    await run_in_thread(lambda: sink.begin(head))
    if local.source is None:
        await run_in_thread(lambda: sink.write(local.body))
    else:
        async for part in local.source:
            await run_in_thread(lambda part=part: sink.write(part))  # type: ignore[misc]
    return b""


def _query_string(query: Query) -> bytes:
    pairs = (
        f"{name}={quote_plus(value)}"
        for name, values in query.items()
        for value in ((values,) if isinstance(values, str) else values)
    )
    return "&".join(pairs).encode("ascii")


def _encode_headers(headers: Mapping[str, str], *, drop_key: bool) -> dict[bytes, bytes]:
    return {
        name.lower().encode("ascii"): value.encode()
        for name, value in headers.items()
        if not (drop_key and name == IDEMPOTENCY_KEY)
    }
