"""A receiver of webhooks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def receiver(
    statuses: list[int],
) -> AsyncIterator[tuple[str, asyncio.Queue[tuple[dict[str, str], bytes]]]]:
    """A server that records requests and answers with these statuses in turn."""
    requests: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[1:-2]
        headers = {k.lower(): v.strip() for k, v in (line.split(":", 1) for line in head)}
        body = await reader.readexactly(int(headers["content-length"]))
        status = statuses.pop(0) if statuses else 200
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        writer.close()
        requests.put_nowait((headers, body))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook", requests
    finally:
        server.close()
