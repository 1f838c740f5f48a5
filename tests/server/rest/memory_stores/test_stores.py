"""Memory stores over the wire: fields, lists, archive, deletion and errors."""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from tests.server.memory_store_client import STORES, MemoryStoreClient, create_store, error
from tests.support.full_app import FullApp

pytestmark = pytest.mark.anyio


async def test_a_store_is_created_read_changed_listed_and_deleted(
    owner: httpx.AsyncClient,
) -> None:
    fields = {"name": " User's notes ", "description": "d", "metadata": {"user": "ada", "x": "1"}}
    created = await owner.post(f"{STORES}?beta=true", json=fields)
    store = created.json()
    assert re.fullmatch("memstore_[0-9a-f]{24}", store["id"])
    assert created.headers["request-id"] == created.headers["x-request-id"]
    assert store == {
        **fields,
        "id": store["id"],
        "type": "memory_store",
        "created_at": store["created_at"],
        "updated_at": store["created_at"],
        "archived_at": None,
    }
    url = f"{STORES}/{store['id']}"
    assert (await owner.get(url)).json() == store
    patch = {"name": None, "description": "", "metadata": {"user": None, "y": "2"}}
    changed = (await owner.post(url, json=patch)).json()
    assert changed == {
        **store,
        "description": "",
        "metadata": {"x": "1", "y": "2"},
        "updated_at": changed["updated_at"],
    }
    assert (await owner.get(STORES)).json() == {"data": [changed], "next_page": None}
    deleted = await owner.delete(url)
    assert deleted.json() == {"id": store["id"], "type": "memory_store_deleted"}
    for gone in (await owner.get(url), await owner.post(url, json={}), await owner.delete(url)):
        assert error(gone, 404) == ("not_found_error", f"no such memory store: {store['id']}")


async def test_a_store_is_a_shared_workspace_and_each_of_them_a_store(
    owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    memory = await store.create("/a.md", "one")
    file = await owner.get(f"/v1/workspaces/{store.workspace}/files/a.md")
    assert (file.json()["content"], file.json()["fileId"]) == ("one", f"f_{memory['id'][4:]}")
    docs = (await owner.post("/accounts/me/workspaces", json={"name": "docs"})).json()
    names = [row["name"] for row in (await owner.get(STORES)).json()["data"]]
    assert names == ["notes", "docs"]
    other = MemoryStoreClient(owner, f"memstore_{docs['workspaceId'][3:]}")
    assert (await other.post(body={"metadata": {"a": "b"}})).json()["metadata"] == {"a": "b"}
    assert (await owner.delete(f"/accounts/me/workspaces/{docs['workspaceId']}")).is_success
    error(await other.get(), 404)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"name": ""},
        {"name": "x" * 256},
        {"name": "a\nb"},
        {"name": "a", "description": "x" * 1025},
        {"name": "a", "metadata": {str(n): "" for n in range(17)}},
        {"name": "a", "metadata": {"k" * 65: ""}},
        {"name": "a", "metadata": {"": ""}},
        {"name": "a", "metadata": {"k": "v" * 513}},
        {"name": "a", "metadata": {"k": 1}},
    ],
)
async def test_fields_beyond_the_limits_are_refused(
    owner: httpx.AsyncClient, fields: dict[str, Any]
) -> None:
    assert error(await owner.post(STORES, json=fields), 400)[0] == "invalid_request_error"


async def test_fields_at_the_limits_are_kept(owner: httpx.AsyncClient) -> None:
    metadata = {f"{n:064}": "v" * 512 for n in range(16)}
    fields = {"name": "é" * 255, "description": "d" * 1024, "metadata": metadata}
    store = await create_store(owner, **fields)
    assert fields.items() <= (await store.get()).json().items()
    one_more = await store.post(body={"metadata": {"one more": ""}})
    assert error(one_more, 400)[1] == "metadata may have 16 pairs"


async def test_secrets_are_redacted_from_the_fields(owner: httpx.AsyncClient) -> None:
    assert (await owner.put("/v1/secrets/word", json={"value": "xylophone"})).is_success
    store = await create_store(
        owner, name="xylophone", description="a xylophone", metadata={"xylophone": "xylophone"}
    )
    text = (await store.get()).text
    assert "xylophone" not in text
    assert text.count("[REDACTED:word]") == 4


async def test_stores_are_listed_in_pages_and_by_time(owner: httpx.AsyncClient) -> None:
    stores = [await create_store(owner, name=f"store {n}") for n in range(5)]
    times = [(await store.get()).json()["created_at"] for store in stores]
    first = (await owner.get(STORES, params={"limit": 3})).json()
    second = (await owner.get(STORES, params={"limit": 3, "page": first["next_page"]})).json()
    ids = [row["id"] for row in first["data"] + second["data"]]
    assert (ids, second["next_page"]) == ([store.id for store in stores], None)
    query = {"created_at[gte]": times[1], "created_at[lte]": times[3]}
    listed = (await owner.get(STORES, params=query)).json()["data"]
    assert {stores[1].id, stores[2].id, stores[3].id} <= {row["id"] for row in listed}
    late = {"created_at[gte]": "2199-01-01T00:00:00Z"}
    assert (await owner.get(STORES, params=late)).json()["data"] == []
    for query in ({"limit": "0"}, {"limit": "101"}, {"page": "?"}, {"created_at[gte]": "now"}):
        error(await owner.get(STORES, params=query), 400)


async def test_an_archived_store_is_read_and_deleted_from_over_every_protocol(
    owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    memory, other = await store.create("/a.md", "one"), await store.create("/b.md", "two")
    archived = (await store.post("/archive")).json()
    assert archived["archived_at"] == archived["updated_at"]
    assert (await store.post("/archive")).json() == archived
    assert (await owner.get(STORES)).json()["data"] == []
    listed = await owner.get(STORES, params={"include_archived": "true"})
    assert listed.json()["data"] == [archived]
    for refused in (
        await store.post("/memories", {"path": "/c.md", "content": ""}),
        await store.update(memory["id"], content="two"),
        await store.update(memory["id"], path="/c.md"),
        await store.post(body={"name": "other"}),
    ):
        assert error(refused, 400)[0] == "invalid_request_error"
    files = f"/v1/workspaces/{store.workspace}"
    move = {"from": "a.md", "to": "c.md"}
    for refused in (
        await owner.put(f"{files}/files/a.md", json={"content": "x"}),
        await owner.post(f"{files}/move", json=move),
        await owner.post(f"{files}/directories", json={"path": "d"}),
        await owner.put(f"{files}/files/b.bin", content=b"x", headers={"content-type": "a/b"}),
        await owner.patch(f"/accounts/me/workspaces/{store.workspace}", json={"name": "x"}),
    ):
        assert refused.status_code == 409, refused.text
        assert "archived" in refused.text
    assert await store.paths() == ["/a.md", "/b.md"]
    assert (await store.delete(memory["id"])).is_success
    assert (await owner.delete(f"{files}/files/b.md")).is_success
    [version] = await store.versions(memory_id=other["id"], operation="created")
    redacted = await store.post(f"/memory_versions/{version['id']}/redact")
    assert redacted.json()["path"] is None
    assert (await owner.delete(store.url)).is_success


async def test_no_tool_and_no_command_writes_to_an_archived_store(
    owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    await store.create("/a.md", "one")
    box = {"name": "box", "config": {"permissionMode": "bypass"}}
    sandbox = (await owner.post("/accounts/me/sandboxes", json=box)).json()["sandboxId"]
    attached = [{"name": "notes", "workspaceId": store.workspace}]
    config = {"sandbox": sandbox, "workspaces": attached}
    agent = {"slug": "kate", "name": "Kate", "config": config}
    assert (await owner.post("/v1/agents", json=agent)).is_success
    await store.post("/archive")
    call = {"arguments": {"file_path": "a.md", "old_string": "one", "new_string": "two"}}
    edited = (await owner.post("/v1/agents/kate/tools/edit", json=call)).json()
    assert edited["isError"], edited
    assert (await store.rows(view="full"))[0]["content"] == "one"


async def test_a_repeated_creation_and_change_happen_once(owner: httpx.AsyncClient) -> None:
    headers = {"Idempotency-Key": "k"}
    ids = [
        (await owner.post(STORES, json={"name": "a"}, headers=headers)).json()["id"]
        for _ in range(2)
    ]
    assert ids[0] == ids[1]
    assert len((await owner.get(STORES)).json()["data"]) == 1


async def test_errors_of_every_kind_have_the_envelope(
    server: FullApp, owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    assert error(await server.as_("wrong").get(STORES), 401)[0] == "authentication_error"
    reader = await server.key(owner)
    assert error(await reader.post(STORES, json={"name": "a"}), 403)[0] == "permission_error"
    method = await owner.put(store.url, json={})
    assert error(method, 405)[0] == "invalid_request_error"
    broken = await owner.post(STORES, content=b"{", headers={"content-type": "application/json"})
    assert error(broken, 400)[0] == "invalid_request_error"
    for id in ("memstore_0", "memstore_" + "0" * 24, store.workspace, "%00", "memstore_é"):
        assert error(await owner.get(f"{STORES}/{id}"), 404)[0] == "not_found_error"
