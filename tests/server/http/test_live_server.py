"""Slow, endless and disconnecting clients against a real server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from tests.support.live_server import RawConnection, serving
from tests.support.logs import captured_logs
from tests.support.sample_endpoints import SAMPLE_ENDPOINTS, authenticate, sample_app, sample_ports

from carrel.server.http import uvicorn_protocol
from carrel.server.http.app import create_app
from carrel.server.http.endpoint import Request, Response, endpoint
from carrel.server.http.metrics import Metrics
from carrel.server.http.request_parsing import BodyLimits

pytestmark = pytest.mark.anyio

CHUNKED = "Transfer-Encoding: chunked"


async def test_encoded_and_raw_slashes_of_a_path_are_equal() -> None:
    with serving(sample_app()) as port:
        wire = await RawConnection.to(port)
        body = b'{"text": "x"}'
        await wire.write_request(
            "PUT /v1/notes/a%2Fb.md HTTP/1.1", f"Content-Length: {len(body)}", body=body
        )
        assert (await wire.read_response())[0] == 200
        await wire.write_request("GET /v1/notes/a/b.md HTTP/1.1")
        status, _, content = await wire.read_response()
        assert (status, json.loads(content)["path"]) == (200, "a/b.md")
        await wire.close()


async def test_a_chunked_body_over_the_limit_is_413_and_the_connection_stays_open() -> None:
    with serving(sample_app()) as port:
        wire = await RawConnection.to(port)
        await wire.write_request("POST /v1/bytes HTTP/1.1", CHUNKED)
        chunk = b"x" * 20_000
        for _ in range(6):
            await wire.send(b"%x\r\n%s\r\n" % (len(chunk), chunk))
        status, _, body = await wire.read_response()
        assert (status, json.loads(body)["error"]) == (413, "payload_too_large")
        await wire.send(b"0\r\n\r\n")
        await wire.write_request("GET /alive HTTP/1.1")
        assert (await wire.read_response())[0] == 200
        await wire.close()


async def test_a_declared_ten_megabytes_are_refused_before_they_are_sent() -> None:
    with serving(sample_app()) as port:
        wire = await RawConnection.to(port)
        await wire.write_request(
            "PUT /v1/notes/a HTTP/1.1", "Content-Length: 10000000", "Expect: 100-continue"
        )
        status, _, body = await wire.read_response()
        assert (status, json.loads(body)["error"]) == (413, "payload_too_large")
        await wire.close()


async def test_a_body_that_never_arrives_returns_408() -> None:
    with serving(sample_app(limits=BodyLimits(timeout_seconds=0.2))) as port:
        wire = await RawConnection.to(port)
        await wire.write_request("PUT /v1/notes/a HTTP/1.1", "Content-Length: 100", body=b'{"text"')
        status, headers, body = await wire.read_response()
        assert (status, json.loads(body)["error"]) == (408, "request_timeout")
        assert headers["connection"] == "close"
        assert await wire.is_closed()
        await wire.close()


def limit_heads(monkeypatch: pytest.MonkeyPatch, seconds: float = 0.2) -> None:
    monkeypatch.setattr(uvicorn_protocol, "HEAD_TIMEOUT_SECONDS", seconds)


@pytest.mark.parametrize(
    "sent", [b"", b"GET /alive HT", b"GET /alive HTTP/1.1\r\nHost: carrel\r\n"]
)
@pytest.mark.parametrize("earlier_requests", [0, 1])
async def test_headers_that_never_come_return_408(
    sent: bytes, earlier_requests: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not earlier_requests:
        limit_heads(monkeypatch)
    with serving(sample_app()) as port:
        wire = await RawConnection.to(port)
        for _ in range(earlier_requests):
            await wire.write_request("GET /alive HTTP/1.1")
            assert (await wire.read_response())[0] == 200
            sent = sent or b"G"  # An idle connection stays open.
        limit_heads(monkeypatch)
        await wire.send(sent)
        status, headers, body = await wire.read_response()
        assert (status, json.loads(body)["error"]) == (408, "request_timeout")
        assert (headers["connection"], headers["x-content-type-options"]) == ("close", "nosniff")
        assert await wire.is_closed()
        await wire.close()


async def test_trickled_headers_return_408(monkeypatch: pytest.MonkeyPatch) -> None:
    limit_heads(monkeypatch)
    with serving(sample_app()) as port:
        wire = await RawConnection.to(port)
        await wire.send(b"GET /alive HTTP/1.1\r\n")
        trickling = asyncio.create_task(trickle(wire, b"A: b\r\n"))
        async with asyncio.timeout(30):
            status, _, _ = await wire.read_response()
        assert status == 408
        await stop_trickling(trickling, wire)


async def test_a_connection_ends_if_a_refused_body_is_trickled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving(sample_app()) as port:
        wire = await RawConnection.to(port)
        await wire.write_request("PUT /v1/notes/a HTTP/1.1", "Content-Length: 10000000")
        assert (await wire.read_response())[0] == 413
        limit_heads(monkeypatch)
        trickling = asyncio.create_task(trickle(wire, b"x"))
        async with asyncio.timeout(30):
            with suppress(ConnectionError):
                assert await wire.is_closed()
        await stop_trickling(trickling, wire)


async def test_a_response_that_takes_longer_than_headers_may_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit_heads(monkeypatch, seconds=1)
    release = threading.Event()

    @endpoint("GET", "/v1/slow", responses={200: None})
    async def slow(call: Request) -> Response:
        await asyncio.to_thread(release.wait, 30)
        return Response.json({})

    with serving(sample_app(slow)) as port:
        wire, other = await RawConnection.to(port), await RawConnection.to(port)
        await wire.write_request("GET /v1/slow HTTP/1.1")
        assert (await other.read_response())[0] == 408
        release.set()
        assert (await wire.read_response())[0] == 200
        await wire.close()
        await other.close()


async def trickle(wire: RawConnection, part: bytes) -> None:
    while True:
        await wire.send(part)
        await asyncio.sleep(0.01)


async def stop_trickling(trickling: asyncio.Task[None], wire: RawConnection) -> None:
    trickling.cancel()
    with suppress(asyncio.CancelledError, ConnectionError):
        await trickling
    with suppress(ConnectionError):
        await wire.close()


async def test_a_trickled_body_returns_408() -> None:
    with serving(
        sample_app(limits=BodyLimits(timeout_seconds=0.3, min_bytes_per_second=1000))
    ) as port:
        wire = await RawConnection.to(port)
        await wire.write_request("PUT /v1/notes/a HTTP/1.1", CHUNKED)
        trickling = asyncio.create_task(trickle(wire, b"1\r\nx\r\n"))
        async with asyncio.timeout(30):
            status, _, _ = await wire.read_response()
        assert status == 408
        await stop_trickling(trickling, wire)


async def test_a_slow_but_steady_body_arrives() -> None:
    with serving(
        sample_app(limits=BodyLimits(timeout_seconds=0.5, min_bytes_per_second=1))
    ) as port:
        wire = await RawConnection.to(port)
        text = b'{"text": "' + b"x" * 40 + b'"}'
        parts = [text[at : at + 10] for at in range(0, len(text), 10)]
        first, *others = [b"%x\r\n%s\r\n" % (len(part), part) for part in parts]
        # The first part is sent with the head, so that the body extends its deadline at once.
        # Each part adds ten seconds; without them a busy machine would miss the deadline.
        await wire.write_request("PUT /v1/notes/a HTTP/1.1", CHUNKED, body=first)
        for part in others:
            await asyncio.sleep(0.15)
            await wire.send(part)
        await wire.send(b"0\r\n\r\n")
        assert (await wire.read_response())[0] == 200
        await wire.close()


async def test_a_client_that_disconnects_mid_body_logs_no_error() -> None:
    finished = threading.Event()

    class Watched(Metrics):
        def request_finished(self) -> None:
            super().request_finished()
            finished.set()

    metrics = Watched()
    with captured_logs() as logs, serving(sample_app(metrics=metrics)) as port:
        wire = await RawConnection.to(port)
        await wire.write_request("PUT /v1/notes/a HTTP/1.1", "Content-Length: 100", body=b'{"text"')
        await wire.close()
        assert await asyncio.to_thread(finished.wait, 30)
        other = await RawConnection.to(port)
        await other.write_request("GET /alive HTTP/1.1")
        assert (await other.read_response())[0] == 200
        await other.close()
    assert [line for line in logs if line["log_level"] == "error"] == []
    assert b'method="PUT",route="/v1/notes/{path...}",status="closed"} 1.0' in metrics.render()


async def test_a_stream_ends_its_source_when_the_client_disconnects() -> None:
    opened, closed = threading.Event(), threading.Event()

    @endpoint("GET", "/v1/forever", responses={200: None})
    async def forever(call: Request) -> Response:
        async def source() -> AsyncIterator[bytes]:
            opened.set()
            try:
                yield b"data: 1\n\n"
                await asyncio.Event().wait()
            finally:
                closed.set()

        return Response.stream(source())

    with serving(sample_app(forever)) as port:
        wire = await RawConnection.to(port)
        await wire.write_request("GET /v1/forever HTTP/1.1")
        assert (await wire.read_head())[1]["content-type"] == "text/event-stream"
        assert opened.wait(30)
        assert not closed.is_set()
        await wire.close()
        assert await asyncio.to_thread(closed.wait, 30)


async def test_open_streams_end_when_the_server_closes() -> None:
    closing: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    @endpoint("GET", "/v1/forever", responses={200: None})
    async def forever(call: Request) -> Response:
        async def source() -> AsyncIterator[bytes]:
            closing.append((asyncio.get_running_loop(), app.closing))
            yield b"data: 1\n\n"
            await asyncio.Event().wait()

        return Response.stream(source())

    app = create_app(sample_ports(), [*SAMPLE_ENDPOINTS, forever], authenticate, metrics=Metrics())
    with serving(app) as port:
        wires = [await RawConnection.to(port) for _ in range(5)]
        for wire in wires:
            await wire.write_request("GET /v1/forever HTTP/1.1")
            await wire.reader.readuntil(b"data: 1\n\n")
        loop, event = closing[0]
        loop.call_soon_threadsafe(event.set)
        for wire in wires:
            async with asyncio.timeout(30):
                await wire.reader.readuntil(b"0\r\n\r\n")
            await wire.close()
