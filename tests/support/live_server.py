"""A real server on a free port, and raw connections to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import uvicorn

from carrel.server.http.uvicorn_protocol import Connection


@contextmanager
def serving(app: Any, loop: Literal["auto", "asyncio"] = "auto") -> Iterator[int]:
    """The port of a server that runs in a thread with its own event loop.

    A server that starts processes should use asyncio's loop: uvloop takes ten times as long to
    fork, since it copies the page tables of this process.
    """
    config = uvicorn.Config(
        app,
        host="127.0.0.1",
        port=0,
        log_config=None,
        access_log=False,
        lifespan="on",
        loop=loop,
        http=Connection,
        timeout_keep_alive=75,  # like a real server: slow clients may continue
    )
    server = uvicorn.Server(config)
    up = threading.Event()
    startup = server.startup

    async def start(*args: Any, **kwargs: Any) -> None:
        await startup(*args, **kwargs)
        up.set()

    server.startup = start  # type: ignore[method-assign]  # to learn when it listens
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    assert up.wait(30), "the server did not start"
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive(), "the server did not stop"


class RawConnection:
    """One connection, used with raw bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def to(cls, port: int) -> RawConnection:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def write_request(self, *lines: str, body: bytes = b"") -> None:
        head = "\r\n".join([*lines, "Host: carrel", "Authorization: Bearer ada", "", ""])
        self.writer.write(head.encode() + body)
        await self.writer.drain()

    async def send(self, raw: bytes) -> None:
        self.writer.write(raw)
        await self.writer.drain()

    async def read_response(self) -> tuple[int, dict[str, str], bytes]:
        """One complete response with a content length."""
        status, headers = await self.read_head()
        return status, headers, await self.reader.readexactly(int(headers["content-length"]))

    async def read_head(self) -> tuple[int, dict[str, str]]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        return int(head[0].split()[1]), headers

    async def is_closed(self) -> bool:
        return await self.reader.read() == b""

    async def close(self) -> None:
        self.writer.close()
        await self.writer.wait_closed()
