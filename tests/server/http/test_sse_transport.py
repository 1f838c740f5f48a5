"""Server-sent events: their encoding, and the life of a stream."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.fake_time_loop import with_fake_time
from tests.support.logs import captured_logs
from tests.support.sample_endpoints import client, sample_app

from carrel.server.http.endpoint import Request, Response, endpoint
from carrel.server.http.metrics import Metrics
from carrel.server.http.sse_transport import HEARTBEAT, Streams, encode_event

pytestmark = pytest.mark.anyio


async def silent() -> AsyncIterator[bytes]:
    yield b"data: 1\n\n"
    await asyncio.Event().wait()


class Listener:
    """A client's side of a stream: the chunks received and the disconnect."""

    def __init__(self, capacity: int = 1_000_000) -> None:
        self.received: list[bytes] = []
        self.capacity = asyncio.Semaphore(capacity)
        self.ended = False
        self.changed = asyncio.Event()
        self._disconnected = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self._disconnected.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        await self.capacity.acquire()
        self.received.append(message["body"])
        self.ended |= not message["more_body"]
        self.changed.set()

    def disconnect(self) -> None:
        self._disconnected.set()

    async def wait_for_chunks(self, count: int) -> None:
        async with asyncio.timeout(30):
            while len(self.received) < count:
                self.changed.clear()
                await self.changed.wait()


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.text(), st.lists))
def test_an_event_is_encoded_as_lines_and_a_blank_line(value: Any) -> None:
    text = encode_event(value, id="7", type="workspace.updated").decode()
    assert text.endswith("\n\n")
    lines = text[:-2].split("\n")
    assert lines[:2] == ["id: 7", "event: workspace.updated"]
    assert len(lines) == 3
    assert lines[2].startswith("data: ")
    assert "\r" not in text


def test_an_event_may_consist_of_data_only() -> None:
    assert encode_event({"path": "a\nb"}) == b'data: {"path":"a\\nb"}\n\n'


@pytest.mark.parametrize("hostile", ["1\ndata: x", "1\r", "\0", "\u2028"])
def test_an_id_or_a_type_cannot_become_another_line(hostile: str) -> None:
    with pytest.raises(ValueError, match="must be printable"):
        encode_event(1, id=hostile)
    with pytest.raises(ValueError, match="must be printable"):
        encode_event(1, type=hostile)


async def test_events_arrive_with_headers_that_disable_proxy_buffering() -> None:
    async with client() as http:
        answer = await http.get("/v1/ticks/2")
        assert answer.text == (
            'id: 0\nevent: tick\ndata: {"n":0}\n\nid: 1\nevent: tick\ndata: {"n":1}\n\n'
        )
        assert answer.headers["content-type"] == "text/event-stream"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-accel-buffering"] == "no"
        assert "content-length" not in answer.headers


@with_fake_time
async def test_an_idle_stream_gets_heartbeats() -> None:
    streams, listener = Streams(asyncio.Event(), heartbeat_seconds=0.02), Listener()
    forwarding = asyncio.create_task(
        streams.forward(silent(), listener.receive, listener.send, HEARTBEAT)
    )
    await listener.wait_for_chunks(4)
    listener.disconnect()
    assert await forwarding is False
    assert listener.received[:4] == [b"data: 1\n\n", HEARTBEAT, HEARTBEAT, HEARTBEAT]
    assert len(streams) == 0


@with_fake_time
async def test_a_stream_without_heartbeats_forwards_only_its_chunks() -> None:
    streams, listener = Streams(asyncio.Event(), heartbeat_seconds=0.01), Listener()

    async def source() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x"
            await asyncio.sleep(0.03)

    assert await streams.forward(source(), listener.receive, listener.send, None)
    assert listener.received == [b"x", b"x", b"x", b""]
    assert listener.ended


@with_fake_time
async def test_an_active_stream_gets_no_heartbeats() -> None:
    streams, listener = Streams(asyncio.Event(), heartbeat_seconds=0.5), Listener()

    async def source() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b"x"
            await asyncio.sleep(0.2)

    assert await streams.forward(source(), listener.receive, listener.send, HEARTBEAT)
    assert listener.received == [b"x"] * 5 + [b""]


async def test_an_ended_stream_leaves_no_task() -> None:
    class Source:
        closed = False

        def __aiter__(self) -> Source:
            return self

        async def __anext__(self) -> bytes:
            raise StopAsyncIteration

        async def aclose(self) -> None:
            self.closed = True

    before = asyncio.all_tasks()
    streams, listener, source = Streams(asyncio.Event()), Listener(), Source()
    assert await streams.forward(source, listener.receive, listener.send, HEARTBEAT)
    assert source.closed
    leftover = asyncio.all_tasks() - before
    async with asyncio.timeout(30):
        await asyncio.gather(*leftover, return_exceptions=True)


async def test_closing_ends_every_stream_and_refuses_new_ones() -> None:
    closing = asyncio.Event()
    streams, listeners = Streams(closing), [Listener() for _ in range(10)]
    forwarding = [
        asyncio.create_task(streams.forward(silent(), listener.receive, listener.send, HEARTBEAT))
        for listener in listeners
    ]
    for listener in listeners:
        await listener.wait_for_chunks(1)
    closing.set()
    assert await asyncio.gather(*forwarding) == [False] * 10
    assert all(listener.ended for listener in listeners)
    late = Listener()
    assert not await streams.forward(silent(), late.receive, late.send, HEARTBEAT)
    assert late.received == [b""]


@with_fake_time
async def test_a_slow_reader_blocks_its_source() -> None:
    produced = 0

    async def source() -> AsyncIterator[bytes]:
        nonlocal produced
        while True:
            produced += 1
            yield b"x"

    streams, listener = Streams(asyncio.Event(), heartbeat_seconds=0.01), Listener(capacity=3)
    forwarding = asyncio.create_task(
        streams.forward(source(), listener.receive, listener.send, HEARTBEAT)
    )
    await listener.wait_for_chunks(3)
    for _ in range(100):
        await asyncio.sleep(0)
    assert produced == 4
    listener.disconnect()
    listener.capacity.release()
    await forwarding
    assert produced <= 5


async def test_a_cancelled_request_raises_the_cancellation() -> None:
    streams, listener = Streams(asyncio.Event()), Listener()
    forwarding = asyncio.create_task(
        streams.forward(silent(), listener.receive, listener.send, HEARTBEAT)
    )
    await listener.wait_for_chunks(1)
    forwarding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await forwarding


async def test_a_source_that_fails_is_logged_once_and_the_stream_is_cut() -> None:
    @endpoint("GET", "/v1/failing", responses={200: None})
    async def failing(call: Request) -> Response:
        async def source() -> AsyncIterator[bytes]:
            yield b"data: 1\n\n"
            raise KeyError("content")

        return Response.stream(source())

    listener = Listener()
    scope = {
        "type": "http",
        "method": "GET",
        "raw_path": b"/v1/failing",
        "query_string": b"",
        "headers": [(b"authorization", b"Bearer ada")],
    }
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    with captured_logs() as logs:
        await sample_app(failing)(scope, listener.receive, send)
    assert [message.get("more_body") for message in sent] == [None, True]
    [line] = [line for line in logs if line["log_level"] == "error"]
    assert line["failure"]["error"] == "builtins.KeyError"
    assert "content" not in str(line)


async def test_a_thousand_streams_are_cheap_and_counted() -> None:
    metrics = Metrics()
    streams, listeners = Streams(asyncio.Event()), [Listener() for _ in range(1000)]
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tasks = len(asyncio.all_tasks())
    forwarding = [
        asyncio.create_task(streams.forward(silent(), listener.receive, listener.send, HEARTBEAT))
        for listener in listeners
    ]
    for listener in listeners:
        await listener.wait_for_chunks(1)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(asyncio.all_tasks()) - tasks <= 2 * 1000 + 1
    assert used / 1000 < 16_000
    for listener in listeners:
        listener.disconnect()
    await asyncio.gather(*forwarding)
    assert len(streams) == 0
    assert b"carrel_event_streams_open 0.0" in metrics.render()


async def test_an_open_stream_is_not_a_request_in_flight() -> None:
    metrics = Metrics()
    snapshots: list[bytes] = []

    @endpoint("GET", "/v1/streaming", responses={200: None})
    async def streaming(call: Request) -> Response:
        async def source() -> AsyncIterator[bytes]:
            snapshots.append(metrics.render())
            yield b"data: 1\n\n"

        return Response.stream(source())

    async with client(sample_app(streaming, metrics=metrics)) as http:
        await http.get("/v1/streaming")
    assert b"carrel_event_streams_open 1.0" in snapshots[0]
    assert b"carrel_requests_in_flight 0.0" in snapshots[0]
    assert b"carrel_event_streams_open 0.0" in metrics.render()
