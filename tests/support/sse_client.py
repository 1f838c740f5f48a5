"""Reads server-sent events as a browser does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx


@dataclass(frozen=True)
class ServerEvent:
    id: str
    type: str
    payload: dict[str, Any]


class Stream:
    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        self.headers = response.headers
        self.last = ""
        """The Last-Event-ID that a browser would send on reconnection."""
        self._lines = response.aiter_lines()

    async def next(self) -> ServerEvent | None:
        """The next event, or None at the end of the stream."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(30):
            async for line in self._lines:
                name, _, value = line.partition(":")
                if line:
                    fields[name] = value.removeprefix(" ")
                    continue
                self.last = fields.get("id", self.last)
                if "data" in fields:
                    return ServerEvent(
                        self.last, fields.get("event", ""), json.loads(fields["data"])
                    )
                fields = {}
        return None

    async def position(self) -> str:
        """The cursor at which the stream starts."""
        async with asyncio.timeout(30):
            async for line in self._lines:
                if line.startswith("id: "):
                    self.last = line.removeprefix("id: ")
                    return self.last
        raise AssertionError("the stream ended without a cursor")

    async def take(self, count: int) -> list[ServerEvent]:
        events = [await self.next() for _ in range(count)]
        assert all(events), "the stream ended too soon"
        return [sent for sent in events if sent]

    async def rest(self) -> list[ServerEvent]:
        """All events until the stream ends."""
        events = []
        while sent := await self.next():
            events.append(sent)
        return events


@asynccontextmanager
async def open_stream(
    client: httpx.AsyncClient, path: str, last: str | None = None
) -> AsyncIterator[Stream]:
    headers = {"Accept": "text/event-stream"}
    if last is not None:
        headers["Last-Event-ID"] = last
    async with client.stream("GET", path, headers=headers) as response:
        if response.status_code != 200:
            await response.aread()
        yield Stream(response)
