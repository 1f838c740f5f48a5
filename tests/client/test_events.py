"""Event streams over HTTP: reconnection, invalid streams, and bound credentials."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from tests.client.drivers import next_event
from tests.client.server_fixture import AgentEditor, json_of
from tests.support.server_process import TOKEN, ServerProcess

from carrel_client import (
    CONNECTED,
    AsyncClient,
    Client,
    Forbidden,
    InvalidResponse,
    ValidationError,
)
from carrel_client.event_reader import SseParser

UPDATED = "workspace.updated"


async def until(stream: Any, type: str) -> Any:
    while (event := await next_event(stream)).type != type:
        pass
    return event


class CuttingTransport(httpx.AsyncHTTPTransport):
    """Breaks every stream after its first event."""

    def __init__(self) -> None:
        super().__init__()
        self.cursors: list[str | None] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.cursors.append(request.headers.get("Last-Event-ID"))
        response = await super().handle_async_request(request)
        return httpx.Response(
            response.status_code, headers=response.headers, stream=CutStream(response.stream)
        )


class CutStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream | httpx.AsyncByteStream) -> None:
        assert isinstance(stream, httpx.AsyncByteStream)
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            before, data, rest = chunk.partition(b"data: ")
            event, end, _ = rest.partition(b"\n\n")
            yield before + data + event + end
            if data:
                raise httpx.ReadError("gone")

    async def aclose(self) -> None:
        await self._stream.aclose()


@pytest.mark.anyio
async def test_no_event_is_lost_when_the_connection_breaks(
    live: ServerProcess, editor: AgentEditor
) -> None:
    transport = CuttingTransport()
    agent = json_of(editor.http.get(f"/v1/agents/{editor.agent}"))["id"]
    paths: list[str] = []
    async with (
        AsyncClient(live.url, TOKEN, transport=transport) as client,
        client.events(types=[UPDATED], include_connected=True) as stream,
    ):
        await until(stream, CONNECTED)
        for number in range(6):
            editor.put(f"notes/{number}.md", "x")
        while len(paths) < 6:
            event = await until(stream, UPDATED)
            if event.workspace["name"] == agent:
                paths.append(event.payload["path"])
    assert paths == [f"notes/{number}.md" for number in range(6)]
    assert transport.cursors[0] is None
    assert len(transport.cursors) >= 6
    assert all(transport.cursors[1:])


@pytest.mark.anyio
async def test_bound_credential_reads_its_own_workspace_only(
    live: ServerProcess, editor: AgentEditor
) -> None:
    async with AsyncClient(live.url, TOKEN) as client:
        with pytest.raises(ValidationError):
            await anext(client.events(since="1.2.3.4"))
    agent = json_of(editor.http.get(f"/v1/agents/{editor.agent}"))["id"]
    body = {"name": "k", "kind": "agent", "agentId": agent}
    key = json_of(editor.http.post("/v1/keys", json=body))["key"]
    async with AsyncClient(live.url, key) as bound:
        with pytest.raises(Forbidden):
            await anext(bound.events())
        async with bound.events(own_workspace=True) as stream:
            editor.put("a.md", "x")
            assert (await until(stream, UPDATED)).payload["path"] == "a.md"


class ScriptedServer:
    """Answers each stream request with its next response, and records cursors."""

    def __init__(self, *responses: httpx.Response) -> None:
        self._responses = iter(responses)
        self.cursors: list[str | None] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.cursors.append(request.headers.get("Last-Event-ID"))
        return next(self._responses)


def stream_of(*blocks: str, status: int = 200) -> httpx.Response:
    text = "".join(f"{block}\n\n" for block in blocks)
    return httpx.Response(status, text=text, headers={"Content-Type": "text/event-stream"})


def events_of(server: ScriptedServer, count: int) -> Iterator[str]:
    transport = httpx.MockTransport(server)
    with (
        Client("http://carrel", TOKEN, transport=transport) as client,
        client.events() as stream,
    ):
        for _ in range(count):
            yield next(stream).cursor


def test_cursor_that_the_server_forgot_is_given_up() -> None:
    refused = httpx.Response(400, json={"error": "validation_error", "message": "no such cursor"})
    server = ScriptedServer(
        stream_of('id: 1\nevent: a\ndata: {"x": 1}'),
        refused,
        stream_of("id: 7\nevent: a\ndata: {}"),
    )
    assert list(events_of(server, 2)) == ["1", "7"]
    assert server.cursors == [None, "1", None]


def test_failures_of_the_server_are_retried() -> None:
    server = ScriptedServer(
        stream_of("id: 1\nevent: a\ndata: {}"),
        httpx.Response(503),
        httpx.Response(200, text="<html>"),
        stream_of("id: 2\nevent: a\ndata: {"),
        stream_of(": comment", "id: 3", "id: 4\nevent: a\ndata: {}"),
    )
    assert list(events_of(server, 2)) == ["1", "4"]
    assert server.cursors == [None, "1", "1", "1", "1"]


def test_events_are_parsed_across_chunks() -> None:
    parser = SseParser()
    text = b': beat\n\nid: 1\n\nid: 2\r\nevent: x\r\ndata: {"payload": {"a": 1}}\r\n\r\nid: 3'
    events = [event for byte in text for event in parser.feed(bytes([byte]))]
    assert [(event.type, event.cursor) for event in events] == [("", "1"), ("x", "2")]
    assert events[1].payload == {"a": 1}
    for invalid in (b"data: {\n\n", b'data: {"timestamp": "noon"}\n\n'):
        with pytest.raises(InvalidResponse):
            SseParser().feed(invalid)
