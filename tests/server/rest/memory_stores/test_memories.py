"""Memories over the wire: creation, renames, preconditions, limits and lists."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import httpx
import pytest
from tests.server.memory_store_client import MemoryStoreClient, error, sha256

pytestmark = pytest.mark.anyio


async def test_a_memory_is_created_read_changed_and_deleted(store: MemoryStoreClient) -> None:
    created = await store.create("/notes/a.md", "héllo")
    assert re.fullmatch("mem_[0-9a-f]{24}", created["id"])
    assert re.fullmatch("memver_[0-9a-f]{24}", created["memory_version_id"])
    assert created == {
        "id": created["id"],
        "type": "memory",
        "memory_store_id": store.id,
        "memory_version_id": created["memory_version_id"],
        "path": "/notes/a.md",
        "content": None,
        "content_sha256": sha256("héllo"),
        "content_size_bytes": 6,
        "created_at": created["created_at"],
        "updated_at": created["created_at"],
    }
    assert await store.memory(created["id"]) == {**created, "content": "héllo"}
    assert await store.memory(created["id"], view="basic") == created
    changed = (await store.update(created["id"], content="two")).json()
    assert changed["memory_version_id"] != created["memory_version_id"]
    assert (changed["created_at"], changed["path"]) == (created["created_at"], "/notes/a.md")
    gone = await store.delete(created["id"])
    assert gone.json() == {"id": created["id"], "type": "memory_deleted"}
    for answer in (
        await store.get(f"/memories/{created['id']}"),
        await store.update(created["id"], content="x"),
        await store.delete(created["id"]),
        await store.get("/memories/mem_0"),
    ):
        assert error(answer, 404)[0] == "not_found_error"
    again = await store.create("/notes/a.md", "three")
    assert again["id"] != created["id"]
    assert again["created_at"] == again["updated_at"]


async def test_an_id_and_the_creation_time_stay_when_a_memory_is_renamed_and_rewritten(
    store: MemoryStoreClient,
) -> None:
    created = await store.create("/a.md", "one")
    for n, fields in enumerate([{"path": "/x/b.md"}, {"path": "/c.md", "content": "two"}]):
        renamed = (await store.update(created["id"], **fields)).json()
        assert renamed["path"] == fields["path"]
        assert (renamed["id"], renamed["created_at"]) == (created["id"], created["created_at"])
        assert renamed["content_sha256"] == sha256(("one", "two")[n])
    assert await store.paths() == ["/c.md"]
    await store.create("/a.md", "another")
    rewritten = (await store.update(created["id"], path="/a2.md", content="three")).json()
    assert rewritten["created_at"] == created["created_at"]
    assert (await store.memory(created["id"]))["content"] == "three"


async def test_a_precondition_holds_for_content_and_renames(store: MemoryStoreClient) -> None:
    memory = (await store.create("/a.md", "one"))["id"]
    stale = {"type": "content_sha256", "content_sha256": sha256("zero")}
    fresh = {"type": "content_sha256", "content_sha256": sha256("one")}
    for fields in ({"content": "two"}, {"path": "/b.md"}, {"content": "two", "path": "/b.md"}):
        refused = await store.update(memory, precondition=stale, **fields)
        assert error(refused, 409)[0] == "memory_precondition_failed_error"
    assert (await store.update(memory, precondition=fresh, content="two")).is_success
    same = await store.update(memory, precondition=fresh, content="two", path="/a.md")
    assert same.is_success, "what is so already is no conflict"
    assert len(await store.versions(memory_id=memory)) == 2
    refused = await store.delete(memory, expected_content_sha256=sha256("one"))
    assert error(refused, 409)[0] == "memory_precondition_failed_error"
    assert (await store.delete(memory, expected_content_sha256=sha256("two"))).is_success
    for bad in ({"type": "other"}, {"type": "content_sha256", "content_sha256": "A" * 64}):
        error(await store.update(memory, precondition=bad, content="x"), 400)


async def test_of_many_writers_with_one_precondition_one_wins(store: MemoryStoreClient) -> None:
    memory = (await store.create("/a.md", "0"))["id"]
    precondition = {"type": "content_sha256", "content_sha256": sha256("0")}
    answers = await asyncio.gather(
        *(store.update(memory, content=f"by {n}", precondition=precondition) for n in range(8))
    )
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [200] + [409] * 7
    [winner] = [answer.json() for answer in answers if answer.is_success]
    assert (await store.memory(memory))["content_sha256"] == winner["content_sha256"]
    assert len(await store.versions(memory_id=memory)) == 2


async def test_of_many_creations_at_one_path_one_wins(store: MemoryStoreClient) -> None:
    bodies = [{"path": "/a.md", "content": str(n)} for n in range(8)]
    answers = await asyncio.gather(*(store.post("/memories", body) for body in bodies))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    refused = next(answer for answer in answers if not answer.is_success)
    assert error(refused, 409)[0] == "memory_path_conflict_error"


async def test_a_rename_and_a_write_at_once_lose_nothing(store: MemoryStoreClient) -> None:
    memory = (await store.create("/a.md", "one"))["id"]
    renamed, written = await asyncio.gather(
        store.update(memory, path="/b.md"), store.update(memory, content="two")
    )
    assert (renamed.status_code, written.status_code) == (200, 200)
    after = await store.memory(memory)
    assert (after["path"], after["content"]) == ("/b.md", "two")


async def test_a_path_at_above_or_below_a_memory_is_a_conflict(store: MemoryStoreClient) -> None:
    blocking = await store.create("/a/b", "one")
    moved = (await store.create("/c", "two"))["id"]
    for path in ("/a/b", "/a/b/c", "/a"):
        for answer in (
            await store.post("/memories", {"path": path, "content": ""}),
            await store.update(moved, path=path),
        ):
            assert error(answer, 409)[0] == "memory_path_conflict_error"
            assert answer.json()["error"]["conflicting_memory_id"] == blocking["id"]
            assert answer.json()["error"]["conflicting_path"] == "/a/b"
    renamed = await store.update(moved, path="/C")
    assert renamed.json()["path"] == "/C", "paths are case-sensitive"


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "a", "a/b", "//", "/a//b", "/a/", "/./a", "/a/..", "/../a", "/a\x00", "/a\n"),
        *("/a\u200b", "/a\u2028", "/e\u0301", "/" + "a/" * 20 + "a", "/" + "a" * 1024),
        *("/" + "é" * 512, "/\u202ea"),
    ],
)
async def test_a_path_that_the_api_does_not_allow_is_refused(
    store: MemoryStoreClient, path: str
) -> None:
    answer = await store.post("/memories", {"path": path, "content": ""})
    assert error(answer, 400)[0] == "invalid_request_error"


@pytest.mark.parametrize(
    "path", ["/a", "/.hidden", "/é b/ü?.md", "/" + "a/" * 19 + "a", "/" + "/".join(["a" * 203] * 5)]
)
async def test_every_allowed_path_is_listed_as_it_was_created(
    store: MemoryStoreClient, path: str
) -> None:
    await store.create(path, "x")
    assert await store.paths() == [path]


async def test_contents_have_a_limit_and_may_be_empty(store: MemoryStoreClient) -> None:
    largest = "é" * 51_200
    memory = await store.create("/a", largest, view="full")
    assert memory["content"] == largest
    for size, status in ((102_401, 400), (800_000, 413)):
        answer = await store.update(memory["id"], content="x" * size)
        assert error(answer, status)[0] == "invalid_request_error"
    empty = await store.post("/memories", {"path": "/b", "content": None})
    assert empty.json()["content_sha256"] == sha256("")
    assert (await store.memory(empty.json()["id"]))["content"] == ""


async def test_a_store_has_at_most_2000_memories(
    owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    for half in range(2):
        writes = [{"op": "put", "path": f"{half}/{n}", "content": ""} for n in range(1000)]
        url = f"/v1/workspaces/{store.workspace}/commits"
        assert (await owner.post(url, json={"writes": writes})).is_success
    refused = await store.post("/memories", {"path": "/one more", "content": ""})
    assert error(refused, 413)[1] == "the workspace may have 2000 files"
    [first, *_] = (await store.get("/memories", limit=1)).json()["data"]
    assert (await store.update(first["id"], path="/renamed", content="x")).is_success
    assert len(await store.rows(limit=100)) == 2000


async def test_secrets_are_redacted_from_contents_and_refused_in_paths(
    owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    assert (await owner.put("/v1/secrets/word", json={"value": "xylophone"})).is_success
    created = await store.create("/a.md", "a xylophone", view="full")
    assert created["content"] == "a [REDACTED:word]"
    assert created["content_sha256"] == sha256("a [REDACTED:word]")
    renamed = await store.update(created["id"], path="/b.md", content="my xylophone")
    assert renamed.json()["content_sha256"] == sha256("my [REDACTED:word]")
    error(await store.post("/memories", {"path": "/xylophone", "content": ""}), 400)


async def test_memories_are_listed_by_prefix_depth_view_and_page(store: MemoryStoreClient) -> None:
    paths = ["/a.md", "/notes-2/x.md", "/notes/deep/er/z.md", "/notes/deep/y.md", "/notes/x.md"]
    for path in reversed(paths):
        await store.create(path, f"in {path}")
    assert await store.paths() == paths
    assert await store.paths(limit=2) == paths
    assert await store.paths(path_prefix="/notes/") == paths[2:]
    assert await store.paths(path_prefix="/") == paths
    assert await store.paths(path_prefix="/nothing/") == []
    top = await store.rows(depth=1)
    assert [(row["type"], row["path"]) for row in top] == [
        ("memory", "/a.md"),
        ("memory_prefix", "/notes-2/"),
        ("memory_prefix", "/notes/"),
    ]
    assert await store.rows(depth=1, limit=1) == top
    assert await store.paths(depth=1, path_prefix="/notes/") == ["/notes/deep/", "/notes/x.md"]
    full = await store.rows(view="full", path_prefix="/notes/deep/er/")
    assert [row["content"] for row in full] == ["in /notes/deep/er/z.md"]
    assert {row["content"] for row in await store.rows()} == {None}


async def test_a_page_with_contents_has_at_most_20_rows(store: MemoryStoreClient) -> None:
    for n in range(25):
        await store.create(f"/{n:02}", str(n))
    sizes = [
        len((await store.get("/memories", **query)).json()["data"])
        for query in ({}, {"limit": 100}, {"limit": 100, "view": "full"}, {"limit": 3})
    ]
    assert sizes == [20, 25, 20, 3]
    contents = [row["content"] for row in await store.rows(view="full", limit=100)]
    assert contents == [str(n) for n in range(25)]


@pytest.mark.parametrize(
    "query",
    [
        {"path_prefix": "/notes"},
        {"path_prefix": "notes/"},
        {"depth": "2"},
        {"view": "some"},
        {"limit": "0"},
        {"limit": "101"},
        {"page": "é"},
    ],
)
async def test_an_invalid_query_of_a_list_is_refused(
    store: MemoryStoreClient, query: dict[str, Any]
) -> None:
    assert error(await store.get("/memories", **query), 400)[0] == "invalid_request_error"


async def test_files_that_no_memory_can_be_are_not_listed(
    owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    files = f"/v1/workspaces/{store.workspace}/files"
    for name, type, content in (
        ("text.md", "text/markdown", b"text"),
        ("not-utf-8.md", "text/markdown", b"\xff\xfe"),
        ("picture.png", "image/png", b"\x89PNG"),
        ("large.md", "text/markdown", b"x" * 102_401),
        ("format\u200bcharacter.md", "text/markdown", b"x"),
    ):
        put = await owner.put(f"{files}/{name}", content=content, headers={"content-type": type})
        assert put.is_success, put.text
    assert await store.paths(view="full") == ["/text.md"]
    refused = await store.post("/memories", {"path": "/picture.png", "content": ""})
    assert error(refused, 409)[0] == "memory_path_conflict_error"


async def test_a_change_over_another_protocol_is_seen_at_once(
    owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    memory = (await store.create("/a.md", "one"))["id"]
    root = f"/v1/workspaces/{store.workspace}"
    await owner.put(f"{root}/files/a.md", json={"content": "two"})
    assert (await store.memory(memory))["content"] == "two"
    await owner.post(f"{root}/move", json={"from": "a.md", "to": "b.md"})
    assert (await store.memory(memory))["path"] == "/b.md"
    assert await store.paths() == ["/b.md"]


async def test_a_repeated_write_happens_once(
    owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    url, body = f"{store.url}/memories", {"path": "/a.md", "content": "one"}
    answers = [await owner.post(url, json=body, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert answers[0].json() == answers[1].json()
    assert answers[0].is_success
