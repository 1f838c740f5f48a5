"""Memory and self-description tools over REST."""

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
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    config = {"model": "large", "workspaceGit": {"enabled": True}}
    new = {"slug": "kate", "name": "Kate", "config": config}
    assert (await owner.post("/v1/agents", json=new)).status_code == 201
    return owner


async def call_tool(client: httpx.AsyncClient, tool: str, /, **arguments: Any) -> Any:
    answer = await client.post(f"{AGENT}/tools/{tool}", json={"arguments": arguments})
    assert answer.status_code == 200, answer.text
    assert not answer.json()["isError"], answer.text
    return answer.json()["structured"]


async def refusal_of(client: httpx.AsyncClient, tool: str, /, **body: Any) -> str:
    answer = await client.post(f"{AGENT}/tools/{tool}", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["isError"], answer.text
    return str(answer.json()["content"])


async def put(client: httpx.AsyncClient, path: str, content: str) -> None:
    answer = await client.put(f"{AGENT}/files/{path}", json={"content": content})
    assert answer.status_code == 200, answer.text


async def start_session(client: httpx.AsyncClient, *messages: str, **more: Any) -> str:
    session = await client.post(f"{AGENT}/sessions", json={"sourcePlugin": "telegram", **more})
    assert session.status_code in {200, 201}, session.text
    for n, content in enumerate(messages):
        role = ("user", "assistant")[n % 2]
        entry = {"role": role, "content": content, "sourcePlugin": "telegram"}
        appended = await client.post(f"{AGENT}/sessions/{session.json()['id']}/entries", json=entry)
        assert appended.status_code in {200, 201}, appended.text
    return str(session.json()["id"])


async def test_who_am_i_returns_identity_and_soul(ada: httpx.AsyncClient) -> None:
    await put(ada, "IDENTITY.md", IDENTITY)
    await put(ada, "SOUL.md", "s" * 3000)
    result = await call_tool(ada, "who_am_i")
    assert result == {
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
async def test_what_do_i_know_returns_at_most_6144_bytes(ada: httpx.AsyncClient, last: int) -> None:
    slug = "k" * 63
    assert (await ada.patch(AGENT, json={"slug": slug})).status_code == 200
    bullets = "".join(f"- {'y' * 600}\n" for _ in range(9))
    agent_url = f"/v1/agents/{slug}"
    memory = {"content": f"## All\n{bullets}- {'z' * last}\n"}
    assert (await ada.put(f"{agent_url}/files/MEMORY.md", json=memory)).status_code == 200
    reply = (await ada.post(f"{agent_url}/tools/what_do_i_know", json={})).json()
    assert len(reply["content"].encode()) <= 6144


async def test_a_byte_order_mark_is_not_part_of_the_soul(ada: httpx.AsyncClient) -> None:
    await ada.put(f"{AGENT}/files/SOUL.md", json={"content": "\ufeffWarm."})
    assert (await call_tool(ada, "who_am_i"))["soul_excerpt"] == "Warm."


async def test_a_memory_is_remembered_recalled_and_forgotten(ada: httpx.AsyncClient) -> None:
    memory = await call_tool(ada, "remember", content="Luis prefers café au lait", tags=["Drinks"])
    again = await call_tool(ada, "remember", content="Luis prefers café au lait")
    assert (memory["created"], again["created"], again["id"]) == (True, False, memory["id"])
    recalled = await call_tool(ada, "recall", query="cafe lai")
    assert [item["id"] for item in recalled["memories"]] == [memory["id"]]
    assert recalled["memories"][0]["score"] == 1.0
    assert await call_tool(ada, "forget", id=memory["id"]) == {"ok": True, "id": memory["id"]}
    assert (await call_tool(ada, "recall", query="cafe"))["count"] == 0
    assert "no such memory" in await refusal_of(ada, "forget", arguments={"id": memory["id"]})


async def test_my_stats_counts_only_the_agents_own_records(ada: httpx.AsyncClient) -> None:
    await ada.post("/v1/agents", json={"slug": "marco", "name": "Marco"})
    other = {"arguments": {"content": "router maintenance on Friday"}}
    await ada.post("/v1/agents/marco/tools/remember", json=other)
    await call_tool(ada, "remember", content="Deploys the router config on Fridays")
    await call_tool(ada, "recall", query="router")
    await call_tool(ada, "recall", query="nothing")
    await start_session(ada, "hello")
    stats = await call_tool(ada, "my_stats")
    tags = stats.pop("top_concept_tags_7d")
    assert ["router", 1] in tags
    assert stats == {
        "agent_id": "kate",
        "sessions_total": 1,
        "memories_stored": 1,
        "memories_promoted": 0,
        "last_dream_ts": None,
        "recall_events_7d": 1,
        "workspace_files_present": ["IDENTITY.md", "SOUL.md", "USER.md"],
    }


async def test_sessions_are_listed_read_and_searched(
    ada: httpx.AsyncClient,
) -> None:
    first = await start_session(ada, "where is the código?", "in the shed " + "x" * 300)
    second = await start_session(ada, "good morning")
    listed = await call_tool(ada, "session_logs", action="list_sessions")
    assert {row["session_id"]: row["entry_count"] for row in listed["sessions"]} == {
        first: 2,
        second: 1,
    }
    read = await call_tool(ada, "session_logs", action="read_session", session_id=first, limit=1)
    assert (read["total_entries"], read["returned"], read["truncated"]) == (2, 1, True)
    rest = await call_tool(ada, "session_logs", action="read_session", session_id=first, after=1)
    assert rest["entries"][0]["content"] == "in the shed " + "x" * 188 + "…"
    assert rest["entries"][0]["truncated"]
    result = await call_tool(ada, "session_logs", action="search", query="codigo")
    [hit] = result["hits"]
    assert (hit["session_id"], hit["number"], hit["offset"]) == (first, 1, 0)
    recent = {"arguments": {"action": "recent"}, "sessionId": second}
    answer = (await ada.post(f"{AGENT}/tools/session_logs", json=recent)).json()
    assert [row["content"] for row in answer["structured"]["entries"]] == ["good morning"]


async def test_any_part_of_a_long_entry_is_found_and_can_be_read_on(
    ada: httpx.AsyncClient,
) -> None:
    text = "a sea of words. " * 9_000 + "The wren nests in a kettle." + " more words" * 9_000
    session = await start_session(ada, "good morning", text, "good night")

    search = {"action": "search", "query": "where does the wren nest?", "max_chars": 100}
    [hit] = (await call_tool(ada, "session_logs", **search))["hits"]

    assert (hit["session_id"], hit["number"], hit["length"]) == (session, 2, len(text))
    assert "The wren nests" in hit["preview"]
    assert text[hit["offset"] :].startswith(hit["preview"])
    read = {"action": "read_session", "session_id": session, "after": hit["number"] - 1}
    position, parts = hit["offset"], list[str]()
    while position < len(text):
        page = await call_tool(ada, "session_logs", **read, max_chars=4000, offset=position)
        [entry, following] = page["entries"]
        assert (entry["number"], entry["offset"], entry["length"]) == (2, position, len(text))
        assert following["content"] == "good night"
        parts.append(entry["content"].removesuffix("…") if entry["truncated"] else entry["content"])
        position += len(parts[-1])
    assert "".join(parts) == text[hit["offset"] :]
    beyond = await call_tool(ada, "session_logs", **read, offset=len(text) + 9)
    assert (beyond["entries"][0]["content"], beyond["entries"][0]["truncated"]) == ("", False)


async def test_invalid_session_logs_arguments_are_returned_to_the_model(
    ada: httpx.AsyncClient,
) -> None:
    assert "session_id" in await refusal_of(
        ada, "session_logs", arguments={"action": "read_session"}
    )
    assert "query" in await refusal_of(ada, "session_logs", arguments={"action": "search"})
    assert "session_id" in await refusal_of(ada, "session_logs", arguments={"action": "recent"})
    assert "Invalid enum" in await refusal_of(ada, "session_logs", arguments={"action": "burn"})
    gone = await call_tool(ada, "session_logs", action="read_session", session_id="../x")
    assert (gone["ok"], gone["error"]) == (False, "session_not_found")


async def test_an_unknown_session_is_404(ada: httpx.AsyncClient) -> None:
    body = {"sessionId": "7d1bd1a8-9c2f-4d3c-9a52-0f8a9d6f6a10"}
    assert (await ada.post(f"{AGENT}/tools/who_am_i", json=body)).status_code == 404


async def test_memory_history_lists_commits_and_checkpoints(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    assert server.ports.repositories is not None
    await put(ada, "MEMORY.md", "## People\n- Luis\n")
    checkpoint = await call_tool(ada, "memory_checkpoint", note="before the move")
    assert (checkpoint["skipped"], len(checkpoint["oid"])) == (False, 7)
    assert (await call_tool(ada, "memory_checkpoint"))["skipped"]
    await put(ada, "MEMORY.md", "## People\n- Ana\n")
    history = await call_tool(ada, "memory_history", include_diff=True)
    assert [commit["short_oid"] == checkpoint["oid"] for commit in history["commits"]][:2] == [
        False,
        True,
    ]
    assert "before the move" in history["commits"][1]["checkpoint"]
    assert "+- Ana" in history["diff"]


GIT_TOOLS = {"memory_checkpoint", "memory_history"}


@pytest.mark.parametrize("enabled", [True, False])
async def test_the_tools_of_the_git_history_are_offered_only_where_git_is_on(
    ada: httpx.AsyncClient, enabled: bool
) -> None:
    patched = await ada.patch(AGENT, json={"config": {"workspaceGit": {"enabled": enabled}}})
    assert patched.status_code == 200, patched.text
    listed = (await ada.get(f"{AGENT}/tools?dialect=mcp")).json()["items"]
    assert GIT_TOOLS & {tool["name"] for tool in listed} == (GIT_TOOLS if enabled else set())
    called = await ada.post(f"{AGENT}/tools/memory_history", json={"arguments": {}})
    assert called.status_code == (200 if enabled else 404)
