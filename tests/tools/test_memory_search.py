"""The tool `memory_search`: memories, notes and memory files together."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app

pytestmark = pytest.mark.anyio
AGENT = "/v1/agents/kate"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    created = await owner.post("/v1/agents", json={"slug": "kate", "name": "Kate"})
    assert created.status_code == 201, created.text
    for path, content in (
        ("MEMORY.md", "# Memory\n\n## People\n- Luis likes café au lait.\n- Ann likes tea.\n"),
        ("notes/2026-01-02.md", "The zeppelin landed.\n\nLuis was there.\n"),
        ("memory/places.md", "intro\n\n### Harbour\n" + "The ferry leaves at nine.\n" * 3),
        ("SOUL.md", "Never board a zeppelin.\n"),
    ):
        await put(owner, path, content)
    body = {"arguments": {"content": "Luis owns a zeppelin since 2020"}}
    assert (await owner.post(f"{AGENT}/tools/remember", json=body)).status_code == 200
    return owner


async def put(client: httpx.AsyncClient, path: str, content: str) -> None:
    answer = await client.put(f"{AGENT}/files/{path}", json={"content": content})
    assert answer.status_code == 200, answer.text


async def search(client: httpx.AsyncClient, query: str, **more: Any) -> dict[str, Any]:
    body = {"arguments": {"query": query, **more}}
    reply = (await client.post(f"{AGENT}/tools/memory_search", json=body)).json()
    assert not reply["isError"], reply
    result: dict[str, Any] = reply["structured"]
    return result


async def test_memories_and_passages_of_files_are_ranked_together(ada: httpx.AsyncClient) -> None:
    result = await search(ada, "Where did Luis see the zeppelin?")
    places = [(hit["source"], hit.get("path"), hit.get("line")) for hit in result["results"]]
    assert places[0] == ("memory", None, None)
    assert set(places[1:]) == {
        ("file", "/memories/notes/2026-01-02.md", 1),
        ("file", "/memories/notes/2026-01-02.md", 3),
        ("file", "/memories/MEMORY.md", 4),
    }
    scores = [hit["score"] for hit in result["results"]]
    assert scores == sorted(scores, reverse=True)
    assert (result["count"], result["complete"]) == (4, True)


async def test_a_passage_has_its_heading_and_can_be_viewed(ada: httpx.AsyncClient) -> None:
    [hit] = (await search(ada, "ferry"))["results"]
    assert (hit["heading"], hit["line"]) == ("Harbour", 4)
    assert hit["text"].startswith("The ferry leaves")
    view = {"command": "view", "path": hit["path"], "view_range": [4, 4]}
    reply = (await ada.post(f"{AGENT}/tools/memory", json={"arguments": view})).json()
    assert reply["content"].endswith("     4\tThe ferry leaves at nine.")


async def test_the_number_of_results_is_limited(ada: httpx.AsyncClient) -> None:
    assert (await search(ada, "Luis", limit=2))["count"] == 2
    assert (await search(ada, "unknown-word"))["results"] == []
    assert (await search(ada, "?!"))["results"] == []


async def test_found_memories_count_as_recalled(ada: httpx.AsyncClient) -> None:
    await search(ada, "zeppelin")
    stats = (await ada.post(f"{AGENT}/tools/my_stats", json={})).json()["structured"]
    assert stats["recall_events_7d"] == 1


async def test_a_shared_session_finds_nothing(ada: httpx.AsyncClient) -> None:
    body = {"arguments": {"query": "Luis"}, "scope": "shared"}
    reply = (await ada.post(f"{AGENT}/tools/memory_search", json=body)).json()
    assert reply["isError"] and "not available in a shared session" in reply["content"]


async def test_a_secret_that_became_known_later_is_not_shown(ada: httpx.AsyncClient) -> None:
    await put(ada, "notes/a.md", "The harbourmaster says open-sesame-42.\n")
    secret = await ada.put("/v1/secrets/phrase", json={"value": "open-sesame-42"})
    assert secret.status_code in {200, 201}
    [hit] = (await search(ada, "harbourmaster"))["results"]
    assert "open-sesame-42" not in hit["text"]
