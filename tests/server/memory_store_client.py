"""A memory store over the wire, as the hosted API's SDK requests it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import httpx

STORES = "/v1/memory_stores"


def sha256(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def error(response: httpx.Response, status: int) -> tuple[str, str]:
    """Type and message of an error in the API's envelope."""
    assert response.status_code == status, response.text
    body = response.json()
    assert (list(body), body["type"]) == (["error", "type"], "error")
    assert response.headers["request-id"] == response.headers["x-request-id"]
    return body["error"]["type"], body["error"]["message"]


async def create_store(client: httpx.AsyncClient, **fields: Any) -> MemoryStoreClient:
    response = await client.post(f"{STORES}?beta=true", json={"name": "notes", **fields})
    assert response.status_code == 200, response.text
    return MemoryStoreClient(client, response.json()["id"])


@dataclass(frozen=True)
class MemoryStoreClient:
    """One store, and a client that opens it."""

    client: httpx.AsyncClient
    id: str

    @property
    def url(self) -> str:
        return f"{STORES}/{self.id}"

    @property
    def workspace(self) -> str:
        return f"ws_{self.id.removeprefix('memstore_')}"

    async def post(self, path: str = "", body: Any = None, **query: Any) -> httpx.Response:
        return await self.client.post(
            f"{self.url}{path}", json=body, params={"beta": "true", **query}
        )

    async def get(self, path: str = "", **query: Any) -> httpx.Response:
        return await self.client.get(f"{self.url}{path}", params={"beta": "true", **query})

    async def create(self, path: str, content: str = "", **query: Any) -> dict[str, Any]:
        response = await self.post("/memories", {"path": path, "content": content}, **query)
        return _success(response)

    async def update(self, memory: str, **fields: Any) -> httpx.Response:
        return await self.post(f"/memories/{memory}", fields)

    async def delete(self, memory: str, **query: Any) -> httpx.Response:
        return await self.client.delete(f"{self.url}/memories/{memory}", params=query)

    async def memory(self, memory: str, **query: Any) -> dict[str, Any]:
        return _success(await self.get(f"/memories/{memory}", **query))

    async def rows(self, kind: str = "memories", **query: Any) -> list[dict[str, Any]]:
        """All rows of a list, page by page."""
        rows: list[dict[str, Any]] = []
        page: str | None = ""
        while page is not None:
            body = _success(await self.get(f"/{kind}", **query, **({"page": page} if page else {})))
            rows += body["data"]
            page = body["next_page"]
        return rows

    async def paths(self, **query: Any) -> list[str]:
        return [row["path"] for row in await self.rows(**query)]

    async def versions(self, **query: Any) -> list[dict[str, Any]]:
        return await self.rows("memory_versions", **query)


def _success(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body
