"""The client hears what happens, and takes it up again where it was broken off."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

import httpx
import pytest
from tests.client.server_fixture import Hands, made
from tests.e2e.servers import TOKEN, Live

from carrel_client import (
    CONNECTED,
    AsyncClient,
    Client,
    Event,
    Forbidden,
    InvalidResponse,
    NotFound,
    Conflict,
    events,
)
from carrel_client.events import parsed

UPDATED = "workspace.updated"


@pytest.fixture(autouse=True)
def impatient_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "FIRST_PAUSE_SECONDS", 0.001)


async def until(heard: AsyncGenerator[Event, None], type: str) -> Event:
    async for each in heard:
        if each.type == type:
            return each
    raise AssertionError("the stream ended")


class Cutting(httpx.AsyncHTTPTransport):
    """A network that breaks off every stream after its first event."""

    def __init__(self) -> None:
        super().__init__()
        self.since: list[str | None] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.since.append(request.headers.get("Last-Event-ID"))
        answer = await super().handle_async_request(request)
        return httpx.Response(
            answer.status_code, headers=answer.headers, stream=Broken(answer.stream)
        )


class Broken(httpx.AsyncByteStream):
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
async def test_none_is_missed_when_the_line_is_cut(live: Live, hands: Hands) -> None:
    wire = Cutting()
    agent = made(hands.http.get(f"/v1/agents/{hands.agent}"))["id"]
    found: list[str] = []
    async with (
        AsyncClient(live.url, TOKEN, transport=wire) as desk,
        aclosing(desk.events(types=[UPDATED])) as heard,
    ):
        await until(heard, CONNECTED)
        assert (await anext(heard)).id, "where the stream stands"
        for number in range(6):
            hands.put(f"notes/{number}.md", "x")
        while len(found) < 6:
            event = await until(heard, UPDATED)
            if event.told["workspace"]["name"] == agent:
                found.append(event.told["payload"]["path"])
    assert found == [f"notes/{number}.md" for number in range(6)]
    assert wire.since[0] is None
    assert len(wire.since) >= 6
    assert all(wire.since[1:])


@pytest.mark.anyio
async def test_a_place_that_is_none_is_given_up_and_who_may_not_hear_is_told(
    live: Live, hands: Hands
) -> None:
    async with (
        AsyncClient(live.url, TOKEN) as desk,
        aclosing(desk.events(since="1.2.3.4")) as heard,
    ):
        assert (await until(heard, CONNECTED)).type == CONNECTED
    agent = made(hands.http.get(f"/v1/agents/{hands.agent}"))["id"]
    body = {"name": "k", "kind": "agent", "agentId": agent}
    key = made(hands.http.post("/v1/keys", json=body))["key"]
    async with AsyncClient(live.url, key) as confined:
        with pytest.raises(Forbidden):
            await anext(confined.events())
        async with aclosing(confined.events(own=True)) as heard:
            await until(heard, CONNECTED)
            hands.put("a.md", "x")
            assert (await until(heard, UPDATED)).told["payload"]["path"] == "a.md"


@pytest.mark.anyio
async def test_what_is_no_event_is_refused() -> None:
    async def lines(*given: str) -> AsyncIterator[str]:
        for line in given:
            yield line

    whole = lines(": beat", "", "id: 1", "", "id: 2", "event: x", 'data: {"a": 1}', "", "id: 3")
    assert [each async for each in parsed(whole)] == [Event("", "1"), Event("x", "2", {"a": 1})]
    with pytest.raises(InvalidResponse):
        _ = [each async for each in parsed(lines("data: {", ""))]


def test_agents_and_templates_are_made_found_and_changed(client: Client, hands: Hands) -> None:
    slug = hands.agent + "-2"
    made_now = client.agents.create({"slug": slug, "name": "A", "templateId": hands.template})
    assert client.agents.get(slug) == client.agents.get(made_now["id"]) == made_now
    assert client.templates.get(hands.template)["id"] == made_now["templateId"]
    assert client.agents.change(slug, {"name": "B"})["name"] == "B"
    with pytest.raises(Conflict):
        client.agents.create({"slug": slug, "name": "A"})
    with pytest.raises(NotFound):
        client.agents.get("nobody")
