"""Server-sent events: their form, and how a stream lives and ends."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs
from tests.support.fake_time_loop import with_fake_time
from tests.support.sample_endpoints import client, sample_app

from carrel.server.http.endpoint import Request, Response, endpoint
from carrel.server.http.metrics import Metrics
from carrel.server.http.sse import HEARTBEAT, Streams, encode_event

pytestmark = pytest.mark.anyio


async def silent() -> AsyncIterator[bytes]:
    yield b"data: 1\n\n"
    await asyncio.Event().wait()


class Listener:
    """A client's side of a stream: what it was sent, and when it leaves."""

    def __init__(self, room: int = 1_000_000) -> None:
        self.heard: list[bytes] = []
        self.room = asyncio.Semaphore(room)
        self.over = False
        self.news = asyncio.Event()
        self._left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        await self.room.acquire()
        self.heard.append(message["body"])
        self.over |= not message["more_body"]
        self.news.set()

    def leave(self) -> None:
        self._left.set()

    async def hears(self, count: int) -> None:
        async with asyncio.timeout(30):
            while len(self.heard) < count:
                self.news.clear()
                await self.news.wait()


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.text(), st.lists))
def test_an_event_is_its_lines_and_a_blank_one(value: Any) -> None:
    text = encode_event(value, id="7", type="workspace.updated").decode()
    assert text.endswith("\n\n")
    lines = text[:-2].split("\n")
    assert lines[:2] == ["id: 7", "event: workspace.updated"]
    assert len(lines) == 3
    assert lines[2].startswith("data: ")
    assert "\r" not in text


def test_an_event_may_be_nothing_but_its_data() -> None:
    assert encode_event({"path": "a\nb"}) == b'data: {"path":"a\\nb"}\n\n'


@pytest.mark.parametrize("hostile", ["1\ndata: x", "1\r", "\0", "\u2028"])
def test_an_id_or_a_type_cannot_become_another_line(hostile: str) -> None:
    with pytest.raises(ValueError, match="must be printable"):
        encode_event(1, id=hostile)
    with pytest.raises(ValueError, match="must be printable"):
        encode_event(1, type=hostile)


async def test_events_arrive_with_the_headers_that_keep_proxies_from_waiting() -> None:
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
async def test_a_silent_stream_is_kept_awake() -> None:
    streams, listener = Streams(asyncio.Event(), heartbeat_seconds=0.02), Listener()
    pouring = asyncio.create_task(
        streams.forward(silent(), listener.receive, listener.send, HEARTBEAT)
    )
    await listener.hears(4)
    listener.leave()
    assert await pouring is False
    assert listener.heard[:4] == [b"data: 1\n\n", HEARTBEAT, HEARTBEAT, HEARTBEAT]
    assert len(streams) == 0


@with_fake_time
async def test_what_is_no_event_stream_gets_nothing_it_did_not_say() -> None:
    streams, listener = Streams(asyncio.Event(), heartbeat_seconds=0.01), Listener()

    async def source() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x"
            await asyncio.sleep(0.03)

    assert await streams.forward(source(), listener.receive, listener.send, None)
    assert listener.heard == [b"x", b"x", b"x", b""]
    assert listener.over


@with_fake_time
async def test_a_stream_that_speaks_is_not_spoken_over() -> None:
    streams, listener = Streams(asyncio.Event(), heartbeat_seconds=0.5), Listener()

    async def source() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b"x"
            await asyncio.sleep(0.2)

    assert await streams.forward(source(), listener.receive, listener.send, HEARTBEAT)
    assert listener.heard == [b"x"] * 5 + [b""]


async def test_nothing_is_left_of_a_stream_that_ended() -> None:
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
    left = asyncio.all_tasks() - before
    async with asyncio.timeout(30):
        await asyncio.gather(*left, return_exceptions=True)


async def test_closing_ends_every_stream_cleanly_and_admits_no_other() -> None:
    closing = asyncio.Event()
    streams, listeners = Streams(closing), [Listener() for _ in range(10)]
    pouring = [
        asyncio.create_task(streams.forward(silent(), one.receive, one.send, HEARTBEAT))
        for one in listeners
    ]
    for listener in listeners:
        await listener.hears(1)
    closing.set()
    assert await asyncio.gather(*pouring) == [False] * 10
    assert all(listener.over for listener in listeners)
    late = Listener()
    assert not await streams.forward(silent(), late.receive, late.send, HEARTBEAT)
    assert late.heard == [b""]


@with_fake_time
async def test_a_reader_that_does_not_keep_up_holds_up_its_source() -> None:
    made = 0

    async def source() -> AsyncIterator[bytes]:
        nonlocal made
        while True:
            made += 1
            yield b"x"

    streams, listener = Streams(asyncio.Event(), heartbeat_seconds=0.01), Listener(room=3)
    pouring = asyncio.create_task(
        streams.forward(source(), listener.receive, listener.send, HEARTBEAT)
    )
    await listener.hears(3)
    for _ in range(100):
        await asyncio.sleep(0)
    assert made == 4
    listener.leave()
    listener.room.release()
    await pouring
    assert made <= 5


async def test_a_cancelled_request_is_not_mistaken_for_a_client_that_left() -> None:
    streams, listener = Streams(asyncio.Event()), Listener()
    pouring = asyncio.create_task(
        streams.forward(silent(), listener.receive, listener.send, HEARTBEAT)
    )
    await listener.hears(1)
    pouring.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pouring


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

    with capture_logs() as logs:
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
    pouring = [
        asyncio.create_task(streams.forward(silent(), one.receive, one.send, HEARTBEAT))
        for one in listeners
    ]
    for listener in listeners:
        await listener.hears(1)
    used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert len(asyncio.all_tasks()) - tasks <= 2 * 1000 + 1
    assert used / 1000 < 16_000
    for listener in listeners:
        listener.leave()
    await asyncio.gather(*pouring)
    assert len(streams) == 0
    assert b"carrel_event_streams_open 0.0" in metrics.render()


async def test_an_open_stream_is_no_request_in_flight() -> None:
    metrics = Metrics()
    seen: list[bytes] = []

    @endpoint("GET", "/v1/looking", responses={200: None})
    async def looking(call: Request) -> Response:
        async def source() -> AsyncIterator[bytes]:
            seen.append(metrics.render())
            yield b"data: 1\n\n"

        return Response.stream(source())

    async with client(sample_app(looking, metrics=metrics)) as http:
        await http.get("/v1/looking")
    assert b"carrel_event_streams_open 1.0" in seen[0]
    assert b"carrel_requests_in_flight 0.0" in seen[0]
    assert b"carrel_event_streams_open 0.0" in metrics.render()
