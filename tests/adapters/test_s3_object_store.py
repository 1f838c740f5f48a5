"""Objects by key in an S3 bucket, and foreign objects beside them."""

from __future__ import annotations

import obstore
import pytest
from tests.support.services.s3 import Bucket

from carrel.adapters.s3 import S3ObjectStore
from carrel.core.identifiers import digest

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def store_in(bucket: Bucket) -> S3ObjectStore:
    return S3ObjectStore.open(
        bucket.name,
        "catalog",
        endpoint=bucket.endpoint,
        region=bucket.region,
        access_key=bucket.access_key,
        secret_key=bucket.secret_key,
    )


async def test_foreign_object_is_listed_without_a_digest(s3_bucket: Bucket) -> None:
    object_store, store = store_in(s3_bucket), s3_bucket.store()
    await object_store.put({"a/ours": b"x", "a/changed": b"x"})
    for key in ("catalog/a/changed", "catalog/a/theirs", "elsewhere/a/b"):
        await obstore.put_async(store, key, b"other")

    for place in (object_store, store_in(s3_bucket)):
        objects = {key: info async for key, info in place.list("a/")}
        assert objects == {"a/ours": digest(b"x"), "a/changed": None, "a/theirs": None}


async def test_text_has_a_text_content_type(s3_bucket: Bucket) -> None:
    await store_in(s3_bucket).put({"text": "é".encode(), "binary": b"\xff"})

    store = s3_bucket.store()
    text = await obstore.get_async(store, "catalog/text")
    binary = await obstore.get_async(store, "catalog/binary")
    assert text.attributes["Content-Type"] == "text/plain; charset=utf-8"
    assert binary.attributes["Content-Type"] == "application/octet-stream"


async def test_key_that_is_too_long_for_a_bucket_is_refused(s3_bucket: Bucket) -> None:
    object_store, longest = store_in(s3_bucket), "k/" * 507 + "kk"

    refused = await object_store.put({longest + "x": b"x", longest: b"y"})

    assert list(refused) == [longest + "x"]
    assert await object_store.get(longest) == b"y"
    assert await object_store.get(longest + "x") is None


async def test_bucket_without_access_is_an_error(s3_bucket: Bucket) -> None:
    object_store = S3ObjectStore.open(
        s3_bucket.name,
        endpoint=s3_bucket.endpoint,
        region=s3_bucket.region,
        access_key=s3_bucket.access_key,
        secret_key="wrong",
    )

    with pytest.raises(OSError):
        await object_store.put({"a": b"x"})
    with pytest.raises(OSError):
        await object_store.get("a")
    with pytest.raises(OSError):
        [key async for key in object_store.list("")]
    with pytest.raises(OSError):
        await object_store.delete(["a"])
