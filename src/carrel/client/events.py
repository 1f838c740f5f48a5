"""What happens on a server, as it happens: taken up again where it was broken off."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, AsyncIterable, Collection
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

from carrel.client.errors import InvalidResponse, Malformed, ServerError
from carrel.client.httpx_import import httpx
from carrel.client.requests import error_from_response

CONNECTED: Final = "connected"
"""Said of no event but of the stream: from here on nothing is missed."""
SILENCE: Final = 45.0
"""Seconds without a sign of life after which a stream is taken for dead; servers give one in 15."""
FIRST_WAIT: Final = 0.25
LONGEST_WAIT: Final = 30.0
_LOST: Final = (httpx.TransportError, httpx.StreamError)


@dataclass(frozen=True, slots=True)
class Event:
    """An event, free of content."""

    type: str
    id: str = ""
    told: dict[str, Any] = field(default_factory=dict)


async def follow(
    http: httpx.AsyncClient, path: str, types: Collection[str] = (), since: str | None = None
) -> AsyncGenerator[Event, None]:
    """Every event from now on, or after the one of this id, and a CONNECTED for each connection.

    It does not end by itself: a server that is gone is tried again, at growing intervals. Raises
    Refused where it does not let the caller listen.
    """
    last, failures = since, 0
    while True:
        try:
            async with aclosing(_stream(http, path, types, last)) as stream:
                async for heard in stream:
                    last, failures = heard.id or last, 0
                    yield heard
        except Malformed:
            if last is None:
                raise
            last = None  # What it remembers does not reach back so far.
        except (ServerError, InvalidResponse, *_LOST):
            failures += 1
        longest = min(FIRST_WAIT * 2.0**failures, LONGEST_WAIT)
        await asyncio.sleep(longest * (0.5 + random.random() / 2))


async def _stream(
    http: httpx.AsyncClient, path: str, types: Collection[str], last: str | None
) -> AsyncGenerator[Event, None]:
    head = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last} if last else {})
    query = {"types": ",".join(sorted(types))} if types else {}
    read_timeouts = httpx.Timeout(http.timeout.connect, read=SILENCE)
    async with http.stream(
        "GET", path, params=query, headers=head, timeout=read_timeouts
    ) as answer:
        if not answer.is_success:
            await answer.aread()
            raise error_from_response(answer)
        if not answer.headers.get("Content-Type", "").startswith("text/event-stream"):
            raise InvalidResponse("the answer is no stream of events")
        yield Event(CONNECTED)
        async for heard in parsed(answer.aiter_lines()):
            yield heard


async def parsed(lines: AsyncIterable[str]) -> AsyncGenerator[Event, None]:
    """Events from the lines of a stream; one that is only an id says where the stream stands."""
    fields: dict[str, str] = {}
    async for line in lines:
        name, _, value = line.partition(":")
        if line:
            fields[name] = value.removeprefix(" ")
            continue
        if "data" in fields or "id" in fields:
            yield Event(fields.get("event", ""), fields.get("id", ""), _told(fields.get("data")))
        fields = {}


def _told(text: str | None) -> dict[str, Any]:
    try:
        told = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        raise InvalidResponse("an event is not JSON") from None
    return told if isinstance(told, dict) else {}
