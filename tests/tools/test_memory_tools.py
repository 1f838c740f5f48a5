"""What an agent can tell of itself, through the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app

pytestmark = pytest.mark.anyio
AGENT = "/v1/agents/kate"
IDENTITY = "- **Name:** Kate\n- **Creature:** _(AI? robot?)_\n- **Emoji:** 🐙\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def desk(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as found:
        yield found


@pytest.fixture
async def ada(desk: FullApp) -> httpx.AsyncClient:
    owner = await desk.owner()
    config = {"model": "large", "workspaceGit": {"enabled": True}}
    new = {"slug": "kate", "name": "Kate", "config": config}
    assert (await owner.post("/v1/agents", json=new)).status_code == 201
    return owner


async def called(who: httpx.AsyncClient, tool: str, /, **arguments: Any) -> Any:
    answer = await who.post(f"{AGENT}/tools/{tool}", json={"arguments": arguments})
    assert answer.status_code == 200, answer.text
    assert not answer.json()["isError"], answer.text
    return answer.json()["structured"]


async def refused(who: httpx.AsyncClient, tool: str, /, **body: Any) -> str:
    answer = await who.post(f"{AGENT}/tools/{tool}", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["isError"], answer.text
    return str(answer.json()["content"])


async def put(who: httpx.AsyncClient, path: str, content: str) -> None:
    answer = await who.put(f"{AGENT}/files/{path}", json={"content": content})
    assert answer.status_code == 200, answer.text


async def talk(who: httpx.AsyncClient, *said: str, **more: Any) -> str:
    made = await who.post(f"{AGENT}/sessions", json={"sourcePlugin": "telegram", **more})
    assert made.status_code in {200, 201}, made.text
    for n, content in enumerate(said):
        role = ("user", "assistant")[n % 2]
        entry = {"role": role, "content": content, "sourcePlugin": "telegram"}
        kept = await who.post(f"{AGENT}/sessions/{made.json()['id']}/entries", json=entry)
        assert kept.status_code in {200, 201}, kept.text
    return str(made.json()["id"])


async def test_an_agent_knows_who_it_is(ada: httpx.AsyncClient) -> None:
    await put(ada, "IDENTITY.md", IDENTITY)
    await put(ada, "SOUL.md", "s" * 3000)
    told = await called(ada, "who_am_i")
    assert told == {
        "agent_id": "kate",
        "model": "large",
        "workspace_dir": "carrel://agents/kate",
        "identity": {
            "name": "Kate",
            "creature": None,
            "vibe": None,
            "emoji": "🐙",
            "avatar": None,
        },
        "soul_excerpt": "s" * 2048 + "…",
    }


@pytest.mark.parametrize("last", [560, 570, 580, 590])
async def test_all_that_is_known_is_told_in_6144_bytes_whoever_knows_it(
    ada: httpx.AsyncClient, last: int
) -> None:
    slug = "k" * 63
    assert (await ada.patch(AGENT, json={"slug": slug})).status_code == 200
    bullets = "".join(f"- {'y' * 600}\n" for _ in range(9))
    where = f"/v1/agents/{slug}"
    memory = {"content": f"## All\n{bullets}- {'z' * last}\n"}
    assert (await ada.put(f"{where}/files/MEMORY.md", json=memory)).status_code == 200
    told = (await ada.post(f"{where}/tools/what_do_i_know", json={})).json()
    assert len(told["content"].encode()) <= 6144


async def test_a_mark_of_byte_order_is_no_part_of_a_soul(ada: httpx.AsyncClient) -> None:
    await ada.put(f"{AGENT}/files/SOUL.md", json={"content": "\ufeffWarm."})
    assert (await called(ada, "who_am_i"))["soul_excerpt"] == "Warm."


async def test_what_is_remembered_is_recalled_and_forgotten(ada: httpx.AsyncClient) -> None:
    kept = await called(ada, "remember", content="Luis prefers café au lait", tags=["Drinks"])
    again = await called(ada, "remember", content="Luis prefers café au lait")
    assert (kept["created"], again["created"], again["id"]) == (True, False, kept["id"])
    found = await called(ada, "recall", query="cafe lai")
    assert [one["id"] for one in found["memories"]] == [kept["id"]]
    assert found["memories"][0]["score"] == 1.0
    assert await called(ada, "forget", id=kept["id"]) == {"ok": True, "id": kept["id"]}
    assert (await called(ada, "recall", query="cafe"))["count"] == 0
    assert "no such memory" in await refused(ada, "forget", arguments={"id": kept["id"]})


async def test_numbers_are_those_of_the_agent_alone(ada: httpx.AsyncClient) -> None:
    await ada.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
    other = {"arguments": {"content": "router maintenance on Friday"}}
    await ada.post("/v1/agents/marco/tools/remember", json=other)
    await called(ada, "remember", content="Deploys the router config on Fridays")
    await called(ada, "recall", query="router")
    await called(ada, "recall", query="nothing")
    await talk(ada, "hello")
    told = await called(ada, "my_stats")
    tags = told.pop("top_concept_tags_7d")
    assert ["router", 1] in tags
    assert told == {
        "agent_id": "kate",
        "sessions_total": 1,
        "memories_stored": 1,
        "memories_promoted": 0,
        "last_dream_ts": None,
        "recall_events_7d": 1,
        "workspace_files_present": ["IDENTITY.md", "SOUL.md", "USER.md"],
    }


async def test_conversations_are_listed_read_searched_and_remembered(
    ada: httpx.AsyncClient,
) -> None:
    first = await talk(ada, "where is the código?", "in the shed " + "x" * 300)
    second = await talk(ada, "good morning")
    listed = await called(ada, "session_logs", action="list_sessions")
    assert {one["session_id"]: one["entry_count"] for one in listed["sessions"]} == {
        first: 2,
        second: 1,
    }
    read = await called(ada, "session_logs", action="read_session", session_id=first, limit=1)
    assert (read["total_entries"], read["returned"], read["truncated"]) == (2, 1, True)
    on = await called(ada, "session_logs", action="read_session", session_id=first, after=1)
    assert on["entries"][0]["content"] == "in the shed " + "x" * 188 + "…"
    assert on["entries"][0]["truncated"]
    found = await called(ada, "session_logs", action="search", query="codigo")
    assert [hit["session_id"] for hit in found["hits"]] == [first]
    recent = {"arguments": {"action": "recent"}, "sessionId": second}
    answer = (await ada.post(f"{AGENT}/tools/session_logs", json=recent)).json()
    assert [one["content"] for one in answer["structured"]["entries"]] == ["good morning"]


async def test_what_makes_no_sense_is_told_to_the_model(ada: httpx.AsyncClient) -> None:
    assert "session_id" in await refused(ada, "session_logs", arguments={"action": "read_session"})
    assert "query" in await refused(ada, "session_logs", arguments={"action": "search"})
    assert "session_id" in await refused(ada, "session_logs", arguments={"action": "recent"})
    assert "Invalid enum" in await refused(ada, "session_logs", arguments={"action": "burn"})
    gone = await called(ada, "session_logs", action="read_session", session_id="../x")
    assert (gone["ok"], gone["error"]) == (False, "session_not_found")


async def test_a_session_that_is_not_there_is_404(ada: httpx.AsyncClient) -> None:
    body = {"sessionId": "7d1bd1a8-9c2f-4d3c-9a52-0f8a9d6f6a10"}
    assert (await ada.post(f"{AGENT}/tools/who_am_i", json=body)).status_code == 404


async def test_history_is_told_and_marked(desk: FullApp, ada: httpx.AsyncClient) -> None:
    if desk.ports.repositories is None:
        assert "no git" in await refused(ada, "memory_history")
        return
    await put(ada, "MEMORY.md", "## People\n- Luis\n")
    marked = await called(ada, "memory_checkpoint", note="before the move")
    assert (marked["skipped"], len(marked["oid"])) == (False, 7)
    assert (await called(ada, "memory_checkpoint"))["skipped"]
    await put(ada, "MEMORY.md", "## People\n- Ana\n")
    told = await called(ada, "memory_history", include_diff=True)
    assert [one["short_oid"] == marked["oid"] for one in told["commits"]][:2] == [False, True]
    assert "before the move" in told["commits"][1]["checkpoint"]
    assert "+- Ana" in told["diff"]
