"""Contract of LargeBlobStore for a directory, an S3 bucket and rows of PostgreSQL."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path as File

import pytest
from tests.support.services.s3 import Bucket

from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.postgres.database import open_database
from carrel.adapters.postgres.former_blobs import BlobStoreWithFormer
from carrel.adapters.postgres.large_blobs import PostgresLargeBlobs
from carrel.adapters.s3 import S3BlobStore
from carrel.core.identifiers import Digest, digest
from carrel.core.store.blob import Blob
from carrel.ports import LargeBlobStore
from carrel.ports.blobs import write_parts

pytestmark = pytest.mark.anyio

BODY = b"a large body " * 10_000
NAME = digest(BODY)


@pytest.fixture(params=["directory", "s3", "rows", "directory after rows"])
async def objects(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[LargeBlobStore]:
    match request.param:
        case "directory":
            yield DirectoryBlobStore(tmp_path / "objects")
        case "s3":
            yield open_bucket(request.getfixturevalue("s3_bucket"))
        case kind:
            async with open_database(request.getfixturevalue("postgres_url"), 4) as database:
                rows = PostgresLargeBlobs(database)
                directory = DirectoryBlobStore(tmp_path / "objects")
                yield rows if kind == "rows" else BlobStoreWithFormer(directory, rows)


def open_bucket(bucket: Bucket) -> LargeBlobStore:
    return S3BlobStore.open(
        bucket.name,
        "some/where",
        endpoint=bucket.endpoint,
        region=bucket.region,
        access_key=bucket.access_key,
        secret_key=bucket.secret_key,
    )


async def list_sizes(objects: LargeBlobStore) -> dict[Digest, int]:
    items = [(name, size) async for name, size, _ in objects.list_blobs()]
    assert len(items) == len(dict(items))
    return dict(items)


def files_below(directory: File) -> list[File]:
    return [file for file in directory.rglob("*") if file.is_file()]


async def put_time(objects: LargeBlobStore) -> int:
    [time] = [time async for _, _, time in objects.list_blobs()]
    return time


async def test_a_new_store_is_empty(objects: LargeBlobStore) -> None:
    assert await objects.get(NAME) is None
    assert await list_sizes(objects) == {}


@pytest.mark.parametrize("body", [b"", b"\x00\xff", BODY, b"x" * 6_000_000])
async def test_a_put_blob_reads_back_identically(objects: LargeBlobStore, body: bytes) -> None:
    await objects.put(digest(body), body)

    assert await objects.get(digest(body)) == body
    assert await list_sizes(objects) == {digest(body): len(body)}


@pytest.mark.parametrize("body", [b"", BODY, b"xyz" * 2_500_000], ids=["empty", "one", "many"])
async def test_parts_are_stored_under_their_digest_and_read_in_parts(
    objects: LargeBlobStore, body: bytes
) -> None:
    parts = (body[start : start + 100_000] for start in range(0, len(body), 100_000))

    stored = await write_parts(objects.open_writer(), parts)

    assert stored == Blob(digest(body), len(body))

    assert await objects.get(digest(body)) == body
    assert b"".join([part async for part in objects.read_parts(digest(body))]) == body
    assert await list_sizes(objects) == {digest(body): len(body)}


async def test_parts_that_fail_leave_nothing(objects: LargeBlobStore, tmp_path: File) -> None:
    def parts() -> Iterator[bytes]:
        yield BODY
        raise ValueError

    with pytest.raises(ValueError):
        await write_parts(objects.open_writer(), parts())

    assert await list_sizes(objects) == {}
    assert not files_below(tmp_path)


async def test_a_discarded_writer_leaves_nothing(objects: LargeBlobStore, tmp_path: File) -> None:
    writer = objects.open_writer()
    await asyncio.to_thread(writer.write, BODY)
    assert writer.copy_hash().hexdigest() == NAME.removeprefix("sha256:")

    await writer.discard()
    await writer.discard()

    with pytest.raises(ValueError):
        writer.write(BODY)
    assert await list_sizes(objects) == {}
    assert not files_below(tmp_path)


async def test_discarding_a_finished_writer_changes_nothing(objects: LargeBlobStore) -> None:
    writer = objects.open_writer()
    writer.write(BODY)
    assert await writer.finish() == Blob(NAME, len(BODY))

    await writer.discard()

    assert await objects.get(NAME) == BODY


RANGES = [(0, 1), (5, 70_000), (len(BODY) - 3, len(BODY)), (0, len(BODY))]


@pytest.mark.parametrize(("start", "end"), RANGES)
async def test_a_range_is_a_part_of_the_content(
    objects: LargeBlobStore, start: int, end: int
) -> None:
    await objects.put(NAME, BODY)

    assert (
        b"".join([part async for part in objects.read_range(NAME, start, end)]) == (BODY[start:end])
    )
    await objects.discard([NAME])
    assert (
        b"".join([part async for part in objects.read_range(NAME, start, end)]) == (BODY[start:end])
    )
    with pytest.raises(FileNotFoundError):
        [part async for part in objects.read_range(digest(b"absent"), start, end)]


async def test_the_identity_of_content_tells_stored_bytes_apart(objects: LargeBlobStore) -> None:
    assert await objects.identity(NAME) is None
    await objects.put(NAME, BODY)
    first = await objects.identity(NAME)
    await objects.put(NAME, BODY[::-1])

    assert first is not None
    assert await objects.identity(NAME) != first or first == ""


async def test_parts_are_read_from_the_trash_and_absent_ones_raise(
    objects: LargeBlobStore,
) -> None:
    await objects.put(NAME, BODY)
    await objects.discard([NAME])

    assert b"".join([part async for part in objects.read_parts(NAME)]) == BODY
    with pytest.raises(FileNotFoundError):
        [part async for part in objects.read_parts(digest(b"absent"))]


async def test_putting_a_blob_twice_stores_it_once(objects: LargeBlobStore) -> None:
    await objects.put(NAME, BODY)
    await objects.put(NAME, BODY)

    assert await objects.get(NAME) == BODY
    assert await list_sizes(objects) == {NAME: len(BODY)}


async def test_concurrent_puts_of_one_blob_store_it_once(objects: LargeBlobStore) -> None:
    await asyncio.gather(*[objects.put(NAME, BODY) for _ in range(8)])

    assert await objects.get(NAME) == BODY
    assert await list_sizes(objects) == {NAME: len(BODY)}


async def test_content_is_returned_as_stored_without_verification(objects: LargeBlobStore) -> None:
    await objects.put(NAME, b"not what the name says")

    assert await objects.get(NAME) == b"not what the name says"


async def test_a_discarded_blob_is_not_listed_but_still_readable(
    objects: LargeBlobStore,
) -> None:
    for body in (b"one", b"two"):
        await objects.put(digest(body), body)
    before = time.time_ns() // 1_000_000

    await objects.discard([digest(b"one")])
    await objects.discard([digest(b"one")])

    assert await list_sizes(objects) == {digest(b"two"): 3}
    assert await objects.get(digest(b"one")) == b"one"
    [(name, discarded_at)] = [item async for item in objects.list_trash()]
    assert name == digest(b"one")
    assert before - 1000 <= discarded_at <= time.time_ns() // 1_000_000 + 1000


async def test_a_restored_blob_is_as_if_it_was_put_again(objects: LargeBlobStore) -> None:
    await objects.put(NAME, BODY)
    await objects.discard([NAME])
    await objects.restore([NAME])

    assert await list_sizes(objects) == {NAME: len(BODY)}
    await objects.delete([NAME])
    assert await objects.get(NAME) == BODY


async def test_a_blob_deleted_from_the_trash_is_gone_and_others_stay(
    objects: LargeBlobStore,
) -> None:
    for body in (b"one", b"two", b"three"):
        await objects.put(digest(body), body)
    await objects.discard([digest(b"one"), digest(b"three")])

    await objects.delete([digest(b"one"), digest(b"two")])

    assert await list_sizes(objects) == {digest(b"two"): 3}
    assert [await objects.get(digest(body)) for body in (b"one", b"two", b"three")] == [
        None,
        b"two",
        b"three",
    ]
    assert [name async for name, _ in objects.list_trash()] == [digest(b"three")]


async def test_a_blob_only_in_the_trash_can_be_put_again(objects: LargeBlobStore) -> None:
    await objects.put(NAME, BODY)
    await objects.discard([NAME])

    await objects.put(NAME, BODY)
    await objects.delete([NAME])

    assert await objects.get(NAME) == BODY
    assert await list_sizes(objects) == {NAME: len(BODY)}
    assert [item async for item in objects.list_trash()] == []


async def test_discarding_restoring_and_deleting_absent_blobs_is_no_error(
    objects: LargeBlobStore,
) -> None:
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

    assert await list_sizes(objects) == {}
    assert [item async for item in objects.list_trash()] == []


async def test_a_deleted_blob_can_be_put_again(objects: LargeBlobStore) -> None:
    await objects.put(NAME, BODY)
    await objects.discard([NAME])
    await objects.delete([NAME])
    await objects.put(NAME, BODY)

    assert await objects.get(NAME) == BODY


async def test_a_blob_is_readable_while_it_is_discarded_and_restored(
    objects: LargeBlobStore,
) -> None:
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


async def test_a_blob_is_listed_with_its_last_put_time(objects: LargeBlobStore) -> None:
    """Maintenance relies on it: a blob that was put again recently is in use."""
    before = time.time_ns() // 1_000_000
    await objects.put(NAME, BODY)
    first = await put_time(objects)
    assert before - 1000 <= first <= time.time_ns() // 1_000_000 + 1000

    async with asyncio.timeout(30):
        while await put_time(objects) == first:
            await objects.put(NAME, BODY)

    assert await put_time(objects) > first
