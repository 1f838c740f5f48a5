"""An unreachable database or bucket is 503 with its name; what works without it goes on."""

from __future__ import annotations

import asyncio
import errno
import socket
from pathlib import Path as File
from urllib.parse import urlsplit

import asyncpg
import httpx
import msgspec
import pytest
from tests.support.full_app import FILES, open_configured_app, settings_in

from carrel.adapters.postgres.database import translate_driver_errors
from carrel.core.outages import StorageFull, Unreachable
from carrel.server.http.error_responses import failure_response


class Relay:
    """Passes connections on to a server until it is cut."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def cut(self) -> None:
        """Refuse connections and end those that exist."""
        assert self._server
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_server = await asyncio.open_connection(*self._target)
        self._writers += [writer, to_server[1]]
        await asyncio.gather(_copy(reader, to_server[1]), _copy(to_server[0], writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while part := await reader.read(65536):
            writer.write(part)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


def check_unavailable(answer: httpx.Response, component: str) -> None:
    assert (answer.status_code, answer.json()["error"]) == (503, "unavailable")
    assert answer.json()["details"]["component"] == component
    assert int(answer.headers["retry-after"]) > 0


def test_an_unreachable_database_is_named(tmp_path: File, postgres_url: str) -> None:
    async def scenario() -> None:
        target = urlsplit(postgres_url)
        relay = Relay(target.hostname or "127.0.0.1", target.port or 5432)
        port = await relay.start()
        url = target._replace(netloc=target.netloc.replace(f":{target.port}", f":{port}")).geturl()
        async with (
            open_configured_app(settings_in(tmp_path, database_url=url)) as app,
            await app.owner() as owner,
        ):
            assert (await owner.put(f"{FILES}/a.md", json={"content": "a"})).status_code == 200
            assert (await owner.get("/readyz")).json()["database"] == "ok"
            await relay.cut()

            check_unavailable(await owner.put(f"{FILES}/a.md", json={"content": "b"}), "database")
            check_unavailable(await owner.get(f"{FILES}/a.md"), "database")
            ready = await owner.get("/readyz")
            assert (ready.status_code, ready.json()["database"]) == (503, "unreachable")

    asyncio.run(scenario())


def test_an_unreachable_bucket_is_named_and_small_files_are_served(tmp_path: File) -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        settings = settings_in(
            tmp_path,
            blobs_url="s3://lost",
            s3_endpoint=endpoint,
            s3_access_key="key",
            s3_secret_key="secret",
        )
        async with open_configured_app(settings) as app, await app.owner() as owner:
            assert (await owner.put(f"{FILES}/a.md", json={"content": "a"})).status_code == 200
            check_unavailable(
                await owner.put(f"{FILES}/b.md", json={"content": "b" * 70_000}), "bucket"
            )
            assert (await owner.get(f"{FILES}/a.md")).json()["content"] == "a"
            ready = await owner.get("/readyz")
            assert ready.status_code == 503
            assert (ready.json()["database"], ready.json()["bucket"]) == ("ok", "unreachable")

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "error",
    [
        TimeoutError(),
        socket.gaierror(),
        ConnectionRefusedError(),
        asyncpg.InterfaceError("connection is closed"),
        asyncpg.InternalClientError("unexpected end"),
        asyncpg.ConnectionDoesNotExistError("closed"),
        asyncpg.CannotConnectNowError("starting up"),
        asyncpg.AdminShutdownError("terminated"),
        asyncpg.TooManyConnectionsError("too many"),
        asyncpg.InvalidPasswordError("changed"),
        asyncpg.ReadOnlySQLTransactionError("a standby"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_kind_of_lost_database_is_unreachable(error: Exception) -> None:
    with pytest.raises(Unreachable, match="the database is unreachable"), translate_driver_errors():
        raise error


def test_a_full_disk_of_the_database_server_is_storage_full() -> None:
    with pytest.raises(StorageFull, match="no space is left"), translate_driver_errors():
        raise asyncpg.DiskFullError("could not extend file")


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_of_the_server_is_storage_full_whatever_was_written(code: int) -> None:
    response = failure_response(OSError(code, "full", "spool/part"), "req_1")
    problem = msgspec.json.decode(response.body)
    assert (response.status, problem["error"]) == (507, "storage_full")
    assert "spool" not in problem["message"]
    assert (b"retry-after", b"10") in response.headers
