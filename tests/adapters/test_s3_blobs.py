"""Objects in an S3 bucket: within their prefix, and uploaded at most once."""

from __future__ import annotations

import asyncio
import random
import re
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import obstore
import pytest
from tests.support.services.s3 import Bucket

from carrel.adapters.s3 import S3BlobStore
from carrel.core.identifiers import Digest, digest
from carrel.core.outages import Unreachable
from carrel.ports.blobs import PART_BYTES, write_parts

BODY = b"a large body"
NAME = digest(BODY)
HEX = NAME.removeprefix("sha256:")


def objects(bucket: Bucket, prefix: str) -> S3BlobStore:
    return S3BlobStore.open(
        bucket.name,
        prefix,
        endpoint=bucket.endpoint,
        access_key=bucket.access_key,
        secret_key=bucket.secret_key,
    )


async def names(objects: S3BlobStore) -> list[Digest]:
    return [name async for name, _, _ in objects.list_blobs()]


def test_two_prefixes_of_one_bucket_are_separate(s3_bucket: Bucket) -> None:
    async def scenario() -> None:
        ours, unprefixed = objects(s3_bucket, "/ours/"), objects(s3_bucket, "")
        await ours.put(NAME, BODY)
        await unprefixed.put(digest(b"other"), b"other")

        assert await names(ours) == [NAME]
        assert await names(unprefixed) == [digest(b"other")]
        assert await objects(s3_bucket, "our").get(NAME) is None
        await unprefixed.delete([NAME])
        assert await ours.get(NAME) == BODY

    asyncio.run(scenario())


def test_foreign_objects_are_left_alone(s3_bucket: Bucket) -> None:
    async def scenario() -> None:
        ours = objects(s3_bucket, "ours")
        await ours.put(NAME, BODY)
        await obstore.put_async(s3_bucket.store(), "ours/readme.txt", b"hello")
        await obstore.put_async(s3_bucket.store(), f"ours/{HEX}/part", b"hello")

        assert await names(ours) == [NAME]

    asyncio.run(scenario())


def test_object_name_is_the_hex_digest(s3_bucket: Bucket) -> None:
    asyncio.run(objects(s3_bucket, "a/b").put(NAME, BODY))

    assert bytes(obstore.get(s3_bucket.store(), f"a/b/{HEX}").bytes()) == BODY


def test_an_unreachable_bucket_is_a_connection_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    closed = Bucket(f"http://127.0.0.1:{port}", "lost", "key", "secret")

    async def scenario() -> None:
        store = objects(closed, "")
        for request in (
            store.put(NAME, BODY),
            store.get(NAME),
            store.discard([NAME]),
            store.delete([NAME]),
            names(store),
            store.ping(),
        ):
            with pytest.raises(Unreachable, match="the bucket is unreachable"):
                await request

    asyncio.run(scenario())


async def check_unreachable(store: S3BlobStore, match: str) -> None:
    for request in (
        store.put(NAME, BODY),
        store.get(NAME),
        write_parts(store.open_writer(), iter([BODY])),
        store.discard([NAME]),
        store.restore([NAME]),
        store.delete([NAME]),
        names(store),
        store.ping(),
    ):
        with pytest.raises(Unreachable, match=match):
            await request


def test_a_bucket_that_refuses_the_key_is_unreachable(s3_bucket: Bucket) -> None:
    store = objects(replace(s3_bucket, secret_key="wrong"), "")
    asyncio.run(check_unreachable(store, "the bucket is unreachable"))


@pytest.mark.parametrize(
    ("status", "code"), [(404, "NoSuchBucket"), (403, "AccessDenied"), (301, "PermanentRedirect")]
)
def test_a_server_without_the_bucket_is_unreachable(status: int, code: str) -> None:
    async def scenario() -> None:
        async with error_server(status, code) as endpoint:
            store = objects(Bucket(endpoint, "lost", "key", "secret"), "")
            await check_unreachable(store, "the bucket is unreachable")

    asyncio.run(scenario())


@asynccontextmanager
async def error_server(status: int, code: str) -> AsyncIterator[str]:
    """An S3 server that answers every request with one error."""
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode()
    head = f"HTTP/1.1 {status} No\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head.encode() + body)
        writer.write_eof()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def test_a_bucket_that_never_answers_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carrel.adapters.s3.outages.ANSWER_SECONDS", 0.2)
    monkeypatch.setattr("carrel.adapters.s3.blob_store._PING_SECONDS", 0.2)

    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
            store = objects(Bucket(endpoint, "silent", "key", "secret"), "")
            for request in (
                store.put(NAME, BODY),
                store.get(NAME),
                store.discard([NAME]),
                store.delete([NAME]),
                names(store),
                store.ping(),
            ):
                with pytest.raises(Unreachable, match="no answer in"):
                    await request

    asyncio.run(scenario())


def test_a_large_content_is_one_request_which_is_repeated_after_a_failure() -> None:
    """So no parts remain in the bucket if the server is lost in the middle of it."""
    content = random.Random(3).randbytes(12 * PART_BYTES)

    async def scenario() -> list[tuple[bytes, bytes]]:
        async with failing_once() as (endpoint, requests):
            store = objects(Bucket(endpoint, "bucket", "key", "secret"), "ours")
            parts = (content[at : at + PART_BYTES] for at in range(0, len(content), PART_BYTES))
            blob = await write_parts(store.open_writer(), parts)
            assert blob.digest == digest(content)
            return requests

    name = digest(content).removeprefix("sha256:").encode()
    assert [(line.partition(b"?")[0], body) for line, body in asyncio.run(scenario())] == [
        (b"PUT /bucket/ours/" + name, content)
    ] * 2


@asynccontextmanager
async def failing_once() -> AsyncIterator[tuple[str, list[tuple[bytes, bytes]]]]:
    """An S3 server that refuses the first request, with the first lines and bodies of all."""
    requests: list[tuple[bytes, bytes]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not reader.at_eof():
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            [size] = re.findall(rb"(?i)content-length: (\d+)", head)
            requests.append((head.partition(b" HTTP")[0], await reader.readexactly(int(size))))
            status = b"503 Slow Down" if len(requests) == 1 else b"200 OK"
            writer.write(b'HTTP/1.1 %b\r\nETag: "a"\r\nContent-Length: 0\r\n\r\n' % status)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", requests
