"""Contract of LargeBlobStore, held by a directory and by an S3 bucket."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path as File

import pytest

from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.s3 import S3BlobStore
from carrel.core.identifiers import Digest, digest
from carrel.ports import LargeBlobStore

pytestmark = pytest.mark.anyio

BODY = b"a large body " * 10_000
NAME = digest(BODY)


@pytest.fixture(params=["directory", "s3"])
def objects(request: pytest.FixtureRequest, tmp_path: File) -> LargeBlobStore:
    if request.param == "directory":
        return DirectoryBlobStore(tmp_path / "objects")
    bucket = request.getfixturevalue("s3_bucket")
    return S3BlobStore.open(
        bucket.name,
        "some/where",
        endpoint=bucket.endpoint,
        region=bucket.region,
        access_key=bucket.access_key,
        secret_key=bucket.secret_key,
    )


async def listed(objects: LargeBlobStore) -> dict[Digest, int]:
    found = [(name, size) async for name, size, _ in objects.list_blobs()]
    assert len(found) == len(dict(found))
    return dict(found)


async def moment(objects: LargeBlobStore) -> int:
    [at] = [at async for _, _, at in objects.list_blobs()]
    return at


async def test_nothing_is_there_at_first(objects: LargeBlobStore) -> None:
    assert await objects.get(NAME) is None
    assert await listed(objects) == {}


@pytest.mark.parametrize("body", [b"", b"\x00\xff", BODY, b"x" * 6_000_000])
async def test_what_is_put_is_got_to_the_byte(objects: LargeBlobStore, body: bytes) -> None:
    await objects.put(digest(body), body)

    assert await objects.get(digest(body)) == body
    assert await listed(objects) == {digest(body): len(body)}


async def test_putting_twice_is_putting_once(objects: LargeBlobStore) -> None:
    await objects.put(NAME, BODY)
    await objects.put(NAME, BODY)

    assert await objects.get(NAME) == BODY
    assert await listed(objects) == {NAME: len(BODY)}


async def test_many_may_put_the_same_at_once(objects: LargeBlobStore) -> None:
    await asyncio.gather(*[objects.put(NAME, BODY) for _ in range(8)])

    assert await objects.get(NAME) == BODY
    assert await listed(objects) == {NAME: len(BODY)}


async def test_bytes_are_returned_as_they_are_stored(objects: LargeBlobStore) -> None:
    await objects.put(NAME, b"not what the name says")

    assert await objects.get(NAME) == b"not what the name says"


async def test_what_is_discarded_is_listed_no_more_but_can_still_be_read(
    objects: LargeBlobStore,
) -> None:
    for body in (b"one", b"two"):
        await objects.put(digest(body), body)
    before = time.time_ns() // 1_000_000

    await objects.discard([digest(b"one")])
    await objects.discard([digest(b"one")])

    assert await listed(objects) == {digest(b"two"): 3}
    assert await objects.get(digest(b"one")) == b"one"
    [(name, at)] = [found async for found in objects.list_trash()]
    assert name == digest(b"one")
    assert before - 1000 <= at <= time.time_ns() // 1_000_000 + 1000


async def test_what_is_brought_back_is_as_if_put_again(objects: LargeBlobStore) -> None:
    await objects.put(NAME, BODY)
    await objects.discard([NAME])
    await objects.restore([NAME])

    assert await listed(objects) == {NAME: len(BODY)}
    await objects.delete([NAME])
    assert await objects.get(NAME) == BODY


async def test_what_is_deleted_from_the_trash_is_gone_and_the_rest_stays(
    objects: LargeBlobStore,
) -> None:
    for body in (b"one", b"two", b"three"):
        await objects.put(digest(body), body)
    await objects.discard([digest(b"one"), digest(b"three")])

    await objects.delete([digest(b"one"), digest(b"two")])

    assert await listed(objects) == {digest(b"two"): 3}
    assert [await objects.get(digest(body)) for body in (b"one", b"two", b"three")] == [
        None,
        b"two",
        b"three",
    ]
    assert [name async for name, _ in objects.list_trash()] == [digest(b"three")]


async def test_what_is_only_in_the_trash_is_put_anew(objects: LargeBlobStore) -> None:
    await objects.put(NAME, BODY)
    await objects.discard([NAME])

    await objects.put(NAME, BODY)
    await objects.delete([NAME])

    assert await objects.get(NAME) == BODY
    assert await listed(objects) == {NAME: len(BODY)}
    assert [found async for found in objects.list_trash()] == []


async def test_what_is_absent_is_no_error_however_much_it_is(objects: LargeBlobStore) -> None:
    await objects.put(NAME, BODY)
    absent = [digest(f"absent {n}".encode()) for n in range(1200)]

    for names in ([], [*absent[:40], NAME]):
        await objects.discard(names)
        await objects.restore(names)
    await objects.discard([NAME])
    await objects.delete([])
    await objects.delete([*absent, NAME])
    await objects.delete([NAME])
    await objects.restore([NAME])

    assert await listed(objects) == {}
    assert [found async for found in objects.list_trash()] == []


async def test_what_was_deleted_can_be_put_again(objects: LargeBlobStore) -> None:
    await objects.put(NAME, BODY)
    await objects.discard([NAME])
    await objects.delete([NAME])
    await objects.put(NAME, BODY)

    assert await objects.get(NAME) == BODY


async def test_it_can_be_read_whatever_way_it_is_moved_meanwhile(objects: LargeBlobStore) -> None:
    await objects.put(NAME, BODY)
    moving = True

    async def move() -> None:
        for _ in range(20):
            await objects.discard([NAME])
            await objects.restore([NAME])

    async def read() -> None:
        while moving:
            assert await objects.get(NAME) == BODY

    readers = [asyncio.create_task(read()) for _ in range(3)]
    await move()
    moving = False
    await asyncio.gather(*readers)


async def test_an_object_says_when_it_was_put_last(objects: LargeBlobStore) -> None:
    """What upkeep goes by: bytes that were put again a moment ago are wanted again."""
    before = time.time_ns() // 1_000_000
    await objects.put(NAME, BODY)
    first = await moment(objects)
    assert before - 1000 <= first <= time.time_ns() // 1_000_000 + 1000

    async with asyncio.timeout(30):
        while await moment(objects) == first:
            await objects.put(NAME, BODY)

    assert await moment(objects) > first
