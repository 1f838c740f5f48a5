"""Process that owns the servers of one pytest run.

Its standard input is a pipe from pytest. When that closes, because pytest is done or because
somebody killed it, the servers are stopped and their directory is removed.
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
from tests.support.services.preloaded_process import Loaded
from tests.support.services.s3 import S3


class Server(Protocol):
    url: str

    async def start(self) -> None: ...
    async def stop(self) -> None: ...


class Keeper:
    """Starts each server when it is first asked for, and then only once."""

    def __init__(self, servers: dict[str, Server]) -> None:
        self.servers = servers
        self.started: dict[str, asyncio.Task[None]] = {}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One line in, the server's name; one line out: that it answers, or why it does not."""
        with suppress(ConnectionError, asyncio.CancelledError):
            name = (await reader.readline()).decode().strip()
            if name not in self.started:
                self.started[name] = asyncio.create_task(self.servers[name].start())
            try:
                await asyncio.shield(self.started[name])
                reply = {"url": self.servers[name].url}
            except (Exception, asyncio.CancelledError) as problem:
                reply = {"problem": str(problem) or "its keeper is stopping"}
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        writer.close()

    async def stop(self) -> None:
        for start in self.started.values():
            start.cancel()
        await asyncio.gather(*self.started.values(), return_exceptions=True)
        await asyncio.gather(*(server.stop() for server in self.servers.values()))


async def end_of_input() -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()


async def keep(directory: File, ports: list[int]) -> None:
    servers: dict[str, Server] = {
        "postgres": Postgres(directory, ports[0]),
        "s3": S3(directory, ports[1:]),
        "loaded": Loaded(directory),
    }
    keeper = Keeper(servers)
    listening = await asyncio.start_unix_server(keeper.answer, directory / "keeper")
    print(json.dumps({name: server.url for name, server in servers.items()}), flush=True)
    try:
        await end_of_input()
    finally:
        listening.close()
        await keeper.stop()
        remove(directory)


def remove(directory: File) -> None:
    """Take it away at once, and leave its many thousand files to a process nobody waits for."""
    subprocess.Popen(
        ["rm", "-rf", directory.rename(going(directory))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def going(directory: File) -> File:
    """Where it is while it is being removed."""
    return directory.with_name(f"{directory.name}-going")


if __name__ == "__main__":
    asyncio.run(keep(File(sys.argv[1]), [int(port) for port in sys.argv[2:]]))
