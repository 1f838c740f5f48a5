"""Several sessions of an agent in one request."""

from __future__ import annotations

from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.rest_client import RestServer, open_rest_server

pytestmark = pytest.mark.anyio

AGENT = "/v1/agents/kate"


@pytest.fixture
async def server(tmp_path: File) -> Any:
    async with open_rest_server(tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(server: RestServer) -> httpx.AsyncClient:
    owner = await server.create_tenant()
    await owner.post("/v1/agents", json={"slug": "kate", "name": "Kate"})
    return owner


async def start(owner: httpx.AsyncClient, id: str = "chat") -> str:
    """The URL of a new session."""
    created = await owner.post(f"{AGENT}/sessions", json={"id": id})
    assert created.status_code == 201, created.text
    return str(created.headers["location"])


async def test_several_sessions_are_read_at_once(owner: httpx.AsyncClient) -> None:
    url, path = await start(owner, id="a:b/c"), f"{AGENT}/session-entries"
    await start(owner, id="empty")
    for n in range(5):
        await owner.post(f"{url}/entries", json={"role": "user", "content": f"{n}"})

    async def read(*positions: str, limit: int = 100) -> Any:
        query: dict[str, Any] = {"session": positions, "limit": limit}
        return (await owner.get(path, params=query)).json()["items"]

    first, none, empty = await read("2:a:b/c", "0:unknown", "0:empty", limit=2)
    assert [entry["content"] for entry in first["entries"]] == ["2", "3"]
    assert (first["id"], first["entryCount"], first["next"]) == ("a:b/c", 5, "4")
    assert none is None
    assert (empty["id"], empty["entries"], empty["next"]) == ("empty", [], None)
    [last], [all] = await read("4:a:b/c"), await read("0:a:b/c")
    assert ([entry["number"] for entry in last["entries"]], last["next"]) == ([5], None)
    assert all == (await owner.get(url)).json()
    [beyond] = await read("9:a:b/c")
    assert beyond["entries"] == []


@pytest.mark.parametrize(
    "query",
    [
        *("", "session=a", "session=:a", "session=-1:a", "session=1:", "session=1:%00"),
        *("session=0:a&x=1", "session=0:a&limit=0", f"session={'9' * 16}:a", "session=0:a&" * 9),
    ],
)
async def test_invalid_reads_of_several_sessions_are_400(
    owner: httpx.AsyncClient, query: str
) -> None:
    await start(owner)
    assert (await owner.get(f"{AGENT}/session-entries?{query}")).status_code == 400
