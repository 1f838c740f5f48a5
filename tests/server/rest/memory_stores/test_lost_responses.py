"""Writes to memory stores whose response was lost: a retry gets it, and nothing happens twice."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.server.memory_store_client import STORES, MemoryStoreClient
from tests.support.full_app import FullApp

pytestmark = pytest.mark.anyio


class Killed(BaseException):
    """The process died between the commit and the response."""


async def lose_and_retry(
    server: FullApp, client: httpx.AsyncClient, method: str, url: str, body: Any = None
) -> dict[str, Any]:
    """Send a request whose response is lost, then again; return the second response."""
    headers = {"Idempotency-Key": "k"}

    async def die(*_: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as crash, pytest.raises(Killed):
        crash.setattr(server.ports.idempotency, "complete", die, raising=False)
        await client.request(method, url, json=body, headers=headers)
    retried = await client.request(method, url, json=body, headers=headers)
    assert retried.status_code == 200, retried.text
    assert retried.headers["openwop-idempotent-replay"] == "true"
    answer: dict[str, Any] = retried.json()
    return answer


async def test_a_store_is_created_changed_archived_and_deleted_once(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    created = await lose_and_retry(server, owner, "POST", STORES, {"name": "a"})
    assert (await owner.get(STORES)).json()["data"] == [created]
    url = f"{STORES}/{created['id']}"
    changed = await lose_and_retry(server, owner, "POST", url, {"name": "b"})
    assert changed["name"] == "b"
    archived = await lose_and_retry(server, owner, "POST", f"{url}/archive")
    assert archived["archived_at"] is not None
    deleted = await lose_and_retry(server, owner, "DELETE", url)
    assert deleted == {"id": created["id"], "type": "memory_store_deleted"}


async def test_a_memory_is_created_changed_renamed_and_deleted_once(
    server: FullApp, owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    memories = f"{store.url}/memories"
    body = {"path": "/a.md", "content": "one"}
    created = await lose_and_retry(server, owner, "POST", f"{memories}?view=full", body)
    assert await store.memory(created["id"]) == created
    url = f"{memories}/{created['id']}"
    precondition = {"type": "content_sha256", "content_sha256": created["content_sha256"]}
    change = {"content": "two", "path": "/b.md", "precondition": precondition}
    changed = await lose_and_retry(server, owner, "POST", url, change)
    assert (changed["path"], changed["id"]) == ("/b.md", created["id"])
    assert await store.memory(created["id"], view="basic") == changed
    deleted = await lose_and_retry(server, owner, "DELETE", url)
    assert deleted == {"id": created["id"], "type": "memory_deleted"}
    operations = [row["operation"] for row in await store.versions()]
    assert operations == ["deleted", "modified", "created"]


async def test_a_version_is_redacted_once(
    server: FullApp, owner: httpx.AsyncClient, store: MemoryStoreClient
) -> None:
    memory = await store.create("/a.md", "one")
    url = f"{store.url}/memory_versions/{memory['memory_version_id']}/redact"
    with pytest.MonkeyPatch.context() as crash, pytest.raises(Killed):

        async def die(*_: object) -> None:
            raise Killed

        crash.setattr(server.ports.idempotency, "complete", die, raising=False)
        await owner.post(url, headers={"Idempotency-Key": "k"})
    retried = await owner.post(url)
    assert retried.json()["redacted_at"] is not None
    assert len(await store.versions()) == 2
