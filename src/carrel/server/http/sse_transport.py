"""Server-sent events: encoding, heartbeat and disconnect detection.

A stream uses two tasks and one timer: the request's task, which reads the source and sends, and a
watcher, which waits for a disconnect and sends heartbeats. Nothing is buffered: a slow reader
delays only its own source.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeAlias

from carrel.server.http.request_parsing import Receive
from carrel.server.http.response import encode

Send: TypeAlias = Callable[[dict[str, Any]], Awaitable[None]]

HEARTBEAT: Final = b":\n\n"
RETRY_FIELD: Final = b"retry: 1000\n\n"
"""Tells browsers to reconnect after 1 second."""


def encode_event(value: Any, *, id: str | None = None, type: str | None = None) -> bytes:
    """Encode one event with JSON data. Raises ValueError if id or type is unprintable."""
    for field in (id, type):
        if field is not None and not field.isprintable():
            raise ValueError("event id and type must be printable")
    head = (f"id: {id}\n" if id is not None else "") + (f"event: {type}\n" if type else "")
    return b"%sdata: %s\n\n" % (head.encode(), encode(value))


class Streams:
    """Open streams of one app; all end when `closing` is set."""

    def __init__(self, closing: asyncio.Event, heartbeat_seconds: float = 15.0) -> None:
        self._closing = closing
        self._heartbeat_seconds = heartbeat_seconds
        self._open: set[_Stream] = set()
        self._closing_task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._open)

    async def forward(
        self, source: AsyncIterator[bytes], receive: Receive, send: Send, heartbeat: bytes | None
    ) -> bool:
        """Send every chunk of `source`; False if a disconnect or shutdown interrupted it."""
        stream = _Stream(send, heartbeat, self._heartbeat_seconds)
        if self._closing.is_set():
            return await stream.finish(source, interrupted=True)
        self._open.add(stream)
        if self._closing_task is None:
            self._closing_task = asyncio.create_task(self._interrupt_on_closing())
        watcher = asyncio.create_task(stream.watch_disconnect(receive))
        try:
            return await stream.forward(source)
        finally:
            self._open.discard(stream)
            watcher.cancel()
            if not self._open:
                self._closing_task.cancel()
                self._closing_task = None

    async def _interrupt_on_closing(self) -> None:
        await self._closing.wait()
        for stream in list(self._open):
            stream.interrupt(disconnected=False)


class _Stream:
    def __init__(self, send: Send, heartbeat: bytes | None, heartbeat_seconds: float) -> None:
        self._send = send
        self._heartbeat = heartbeat
        self._heartbeat_seconds = heartbeat_seconds
        self._now = asyncio.get_running_loop().time
        self._last_sent = self._now()
        self._task = asyncio.current_task()
        self._open = True
        self._interrupted = False
        self._disconnected = False

    async def forward(self, source: AsyncIterator[bytes]) -> bool:
        try:
            async for chunk in source:
                self._last_sent = self._now()
                await self._send({"type": "http.response.body", "body": chunk, "more_body": True})
        except asyncio.CancelledError:
            if not self._interrupted or self._task is None or self._task.uncancel() > 0:
                raise
        return await self.finish(source, interrupted=self._interrupted)

    async def finish(self, source: AsyncIterator[bytes], *, interrupted: bool) -> bool:
        self._open = False
        close = getattr(source, "aclose", None)
        if close is not None:
            await close()
        if not self._disconnected:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        return not interrupted

    async def watch_disconnect(self, receive: Receive) -> None:
        """Wait for the client to disconnect; send heartbeats until then."""
        while True:
            try:
                async with asyncio.timeout_at(self._last_sent + self._heartbeat_seconds):
                    message = await receive()
            except TimeoutError:
                await self._send_heartbeat()
            else:
                if message["type"] == "http.disconnect":
                    return self.interrupt(disconnected=True)

    async def _send_heartbeat(self) -> None:
        if self._now() - self._last_sent < self._heartbeat_seconds:
            return
        self._last_sent = self._now()
        if self._heartbeat is not None and self._open:
            message = {"type": "http.response.body", "body": self._heartbeat, "more_body": True}
            await self._send(message)

    def interrupt(self, *, disconnected: bool) -> None:
        """Cancel the forwarding task, at most once."""
        self._disconnected |= disconnected
        if self._open and self._task is not None:
            self._open, self._interrupted = False, True
            self._task.cancel()
