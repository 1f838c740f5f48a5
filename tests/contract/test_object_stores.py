"""Contract of ObjectStore for a directory, an S3 bucket and the tests' dictionary."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path as File

import pytest
from tests.support.object_store import DictionaryObjectStore

from carrel.adapters.filesystem.object_directory import DirectoryObjectStore
from carrel.adapters.s3 import S3ObjectStore
from carrel.core.identifiers import Digest, digest
from carrel.ports import ObjectStore

pytestmark = pytest.mark.anyio

AWKWARD = (
    "tenants/acme/agents/marco/workspace/SOUL.md",
    "tenants/acme/agents/_catalog/sales/workspace-versions/A.md@sha256:" + "0" * 64,
    "a/x%20y.md",
    "a/ü#?*~[]{}^`|.md",
    "a/ä b/c+d&e=f",
    "a/'quoted' \"too\" <b>",
    "a/...",
    "a/.hidden",
    "a/ led by a blank",
    "a/@sha256:",
    "a/-rf",
    "a/" + "/".join("deep" * 5 for _ in range(30)),
)
REFUSED = (
    *("", "/", "/etc/passwd", "a/", "a//b", "a/./b", "a/../../b", "..", "../b", "a/.."),
    *("a\\b", "a\0b", "a\nb", "a/\x7f", "\ud800"),
)
Reopen = Callable[[], ObjectStore]


@pytest.fixture(params=["dictionary", "directory", "s3"])
def reopen(request: pytest.FixtureRequest, tmp_path: File) -> Reopen:
    """Opens the same storage again on each call, as another process would."""
    if request.param == "dictionary":
        shared = DictionaryObjectStore()
        return lambda: shared
    if request.param == "directory":
        return lambda: DirectoryObjectStore(tmp_path / "some" / "where")
    bucket = request.getfixturevalue("s3_bucket")
    return lambda: S3ObjectStore.open(
        bucket.name,
        "some/where",
        endpoint=bucket.endpoint,
        region=bucket.region,
        access_key=bucket.access_key,
        secret_key=bucket.secret_key,
    )


@pytest.fixture
def object_store(reopen: Reopen) -> ObjectStore:
    return reopen()


async def list_digests(object_store: ObjectStore, prefix: str = "") -> dict[str, Digest | None]:
    items = [item async for item in object_store.list(prefix)]
    assert len(items) == len(dict(items))
    return dict(items)


async def test_a_new_store_is_empty(object_store: ObjectStore) -> None:
    assert await object_store.get("a") is None
    assert await list_digests(object_store) == await list_digests(object_store, "a/") == {}
    assert await object_store.put({}) == {}
    await object_store.delete([])


async def test_put_objects_read_back_identically_and_are_listed_with_their_digest(
    reopen: Reopen,
) -> None:
    contents = {key: key.encode() for key in AWKWARD}
    contents |= {"b/empty": b"", "b/binary": b"\x00\xff", "b/large": b"x" * 6_000_000}
    object_store = reopen()

    assert await object_store.put(contents) == {}

    for store in (object_store, reopen()):
        assert {key: await store.get(key) for key in contents} == contents
        assert await list_digests(store) == {key: digest(body) for key, body in contents.items()}
        assert await list_digests(store, "b/") == {
            key: digest(body) for key, body in contents.items() if key.startswith("b/")
        }


async def test_a_later_put_replaces_the_object_for_every_process(reopen: Reopen) -> None:
    mine, theirs = reopen(), reopen()
    await mine.put({"a/b": b"one", "a/c": b"other"})
    assert (await list_digests(theirs))["a/b"] == digest(b"one")

    await mine.put({"a/b": b"two"})

    for store in (mine, theirs):
        assert await list_digests(store) == {"a/b": digest(b"two"), "a/c": digest(b"other")}
        assert await store.get("a/b") == b"two"


async def test_a_prefix_matches_complete_segments(object_store: ObjectStore) -> None:
    await object_store.put(
        {key: b"x" for key in ("t/acme/a", "t/acme-2/a", "t/acmes", "t/acme.d/b")}
    )

    assert set(await list_digests(object_store, "t/acme/")) == {"t/acme/a"}
    assert len(await list_digests(object_store, "t/")) == 4


async def test_a_deleted_object_is_gone_and_others_stay(object_store: ObjectStore) -> None:
    await object_store.put({key: b"x" for key in ("a/b", "a/bc", "a/b-c/d", "e/f/g/h")})

    await object_store.delete(["a/b", "e/f/g/h", "absent", "a/absent", "a/bc/absent"])

    assert await list_digests(object_store) == {"a/bc": digest(b"x"), "a/b-c/d": digest(b"x")}
    assert await object_store.get("a/b") is None


async def test_many_objects_are_put_and_deleted_concurrently(object_store: ObjectStore) -> None:
    contents = {f"n/{number % 7}/{number}": str(number).encode() for number in range(300)}

    async def put_and_delete(turn: int) -> None:
        for _ in range(3):
            await object_store.put({f"r/{turn}/x": b"x"})
            await object_store.delete([f"r/{turn}/x"])

    await asyncio.gather(object_store.put(contents), *(put_and_delete(turn) for turn in range(4)))

    assert await list_digests(object_store) == {key: digest(body) for key, body in contents.items()}
    await object_store.delete(contents)
    assert await list_digests(object_store) == {}


@pytest.mark.parametrize("key", REFUSED, ids=ascii)
async def test_a_key_that_could_escape_is_refused_and_the_others_are_stored(
    object_store: ObjectStore, key: str
) -> None:
    refused = await object_store.put({"good/one": b"1", key: b"2", "good/two": b"3"})

    assert list(refused) == [key]
    assert refused[key]
    assert set(await list_digests(object_store)) == {"good/one", "good/two"}
    assert await object_store.get(key) is None
    await object_store.delete([key])
    assert set(await list_digests(object_store)) == {"good/one", "good/two"}
