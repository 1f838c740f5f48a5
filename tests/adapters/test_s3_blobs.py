"""Objects in an S3 bucket: within their prefix, and uploaded at most once."""

from __future__ import annotations

import asyncio
import socket

import obstore
import pytest
from tests.support.services.s3 import Bucket

from carrel.adapters.s3 import S3BlobStore
from carrel.core.identifiers import Digest, digest
from carrel.core.outages import Unreachable

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


def test_a_bucket_that_never_answers_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carrel.adapters.s3._ANSWER_SECONDS", 0.2)
    monkeypatch.setattr("carrel.adapters.s3._PING_SECONDS", 0.2)

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
