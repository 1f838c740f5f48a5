"""Versions of memories over the wire: operations, filters and redaction."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from tests.server.memory_store_client import MemoryStoreClient, create_store, error, sha256
from tests.support.full_app import FullApp

from carrel.core.access import Permission

pytestmark = pytest.mark.anyio


def _changes(versions: list[dict[str, Any]]) -> list[tuple[str, str | None, str | None]]:
    return [(row["operation"], row["path"], row["content"]) for row in versions]


async def test_every_change_is_one_version_newest_first(store: MemoryStoreClient) -> None:
    memory = await store.create("/a.md", "one")
    other = await store.create("/other.md", "x")
    await store.update(memory["id"], content="two")
    await store.update(memory["id"], path="/b.md")
    moved = (await store.update(memory["id"], path="/c.md", content="three")).json()
    await store.delete(memory["id"])
    await store.create("/c.md", "new")
    expected = [
        ("deleted", "/c.md", None),
        ("modified", "/c.md", "three"),
        ("modified", "/b.md", "two"),
        ("modified", "/a.md", "two"),
        ("created", "/a.md", "one"),
    ]
    versions = await store.versions(memory_id=memory["id"], view="full")
    assert _changes(versions) == expected
    assert {row["memory_id"] for row in versions} == {memory["id"]}
    assert versions[1]["id"] == moved["memory_version_id"]
    assert versions[4]["id"] == memory["memory_version_id"]
    assert versions[0]["content_sha256"] is versions[0]["content_size_bytes"] is None
    everything = await store.versions(view="full")
    assert _changes(everything) == [
        ("created", "/c.md", "new"),
        *expected[:4],
        ("created", "/other.md", "x"),
        expected[4],
    ]
    assert await store.versions(limit=1, view="full") == everything
    assert await store.versions(limit=3, memory_id=memory["id"], view="full") == versions
    assert [row["content"] for row in await store.versions()] == [None] * 7
    for row in everything:
        full = await store.get(f"/memory_versions/{row['id']}")
        assert full.json() == row
        basic = await store.get(f"/memory_versions/{row['id']}", view="basic")
        assert basic.json() == {**row, "content": None}
    assert other["memory_version_id"] == everything[5]["id"]


async def test_versions_are_filtered_by_operation_time_and_author(
    server: FullApp, owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    key = await server.key(owner, Permission.WORKSPACE_READ, Permission.WORKSPACE_WRITE)
    memory = await store.create("/a.md", "one")
    by_key = MemoryStoreClient(key, store.id)
    await by_key.update(memory["id"], content="two")
    modified, created = await store.versions()
    me = (await owner.get("/v1/people")).json()["items"][0]["id"]
    assert created["created_by"] == {"type": "user_actor", "user_id": me}
    assert modified["created_by"]["type"] == "api_actor"
    key_id = modified["created_by"]["api_key_id"]
    assert key_id.startswith("key_")
    for query, expected in (
        ({"api_key_id": key_id}, [modified]),
        ({"operation": "created"}, [created]),
        ({"operation": "deleted"}, []),
        ({"session_id": "run_1"}, []),
        ({"service_account_id": "svac_1"}, []),
        ({"created_at[gte]": created["created_at"]}, [modified, created]),
        ({"created_at[gte]": "2199-01-01T00:00:00Z"}, []),
        ({"created_at[lte]": "2000-01-01T00:00:00Z"}, []),
        ({"memory_id": "mem_" + "0" * 24}, []),
    ):
        assert await store.versions(**query) == expected, query
    for query in ({"operation": "other"}, {"page": "AAAA"}, {"created_at[lte]": "x"}):
        error(await store.get("/memory_versions", **query), 400)
    error(await store.get("/memory_versions", memory_id="mem_0"), 404)


async def test_a_write_of_a_run_is_shown_as_that_of_a_session(
    owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    assert (await owner.post("/v1/agents", json={"slug": "kate", "name": "Kate"})).is_success
    started = await owner.post("/v1/runs", json={"workflowId": "wf", "agentId": "kate"})
    run = started.json()["runId"]
    url = f"/v1/workspaces/{store.workspace}/files/a.md"
    put = await owner.put(url, json={"content": "one"}, headers={"Carrel-Run": run})
    assert put.is_success, put.text
    [version] = await store.versions(session_id=run)
    assert version["created_by"] == {"type": "session_actor", "session_id": run}


async def test_a_redacted_version_loses_content_and_path_and_nothing_else(
    server: FullApp, owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    memory = await store.create("/a.md", "xylophone one")
    await store.update(memory["id"], content="two")
    url = f"/memory_versions/{memory['memory_version_id']}"
    before = (await store.get(url)).json()
    redacted = (await store.post(f"{url}/redact")).json()
    assert redacted == {
        **before,
        "path": None,
        "content": None,
        "content_sha256": None,
        "content_size_bytes": None,
        "redacted_at": redacted["redacted_at"],
        "redacted_by": before["created_by"],
    }
    assert redacted["redacted_at"] >= before["created_at"]
    assert (await store.get(url)).json() == redacted
    assert (await store.post(f"{url}/redact")).json() == redacted, "once for ever"
    assert redacted in await store.versions(view="full")
    assert (await store.memory(memory["id"]))["content"] == "two"
    version = await owner.get(f"/v1/workspaces/{store.workspace}/files/a.md?version=1")
    assert "xylophone" not in version.text
    assert "xylophone" not in (await owner.get("/v1/search?q=xylophone")).text
    [entry, *_] = (await owner.get("/v1/audit")).json()["items"]
    assert (entry["why"], entry["subjects"]) == (
        "redact a version",
        [f"workspace/{store.workspace}", "version/1"],
    )


async def test_a_repeated_write_of_a_redacted_version_gets_no_content(
    owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    text = 'xylophone "one" é\n' * 9

    async def write(key: str, url: str, body: dict[str, Any]) -> dict[str, Any]:
        response = await owner.post(url, json=body, headers={"Idempotency-Key": key})
        assert response.status_code == 200, response.text
        written: dict[str, Any] = response.json()
        return written

    create = ("a", f"{store.url}/memories?view=full", {"path": "/a.md", "content": text})
    created = await write(*create)
    short = ("b", f"{store.url}/memories?view=full", {"path": "/b.md", "content": "x"})
    shortest = await write(*short)
    await store.update(created["id"], content="two")
    files = f"/v1/workspaces/{store.workspace}/files/a.md"
    restored = await write("c", f"{files}/restore", {"version": 1})
    assert created["content"] == restored["content"] == text
    for memory in (created, shortest):
        await store.post(f"/memory_versions/{memory['memory_version_id']}/redact")
    assert (await write("c", f"{files}/restore", {"version": 1}))["content"] == "[REDACTED]"
    assert await write(*create) == {**created, "content": "[REDACTED]"}
    assert await write(*short) == {**shortest, "content": ""}
    assert (await owner.get(files)).json()["content"] == text, "another version"


async def test_many_redactions_and_writes_at_once_all_succeed(store: MemoryStoreClient) -> None:
    memory = await store.create("/a.md", "xylophone")
    url = f"/memory_versions/{memory['memory_version_id']}/redact"
    writes = (store.update(memory["id"], content=f"{number}") for number in range(4))
    answers = await asyncio.gather(*(store.post(url) for _ in range(4)), *writes)
    assert {answer.status_code for answer in answers} == {200}
    [version] = await store.versions(operation="created")
    assert version["redacted_at"] is not None


async def test_the_current_version_is_redacted_by_a_new_one(store: MemoryStoreClient) -> None:
    memory = await store.create("/a.md", "secret")
    await store.post(f"/memory_versions/{memory['memory_version_id']}/redact")
    current = await store.memory(memory["id"])
    assert current["content"] == "[REDACTED]\n"
    assert current["memory_version_id"] != memory["memory_version_id"]
    newest, oldest = await store.versions(view="full")
    assert (newest["operation"], newest["content"]) == ("modified", "[REDACTED]\n")
    assert (oldest["redacted_at"] is None, newest["redacted_at"]) == (False, None)


async def test_versions_of_a_deleted_memory_stay_and_those_of_a_deleted_store_do_not(
    store: MemoryStoreClient,
) -> None:
    memory = await store.create("/a.md", "one")
    await store.delete(memory["id"])
    assert len(await store.versions(memory_id=memory["id"])) == 2
    url = f"/memory_versions/{memory['memory_version_id']}"
    assert (await store.get(url)).json()["content_sha256"] == sha256("one")
    await store.client.delete(store.url)
    error(await store.get(url), 404)


async def test_a_version_is_found_only_in_its_own_store(
    owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    memory = await store.create("/a.md", "one")
    other = await create_store(owner)
    await other.create("/b.md", "two")
    id = memory["memory_version_id"]
    for answer in (
        await other.get(f"/memory_versions/{id}"),
        await other.post(f"/memory_versions/{id}/redact"),
        await other.get(f"/memories/{memory['id']}"),
        await other.delete(memory["id"]),
        await store.get("/memory_versions/memver_0"),
        await store.get("/memory_versions/memver_" + "f" * 24),
    ):
        assert error(answer, 404)[0] == "not_found_error"


async def test_changes_of_a_whole_directory_are_versions_in_pages(
    owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    root = f"/v1/workspaces/{store.workspace}"
    writes = [{"op": "put", "path": f"a/{n}", "content": str(n)} for n in range(150)]
    assert (await owner.post(f"{root}/commits", json={"writes": writes})).is_success
    move = {"from": "a", "to": "b"}
    assert (await owner.post(f"{root}/move", json=move)).is_success
    assert (await owner.delete(f"{root}/directories/b?recursive=true")).is_success
    versions = await store.versions(limit=100)
    operations = [row["operation"] for row in versions]
    assert operations == ["deleted"] * 150 + ["modified"] * 150 + ["created"] * 150
    assert len({row["id"] for row in versions}) == 450
    assert len({row["memory_id"] for row in versions}) == 150
