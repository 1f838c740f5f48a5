"""A connection to a server that can be cut, at once or after some bytes."""

from __future__ import annotations

import asyncio


class Relay:
    """Passes connections on to a server until it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None
        self._port = 0
        self.remaining: int | None = None
        """Bytes to the server after which it is cut; None for no limit."""

    async def start(self) -> int:
        """Listen, also again after a cut, on the same port."""
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", self._port)
        self._port = int(self._server.sockets[0].getsockname()[1])
        return self._port

    async def cut(self) -> None:
        """Refuse connections and end those that exist."""
        assert self._server
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_server = await asyncio.open_connection(*self._target)
        self._writers += [writer, to_server[1]]
        await asyncio.gather(
            self._copy(reader, to_server[1], is_counted=True),
            self._copy(to_server[0], writer, is_counted=False),
        )

    async def _copy(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_counted: bool
    ) -> None:
        try:
            while part := await reader.read(65536):
                if is_counted and self.remaining is not None:
                    self.remaining -= len(part)
                    if self.remaining < 0:
                        await self.cut()
                        return
                writer.write(part)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()
