"""Contract of ObjectStore, held by a directory, an S3 bucket and the dictionary of the tests."""

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
Again = Callable[[], ObjectStore]


@pytest.fixture(params=["dictionary", "directory", "s3"])
def again(request: pytest.FixtureRequest, tmp_path: File) -> Again:
    """Opens the same place anew each time, as another process would."""
    if request.param == "dictionary":
        only = DictionaryObjectStore()
        return lambda: only
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
def depot(again: Again) -> ObjectStore:
    return again()


async def listed(object_store: ObjectStore, prefix: str = "") -> dict[str, Digest | None]:
    found = [one async for one in object_store.list(prefix)]
    assert len(found) == len(dict(found))
    return dict(found)


async def test_nothing_is_there_at_first(depot: ObjectStore) -> None:
    assert await depot.get("a") is None
    assert await listed(depot) == await listed(depot, "a/") == {}
    assert await depot.put({}) == {}
    await depot.delete([])


async def test_what_is_put_is_got_to_the_byte_and_listed_with_its_digest(again: Again) -> None:
    contents = {key: key.encode() for key in AWKWARD}
    contents |= {"b/empty": b"", "b/binary": b"\x00\xff", "b/large": b"x" * 6_000_000}
    object_store = again()

    assert await object_store.put(contents) == {}

    for place in (object_store, again()):
        assert {key: await place.get(key) for key in contents} == contents
        assert await listed(place) == {key: digest(body) for key, body in contents.items()}
        assert await listed(place, "b/") == {
            key: digest(body) for key, body in contents.items() if key.startswith("b/")
        }


async def test_the_later_is_put_over_the_earlier_and_everybody_sees_it(again: Again) -> None:
    mine, theirs = again(), again()
    await mine.put({"a/b": b"one", "a/c": b"other"})
    assert (await listed(theirs))["a/b"] == digest(b"one")

    await mine.put({"a/b": b"two"})

    for place in (mine, theirs):
        assert await listed(place) == {"a/b": digest(b"two"), "a/c": digest(b"other")}
        assert await place.get("a/b") == b"two"


async def test_a_prefix_ends_with_its_last_segment(depot: ObjectStore) -> None:
    await depot.put({key: b"x" for key in ("t/acme/a", "t/acme-2/a", "t/acmes", "t/acme.d/b")})

    assert set(await listed(depot, "t/acme/")) == {"t/acme/a"}
    assert len(await listed(depot, "t/")) == 4


async def test_what_is_deleted_is_gone_and_nothing_else(depot: ObjectStore) -> None:
    await depot.put({key: b"x" for key in ("a/b", "a/bc", "a/b-c/d", "e/f/g/h")})

    await depot.delete(["a/b", "e/f/g/h", "absent", "a/absent", "a/bc/absent"])

    assert await listed(depot) == {"a/bc": digest(b"x"), "a/b-c/d": digest(b"x")}
    assert await depot.get("a/b") is None


async def test_many_may_be_put_and_deleted_at_once(depot: ObjectStore) -> None:
    contents = {f"n/{number % 7}/{number}": str(number).encode() for number in range(300)}

    async def back_and_forth(turn: int) -> None:
        for _ in range(3):
            await depot.put({f"r/{turn}/x": b"x"})
            await depot.delete([f"r/{turn}/x"])

    await asyncio.gather(depot.put(contents), *(back_and_forth(turn) for turn in range(4)))

    assert await listed(depot) == {key: digest(body) for key, body in contents.items()}
    await depot.delete(contents)
    assert await listed(depot) == {}


@pytest.mark.parametrize("key", REFUSED, ids=ascii)
async def test_a_key_that_could_lead_elsewhere_is_refused_and_others_are_kept(
    depot: ObjectStore, key: str
) -> None:
    refused = await depot.put({"good/one": b"1", key: b"2", "good/two": b"3"})

    assert list(refused) == [key]
    assert refused[key]
    assert set(await listed(depot)) == {"good/one", "good/two"}
    assert await depot.get(key) is None
    await depot.delete([key])
    assert set(await listed(depot)) == {"good/one", "good/two"}
