"""A PostgreSQL server that stops answering, or is a standby, is reported and left."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncpg
import pytest

from carrel.adapters.postgres import database as postgres
from carrel.adapters.postgres.database import Database, exclusive_connection, open_database
from carrel.core.outages import Unreachable

pytestmark = pytest.mark.anyio

REQUESTS = 20


class Relay:
    """Passes bytes on to a server, or swallows them."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname, parts.port)
        self.answers = asyncio.Event()
        self.answers.set()
        self.connections = 0

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        server_reader, server_writer = await asyncio.open_connection(*self._target)
        await asyncio.gather(self._copy(reader, server_writer), self._copy(server_reader, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while part := await reader.read(65536):
            await self.answers.wait()
            writer.write(part)
        writer.close()


@asynccontextmanager
async def relayed(url: str) -> AsyncIterator[tuple[Relay, str]]:
    relay, parts = Relay(url), urlsplit(url)
    async with await asyncio.start_server(relay.connect, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield (
            relay,
            parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{port}")).geturl(),
        )


async def use(database: Database) -> str:
    try:
        return f"{await database.value('ping')}"
    except Unreachable:
        return "unreachable"


async def test_a_server_that_stops_answering_is_unreachable_for_all_who_wait(
    empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres, "_QUERY_TIMEOUT_SECONDS", 0.3)
    monkeypatch.setattr(postgres, "_CONNECT_TIMEOUT_SECONDS", 0.5)
    async with relayed(empty_postgres_url) as (relay, url), open_database(url, 3) as database:
        assert {*await asyncio.gather(*(use(database) for _ in range(REQUESTS)))} == {"1"}
        relay.answers.clear()
        async with asyncio.timeout(5):
            answers = await asyncio.gather(*(use(database) for _ in range(REQUESTS)))
        assert {*answers} == {"unreachable"}
        relay.answers.set()
        before = relay.connections
        assert await use(database) == "1"
        assert relay.connections > before, "the connection that was silent is not used again"


async def test_a_read_only_server_is_not_ready_and_is_left_once_another_takes_writes(
    empty_postgres_url: str,
) -> None:
    name = urlsplit(empty_postgres_url).path[1:]
    admin = await asyncpg.connect(empty_postgres_url)
    try:
        await admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        async with open_database(empty_postgres_url, 2) as database:
            assert await use(database) == "1", "reads go on"
            with pytest.raises(Unreachable, match="the database is unreachable"):
                await database.require_writable()
            with pytest.raises(Unreachable, match="the database is unreachable"):
                await database.script("CREATE TABLE lost (id int)")
            await admin.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
            await database.require_writable()
            await database.script("CREATE TABLE written (id int)")
    finally:
        await admin.close()


async def test_of_several_hosts_one_that_takes_writes_is_used(empty_postgres_url: str) -> None:
    parts = urlsplit(empty_postgres_url)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        closed = f"127.0.0.1:{listener.getsockname()[1]}"
    login, _, host = parts.netloc.rpartition("@")
    url = parts._replace(netloc=f"{login}@{closed},{host}").geturl()
    async with open_database(url, 2) as database:
        await database.require_writable()

    name = parts.path[1:]
    async with open_database(empty_postgres_url, 2) as database:
        await database.script(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    with pytest.raises(ConnectionRefusedError):
        async with open_database(url, 2):
            pass


async def test_a_server_that_accepts_no_connection_is_unreachable(empty_postgres_url: str) -> None:
    name = urlsplit(empty_postgres_url).path[1:]
    other = urlsplit(empty_postgres_url)._replace(path="/postgres").geturl()
    admin = await asyncpg.connect(other)
    try:
        async with open_database(empty_postgres_url, 1) as database:
            await admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
            await admin.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1",
                name,
            )
            assert {await use(database), await use(database)} == {"unreachable"}
            with pytest.raises(Unreachable, match="the database is unreachable"):
                async with exclusive_connection(empty_postgres_url):
                    pass
            await admin.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
            assert await use(database) == "1"
    finally:
        await admin.close()
