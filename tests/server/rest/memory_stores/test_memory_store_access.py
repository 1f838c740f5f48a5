"""Who may open memory stores: tenants, permissions and keys that are bound to a workspace."""

from __future__ import annotations

import httpx
import pytest
from tests.server.memory_store_client import STORES, MemoryStoreClient, create_store, error
from tests.support.full_app import FullApp

from carrel.core.access import Permission

pytestmark = pytest.mark.anyio


async def test_a_store_of_another_tenant_does_not_exist(
    server: FullApp, store: MemoryStoreClient
) -> None:
    memory = await store.create("/a.md", "one")
    foreign = MemoryStoreClient(await server.owner("globex"), store.id)
    for answer in (
        await foreign.get(),
        await foreign.get("/memories"),
        await foreign.get(f"/memories/{memory['id']}"),
        await foreign.get("/memory_versions"),
        await foreign.post("/memories", {"path": "/b.md", "content": ""}),
        await foreign.update(memory["id"], content="x"),
        await foreign.delete(memory["id"]),
        await foreign.post("/archive"),
        await foreign.client.delete(store.url),
        await foreign.post(f"/memory_versions/{memory['memory_version_id']}/redact"),
    ):
        assert error(answer, 404)[0] == "not_found_error"
    assert (await foreign.client.get(STORES)).json()["data"] == []
    assert (await store.memory(memory["id"]))["content"] == "one"


async def test_each_request_needs_its_permission(
    server: FullApp, owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    memory = await store.create("/a.md", "one")
    version = memory["memory_version_id"]
    reader = MemoryStoreClient(await server.key(owner, Permission.WORKSPACE_READ), store.id)
    writer = MemoryStoreClient(await server.key(owner, Permission.WORKSPACE_WRITE), store.id)
    for refused in (
        await reader.post("/memories", {"path": "/b.md", "content": ""}),
        await reader.delete(memory["id"]),
        await reader.get(),
        await reader.client.get(STORES),
        await reader.post("/archive"),
        await reader.post(f"/memory_versions/{version}/redact"),
        await writer.get("/memories"),
        await writer.get(f"/memories/{memory['id']}"),
        await writer.get(f"/memory_versions/{version}"),
        await writer.update(memory["id"], path="/b.md"),
        await writer.post(f"/memory_versions/{version}/redact"),
    ):
        assert error(refused, 403)[0] == "permission_error"
    assert await reader.paths() == ["/a.md"]
    assert (await writer.create("/b.md", "two"))["path"] == "/b.md"
    assert (await writer.delete(memory["id"])).is_success


async def test_a_key_of_one_workspace_opens_no_other_store(
    server: FullApp, owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    other = await create_store(owner)
    bound = await server.key(owner, workspace=store.workspace)
    await MemoryStoreClient(bound, store.id).create("/a.md", "one")
    refused = await MemoryStoreClient(bound, other.id).get("/memories")
    assert error(refused, 404)[0] == "not_found_error"


async def test_x_api_key_alone_is_enough(
    server: FullApp, owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    key = await server.key(owner)
    token = key.headers.pop("Authorization").removeprefix("Bearer ")
    headers = {"x-api-key": token, "anthropic-version": "2023-06-01", "anthropic-beta": "x"}
    answer = await key.get(f"{store.url}/memories?beta=true", headers=headers)
    assert answer.json() == {"data": [], "next_page": None}


async def test_writes_are_events_of_the_workspace(
    owner: httpx.AsyncClient, store: MemoryStoreClient, server: FullApp
) -> None:
    memory = await store.create("/a.md", "one")
    await store.update(memory["id"], path="/b.md")
    history = await owner.get(f"/v1/workspaces/{store.workspace}/files/b.md/history")
    assert [row["reason"] for row in history.json()["items"]] == ["move a.md", "put a.md"]
