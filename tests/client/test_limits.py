"""Limits on the time and size of responses: beyond them an error, and nothing changes."""

from __future__ import annotations

import asyncio
import gzip
import math
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path as File

import httpx
import pytest
from tests.client.server_fixture import AgentEditor, read_directory, stat_directory
from tests.support.server_process import TOKEN, ServerProcess

from carrel_client import (
    AsyncClient,
    Client,
    DeadlineExceeded,
    InvalidResponse,
    ResponseTooLarge,
    ServerError,
    ValidationError,
    requests,
)

TIMEOUT_SECONDS = 30
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
Responder = Callable[[socket.socket, threading.Event], None]


def trickling_head(line: socket.socket, over: threading.Event) -> None:
    line.sendall(HEAD + b"X-Slow: ")
    while not over.wait(0.02):
        line.sendall(b"a")


def trickling_body(line: socket.socket, over: threading.Event) -> None:
    line.sendall(HEAD + b"Content-Length: 100000\r\n\r\n")
    while not over.wait(0.02):
        line.sendall(b" ")


def silent(line: socket.socket, over: threading.Event) -> None:
    over.wait()


def endless(line: socket.socket, over: threading.Event) -> None:
    line.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while not over.is_set():
        line.sendall(b"1000\r\n" + b" " * 4096 + b"\r\n")


def packed(line: socket.socket, over: threading.Event) -> None:
    body = gzip.compress(b" " * 2**22)
    line.sendall(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def announced(line: socket.socket, over: threading.Event) -> None:
    line.sendall(HEAD + b"Content-Length: 99999999999\r\n\r\n")
    over.wait()


def packed_twice(line: socket.socket, over: threading.Event) -> None:
    line.sendall(HEAD + b"Content-Encoding: gzip, gzip\r\nContent-Length: 0\r\n\r\n")


def prompt(line: socket.socket, over: threading.Event) -> None:
    line.sendall(HEAD + b'Content-Length: 13\r\n\r\n{"files": []}')


SLOW = [trickling_head, trickling_body, silent]
LARGE = [endless, packed, announced]


@contextmanager
def serving(respond: Responder) -> Iterator[str]:
    """Run a server that answers every connection with this responder."""
    over = threading.Event()
    threads: list[threading.Thread] = []

    def answer(line: socket.socket) -> None:
        with line:
            try:
                line.recv(65536)
                respond(line, over)
            except OSError:
                pass  # The client closed the connection, as it should.

    def accept() -> None:
        while not over.is_set():
            try:
                line, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=answer, args=(line,)))
            threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept)
        accepting.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("respond", SLOW)
def test_response_after_the_deadline_is_given_up(respond: Responder, directory: File) -> None:
    with serving(respond) as url, Client(url, TOKEN, deadline=0.3) as client:
        began = time.monotonic()
        with pytest.raises(DeadlineExceeded, match=r"within 0\.3 s"):
            client.materialize("ada", directory)
        assert 0.3 <= time.monotonic() - began < 5
        with pytest.raises(DeadlineExceeded):
            client.agent("ada").get("a.md")
    assert not directory.exists()


@pytest.mark.anyio
@pytest.mark.parametrize("respond", SLOW)
async def test_awaiting_client_gives_up_after_the_deadline(
    respond: Responder, directory: File
) -> None:
    with serving(respond) as url:
        async with AsyncClient(url, TOKEN, deadline=0.3) as client:
            began = time.monotonic()
            with pytest.raises(DeadlineExceeded):
                await client.materialize("ada", directory)
            assert 0.3 <= time.monotonic() - began < 5
    assert not read_directory(directory)


@pytest.mark.parametrize("respond", LARGE)
def test_response_over_the_limit_is_given_up(respond: Responder, directory: File) -> None:
    with serving(respond) as url, Client(url, TOKEN, max_response_bytes=100_000) as client:
        with pytest.raises(ResponseTooLarge, match="exceeds 100000 bytes"):
            client.materialize("ada", directory)
        with pytest.raises(ResponseTooLarge):
            client.agent("ada").list()
    assert not directory.exists()


@pytest.mark.anyio
@pytest.mark.parametrize("respond", LARGE)
async def test_awaiting_client_gives_up_over_the_limit(respond: Responder, directory: File) -> None:
    with serving(respond) as url:
        async with AsyncClient(url, TOKEN, max_response_bytes=100_000) as client:
            with pytest.raises(ResponseTooLarge):
                await client.materialize("ada", directory)
    assert not read_directory(directory)


def test_unrequested_encoding_is_not_decompressed(directory: File) -> None:
    with serving(packed_twice) as url, Client(url, TOKEN) as client, pytest.raises(InvalidResponse):
        client.materialize("ada", directory)


def test_earlier_files_stay_and_may_be_used(
    live: ServerProcess, client: Client, editor: AgentEditor, directory: File
) -> None:
    editor.put("a.md", "x" * 1000)
    client.materialize(editor.agent, directory)
    before = stat_directory(directory)
    editor.put("a.md", "y" * 1000)
    with Client(live.url, TOKEN, max_response_bytes=1000) as small:
        with pytest.raises(ResponseTooLarge):
            small.materialize(editor.agent, directory)
        stale = small.materialize(editor.agent, directory, stale_ok=True)
    assert stat_directory(directory) == before
    assert (stale.stale, type(stale.problem)) == (True, ResponseTooLarge)


def test_response_of_exactly_the_limit_is_accepted(
    live: ServerProcess, client: Client, editor: AgentEditor, directory: File
) -> None:
    url = f"/v1/agents/{editor.agent}/files?content=true"
    size = len(editor.http.get(url).content)
    with Client(live.url, TOKEN, max_response_bytes=size) as enough:
        enough.materialize(editor.agent, directory)
    assert read_directory(directory) == editor.served()
    with (
        Client(live.url, TOKEN, max_response_bytes=size - 1) as less,
        pytest.raises(ResponseTooLarge),
    ):
        less.agent(editor.agent).read()


def test_pause_beyond_the_deadline_is_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(requests, "FIRST_PAUSE_SECONDS", 60.0)

    def failing(line: socket.socket, over: threading.Event) -> None:
        line.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")

    with serving(failing) as url, Client(url, TOKEN, deadline=20) as client:
        began = time.monotonic()
        with pytest.raises(ServerError):
            client.agent("ada").list()
        assert time.monotonic() - began < 20


def test_client_works_after_it_has_given_up() -> None:
    answers = iter([trickling_body, prompt])

    def first_slowly(line: socket.socket, over: threading.Event) -> None:
        next(answers)(line, over)

    with serving(first_slowly) as url, Client(url, TOKEN, deadline=0.3) as client:
        with pytest.raises(DeadlineExceeded):
            client.agent("ada").list()
        ends = time.monotonic() + TIMEOUT_SECONDS
        while True:
            try:
                assert client.agent("ada").list() == ()
                break
            except DeadlineExceeded:  # a busy machine may time out once more
                assert time.monotonic() < ends


@pytest.mark.parametrize("bound", ["timeout", "deadline", "max_response_bytes"])
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf])
def test_limits_must_be_positive_numbers(bound: str, value: float) -> None:
    with pytest.raises(ValidationError, match=bound):
        Client("http://carrel", TOKEN, **{bound: value})  # type: ignore[arg-type]  # invalid on purpose


@pytest.mark.anyio
async def test_cancellation_that_arrives_with_the_response_is_not_lost() -> None:
    response: asyncio.Future[httpx.Response] = asyncio.get_running_loop().create_future()

    async def respond(request: httpx.Request) -> httpx.Response:
        return await response

    transport = httpx.MockTransport(respond)
    async with AsyncClient("http://carrel", TOKEN, transport=transport) as client:
        task = asyncio.create_task(client.agents.list())
        await asyncio.sleep(0.01)  # The request waits for its response.
        response.set_result(httpx.Response(200, json={"items": [], "next": None}))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


def test_response_to_a_tool_call_may_take_longer_than_the_timeout() -> None:
    def reply_late(line: socket.socket, over: threading.Event) -> None:
        over.wait(0.6)
        body = b'{"content": "done", "isError": false}'
        line.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)

    with serving(reply_late) as url, Client(url, TOKEN, timeout=0.2, deadline=0.4) as client:
        assert client.agent("ada").tools.call("bash").content == "done"
