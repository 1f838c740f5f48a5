"""Client of a dry run: its requests are answered by the server, but not made."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any, Final

from carrel_client import AsyncClient
from carrel_client.drivers import AsyncDriver, OpenedStream, Sleep, UnsendableRequest
from carrel_client.errors import ValidationError
from carrel_client.http_messages import IDEMPOTENCY_KEY, BodySource, HttpRequest, HttpResponse

DRY_RUN_CONCURRENCY: Final = 250
"""Number of writes to start at once; they are sent together and answered in this order."""
_MAX_BATCH_CHARACTERS: Final = 4 * 2**20
_MAX_CHARACTERS: Final = 25 * 2**20
"""Every server refuses a longer body, whatever it contains."""

_MAX_UPLOAD_BYTES: Final = 16 * 2**20
"""As base64 they fit into a body."""
_HEADERS_OF_BYTES: Final = frozenset({"Content-Type", "Content-Length", "Repr-Digest"})

_Queued = tuple[HttpRequest, "asyncio.Future[HttpResponse]"]


def dry_run_client(client: AsyncClient, server: str) -> AsyncClient:
    """Return a client for one dry run, which remembers what its requests would change.

    `client` stays open and is closed by its owner.
    """
    return DryRun(client, server).client


class DryRun:
    """One dry run, and others that continue from where it is."""

    def __init__(self, client: AsyncClient, server: str) -> None:
        self._client, self._server = client, server
        self._driver = _DryRunDriver(client)
        self.client = AsyncClient.over(self._driver, server)
        """Client whose requests see the changes of its earlier ones."""

    def fork_client(self) -> AsyncClient:
        """Return a client that begins with the changes so far; its own are not seen here."""
        return AsyncClient.over(_DryRunDriver(self._client, self._driver.state), self._server)


class _DryRunDriver(AsyncDriver):
    """Sends the requests that are started at the same time in one, in order of their start."""

    def __init__(self, client: AsyncClient, state: str = "") -> None:
        self._client = client
        self.state = state
        self._queue: list[_Queued] = []
        self._sending: asyncio.Task[None] | None = None

    async def send(self, request: HttpRequest) -> HttpResponse:
        if request.source is not None:
            request = await asyncio.to_thread(_upload_as_json, request, request.source)
        response: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()
        self._queue.append((request, response))
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_queue())
        return await response

    async def open_stream(self, request: HttpRequest) -> OpenedStream:
        raise UnsendableRequest("a dry run has no streams")

    async def read_chunk(self, stream: Any) -> bytes | None:
        raise UnsendableRequest("a dry run has no streams")

    async def close_stream(self, stream: Any) -> None:
        raise UnsendableRequest("a dry run has no streams")

    def check_pause(self, pause: Sleep) -> None:
        """Deadlines are those of the requests that are sent."""

    async def aclose(self) -> None:
        if self._sending is not None:
            self._sending.cancel()

    async def _send_queue(self) -> None:
        try:
            while self._queue:
                await self._send_batch(self._take_batch())
        finally:
            self._sending = None

    def _take_batch(self) -> list[_Queued]:
        count, size = 0, 0
        for request, _ in self._queue[:DRY_RUN_CONCURRENCY]:
            size += _body_size(request)
            if count and size > _MAX_BATCH_CHARACTERS:
                break
            count += 1
        batch, self._queue = self._queue[:count], self._queue[count:]
        return batch

    async def _send_batch(self, batch: list[_Queued]) -> None:
        requests = [_request_to_json(request) for request, _ in batch]
        try:
            result = await self._client.dry_run(requests, state=self.state)
        except Exception as problem:
            for _, future in batch:
                if not future.done():
                    future.set_exception(problem)
            return
        self.state = result.state
        for (_, future), answer in zip(batch, result.responses, strict=True):
            content = b"" if answer.body is None else json.dumps(answer.body).encode()
            if not future.done():
                future.set_result(HttpResponse(answer.status, content, answer.headers))


def _request_to_json(request: HttpRequest) -> dict[str, Any]:
    headers = {name: value for name, value in request.headers.items() if name != IDEMPOTENCY_KEY}
    is_too_long = _body_size(request) > _MAX_CHARACTERS
    body = {"content": "x" * _MAX_CHARACTERS} if is_too_long else request.body
    return {
        "method": request.method,
        "path": request.path,
        "query": dict(request.query),
        "headers": headers,
        "body": body,
    }


def _upload_as_json(request: HttpRequest, source: BodySource) -> HttpRequest:
    """The same write with its bytes in a JSON body. Raises ValidationError if they are too many."""
    size = int(request.headers["Content-Length"])
    if size > _MAX_UPLOAD_BYTES:
        raise ValidationError(
            f"a dry run checks files of up to {_MAX_UPLOAD_BYTES} bytes; this one has {size}"
        )
    content = base64.b64encode(b"".join(source.parts())).decode("ascii")
    body: dict[str, Any] = {"content": content, "encoding": "base64"}
    body["contentType"] = request.query["contentType"]
    body["acceptTemplateUpdate"] = "acceptTemplateUpdate" in request.query
    headers = {
        name: value for name, value in request.headers.items() if name not in _HEADERS_OF_BYTES
    }
    return HttpRequest(request.method, request.path, {}, headers, body)


def _body_size(request: HttpRequest) -> int:
    if not isinstance(request.body, dict):
        return 0
    writes = request.body.get("writes", (request.body,))
    return sum(len(write.get("content", "")) for write in writes)
