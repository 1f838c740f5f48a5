"""Server-sent events: the form of one, and streams that live as long as their reader.

A stream costs two tasks and one timer however long it is open: the request's own, which waits for
the source and sends, and one that waits for the client to leave and sends a comment when nothing
else was sent for a while. Nothing is queued here: a reader that does not keep up holds up its
source, and only that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeAlias

from carrel.server.http.request_parsing import Receive
from carrel.server.http.response import encode

Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]

HEARTBEAT: Final = b":\n\n"
RETRY: Final = b"retry: 1000\n\n"
"""Tells browsers to come back after a second."""


def event(value: Any, *, id: str | None = None, type: str | None = None) -> bytes:
    """One event whose data is JSON, which never holds a raw line break."""
    for field in (id, type):
        if field is not None and not field.isprintable():
            raise ValueError("an event's id and type are one line")
    head = (f"id: {id}\n" if id is not None else "") + (f"event: {type}\n" if type else "")
    return b"%sdata: %s\n\n" % (head.encode(), encode(value))


class Streams:
    """The open streams of one app, which all end when ``closing`` is set."""

    def __init__(self, closing: asyncio.Event, every: float = 15.0) -> None:
        self._closing = closing
        self._every = every
        self._open: set[_Stream] = set()
        self._closer: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    async def pour(
        self, source: AsyncIterator[bytes], receive: Receive, send: Send, heartbeat: bytes | None
    ) -> bool:
        """Send all the source gives; False if it was cut short by the client or by our closing."""
        stream = _Stream(send, heartbeat, self._every)
        if self._closing.is_set():
            return await stream.finish(source, cut=True)
        self._open.add(stream)
        if self._closer is None:
            self._closer = asyncio.create_task(self._close())
        watcher = asyncio.create_task(stream.watch(receive))
        try:
            return await stream.pour(source)
        finally:
            self._open.discard(stream)
            watcher.cancel()
            if not self._open:
                self._closer.cancel()
                self._closer = None

    async def _close(self) -> None:
        await self._closing.wait()
        for stream in list(self._open):
            stream.end(gone=False)


class _Stream:
    def __init__(self, send: Send, heartbeat: bytes | None, every: float) -> None:
        self._send = send
        self._heartbeat = heartbeat
        self._every = every
        self._now = asyncio.get_running_loop().time
        self._last = self._now()
        self._task = asyncio.current_task()
        self._open = True
        self._cut = False
        self._gone = False

    async def pour(self, source: AsyncIterator[bytes]) -> bool:
        try:
            async for chunk in source:
                self._last = self._now()
                await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        except asyncio.CancelledError:
            if not self._cut or self._task is None or self._task.uncancel() > 0:
                raise
        return await self.finish(source, cut=self._cut)

    async def finish(self, source: AsyncIterator[bytes], *, cut: bool) -> bool:
        self._open = False
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()
        if not self._gone:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        return not cut

    async def watch(self, receive: Receive) -> None:
        """Notice when the client leaves; until then, do not let the line fall silent."""
        while True:
            try:
                async with asyncio.timeout_at(self._last + self._every):
                    message = await receive()
            except TimeoutError:
                await self._beat()
            else:
                if message["type"] == "http.disconnect":
                    return self.end(gone=True)

    async def _beat(self) -> None:
        if self._now() - self._last < self._every:
            return
        self._last = self._now()
        if self._heartbeat is not None and self._open:
            beat = {"type": "http.response.body", "body": self._heartbeat, "more_body": True}
            await self._send(beat)

    def end(self, *, gone: bool) -> None:
        """Interrupt the pouring, once, wherever it waits."""
        self._gone |= gone
        if self._open and self._task is not None:
            self._open, self._cut = False, True
            self._task.cancel()
