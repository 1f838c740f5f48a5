"""Process that owns the servers of one pytest run.

Its standard input is a pipe from pytest. When the pipe closes, because pytest ended or was killed,
the servers are stopped and their directory is removed.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path as File
from typing import Protocol

from tests.support.services.postgres import Postgres
from tests.support.services.preloaded_process import PreloadedProcess
from tests.support.services.s3 import S3


class Server(Protocol):
    url: str

    async def start(self) -> None: ...
    async def stop(self) -> None: ...


class ServiceDaemon:
    """Starts each server once, at its first request."""

    def __init__(self, servers: dict[str, Server]) -> None:
        self.servers = servers
        self.started: dict[str, asyncio.Task[None]] = {}

    async def handle_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Reads a server's name in one line; answers in one line that it runs, or why not."""
        with suppress(ConnectionError, asyncio.CancelledError):
            name = (await reader.readline()).decode().strip()
            if name not in self.started:
                self.started[name] = asyncio.create_task(self.servers[name].start())
            try:
                await asyncio.shield(self.started[name])
                reply = {"url": self.servers[name].url}
            except (Exception, asyncio.CancelledError) as problem:
                reply = {"problem": str(problem) or "its daemon is stopping"}
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def stop(self) -> None:
        for start in self.started.values():
            start.cancel()
        await asyncio.gather(*self.started.values(), return_exceptions=True)
        await asyncio.gather(*(server.stop() for server in self.servers.values()))


async def wait_for_end_of_input() -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


async def run_daemon(directory: File, ports: list[int]) -> None:
    servers: dict[str, Server] = {
        "postgres": Postgres(directory, ports[0]),
        "s3": S3(directory, ports[1:]),
        "loaded": PreloadedProcess(directory),
    }
    daemon = ServiceDaemon(servers)
    listener = await asyncio.start_unix_server(daemon.handle_request, directory / "daemon")
    print(json.dumps({name: server.url for name, server in servers.items()}), flush=True)
    try:
        await wait_for_end_of_input()
    finally:
        listener.close()
        await daemon.stop()
        remove_later(directory)


def remove_later(directory: File) -> None:
    """Rename it at once, and leave the removal of its thousands of files to another process."""
    subprocess.Popen(
        ["rm", "-rf", directory.rename(removal_path(directory))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def removal_path(directory: File) -> File:
    """Path of the directory during its removal."""
    return directory.with_name(f"{directory.name}-going")


if __name__ == "__main__":
    asyncio.run(run_daemon(File(sys.argv[1]), [int(port) for port in sys.argv[2:]]))
