"""An upload that fails leaves no file and no bytes, whatever fails."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any
from urllib.parse import urlsplit

import httpx
import obstore
import pytest
from tests.support.full_app import FullApp, create_rest_app, settings_in
from tests.support.services.relay import Relay
from tests.support.services.s3 import Bucket

from carrel.actions.maintenance.integrity import check_store
from carrel.core.outages import StorageFull
from carrel.ports import part_writers
from carrel.ports.blobs import PART_BYTES
from carrel.settings import Settings
from carrel.wiring import ports as wiring_ports
from carrel.wiring.ports import OpenStore

pytestmark = pytest.mark.anyio
BYTES = {"Content-Type": "application/octet-stream"}
WANT = {"Accept": "application/octet-stream"}
CONTENT = random.Random(5).randbytes(12 * PART_BYTES)


@dataclass
class Faulty:
    """A server whose store of large contents can fail, and a file of a shared workspace."""

    store: OpenStore
    app: FullApp
    client: httpx.AsyncClient
    url: str
    stored_sizes: Callable[[], list[int]]
    relay: Relay | None = None


@pytest.fixture(params=["directory", "bucket"])
async def faulty(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[Faulty]:
    if request.param == "directory":
        async with open_faulty(settings_in(tmp_path), lambda: _directory_sizes(tmp_path)) as opened:
            yield opened
        return
    bucket: Bucket = request.getfixturevalue("s3_bucket")
    relay = Relay("127.0.0.1", urlsplit(bucket.endpoint).port or 0)
    port = await relay.start()
    settings = settings_in(
        tmp_path,
        database_url=request.getfixturevalue("postgres_url"),
        blobs_url=f"s3://{bucket.name}",
        s3_endpoint=f"http://127.0.0.1:{port}",
        s3_access_key=bucket.access_key,
        s3_secret_key=bucket.secret_key,
    )
    async with open_faulty(settings, lambda: _object_sizes(bucket)) as opened:
        opened.relay = relay
        yield opened
    await relay.cut()


@asynccontextmanager
async def open_faulty(
    settings: Settings, stored_sizes: Callable[[], list[int]]
) -> AsyncIterator[Faulty]:
    async with wiring_ports.open_ports(settings) as store:
        app = FullApp(store.ports, create_rest_app(store.ports))
        client = await app.owner()
        created = (await client.post("/accounts/me/workspaces", json={"name": "w"})).json()
        url = f"/v1/workspaces/{created['workspaceId']}/files/a.bin"
        yield Faulty(store, app, client, url, stored_sizes)


def _directory_sizes(directory: File) -> list[int]:
    files = (file for file in (directory / "blobs").rglob("*") if file.is_file())
    return [file.stat().st_size for file in files]


def _object_sizes(bucket: Bucket) -> list[int]:
    return [meta["size"] for page in obstore.list(bucket.store()) for meta in page]


async def check_nothing_left(faulty: Faulty) -> None:
    assert (await faulty.client.get(faulty.url)).status_code == 404
    assert faulty.stored_sizes() == []
    store = faulty.store
    now = store.ports.clock.now()
    findings = await check_store(store.maintenance, store.objects, now=now, grace=0)
    assert not findings.items


async def check_works(faulty: Faulty) -> None:
    put = await faulty.client.put(faulty.url, content=CONTENT, headers=BYTES)
    assert (put.status_code, put.json()["version"]) == (200, 1)
    assert (await faulty.client.get(faulty.url, headers=WANT)).content == CONTENT
    assert faulty.stored_sizes() == [len(CONTENT)]


def asgi_scope(faulty: Faulty, method: str, **headers: str) -> dict[str, Any]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    pairs = {**faulty.client.headers, **named}.items()
    return {
        "type": "http",
        "method": method,
        "path": faulty.url,
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in pairs],
    }


async def test_a_connection_that_is_cut_during_an_upload(faulty: Faulty) -> None:
    parts = iter([CONTENT[: 3 * PART_BYTES], CONTENT[3 * PART_BYTES : 5 * PART_BYTES]])

    async def receive() -> dict[str, Any]:
        part = next(parts, None)
        if part is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": part, "more_body": True}

    async def send(message: Any) -> None:
        raise AssertionError("a response to nobody")

    length, type = str(len(CONTENT)), BYTES["Content-Type"]
    scope = asgi_scope(faulty, "PUT", content_type=type, content_length=length)
    await faulty.app.app(scope, receive, send)

    await check_nothing_left(faulty)
    await check_works(faulty)


async def test_a_cancelled_upload(faulty: Faulty) -> None:
    is_waiting = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield CONTENT[: 3 * PART_BYTES]
        is_waiting.set()
        await asyncio.Event().wait()

    put = faulty.client.put(faulty.url, content=body(), headers=BYTES)
    task = asyncio.create_task(put)
    await is_waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    await check_nothing_left(faulty)
    await check_works(faulty)


async def test_a_bucket_that_is_lost_between_the_parts_of_an_object(faulty: Faulty) -> None:
    if faulty.relay is None:
        return await check_works(faulty)
    faulty.relay.remaining = 7 * PART_BYTES
    refused = await faulty.client.put(
        faulty.url, content=CONTENT, headers={**BYTES, "Idempotency-Key": "k"}
    )
    assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
    assert refused.json()["details"]["component"] == "bucket"
    assert int(refused.headers["retry-after"]) > 0

    faulty.relay.remaining = None
    await faulty.relay.start()
    await check_nothing_left(faulty)
    again = await faulty.client.put(
        faulty.url, content=CONTENT, headers={**BYTES, "Idempotency-Key": "k"}
    )
    assert again.status_code == 200
    assert (await faulty.client.get(faulty.url, headers=WANT)).content == CONTENT
    assert faulty.stored_sizes() == [len(CONTENT)]
    return None


async def test_a_download_ends_incomplete_if_the_bucket_is_lost_meanwhile(faulty: Faulty) -> None:
    await check_works(faulty)
    messages: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        messages.append(message)
        if faulty.relay is not None and len(messages) == 2:
            await faulty.relay.cut()

    await faulty.app.app(asgi_scope(faulty, "GET", accept=WANT["Accept"]), receive, send)

    start, *bodies = messages
    received = sum(len(message["body"]) for message in bodies)
    is_complete = not bodies[-1].get("more_body", False)
    assert start["status"] == 200
    assert (received == len(CONTENT), is_complete) == ((faulty.relay is None,) * 2)


async def test_a_disk_that_is_full_during_an_upload(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = part_writers.FilePartWriter.write, 0

    def fill(writer: part_writers.FilePartWriter, part: bytes) -> None:
        nonlocal written
        written += len(part)
        if written > 4 * PART_BYTES:
            raise StorageFull("blobs")
        write(writer, part)

    with monkeypatch.context() as patch:
        patch.setattr(part_writers.FilePartWriter, "write", fill)
        refused = await faulty.client.put(faulty.url, content=CONTENT, headers=BYTES)
    assert (refused.status_code, refused.json()["error"]) == (507, "storage_full")

    await check_nothing_left(faulty)
    await check_works(faulty)
