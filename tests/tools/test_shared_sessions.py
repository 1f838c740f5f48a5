"""A shared session reveals nothing private through any tool or endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.full_app import FullApp, create_tool_config, open_full_app

from carrel.tools.registry import ALL_TOOLS

pytestmark = pytest.mark.anyio
AGENT = "/v1/agents/kate"
CANARY = "zanzibar"
PRIVATE = ("USER.md", "MEMORY.md", "DREAMS.md", "notes")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class PrivateAgent:
    """An agent whose private files contain the canary, and a shared session."""

    def __init__(self, server: FullApp, owner: httpx.AsyncClient) -> None:
        self.server, self.owner = server, owner

    async def populate(self) -> PrivateAgent:
        owner = self.owner
        human = {"name": f"Ada {CANARY}", "email": f"{CANARY}@acme.example", "role": "member"}
        person = (await owner.post("/v1/people", json=human)).json()["id"]
        config: dict[str, Any] = {
            "workspaceGit": {"enabled": True},
            "extraDocs": ["MEMORY.md", "USER.md"],
        }
        config |= await create_tool_config(owner)
        new = {"slug": "kate", "name": "Kate", "humanPairId": person, "config": config}
        assert (await owner.post("/v1/agents", json=new)).status_code == 201
        today = datetime.now(UTC).date().isoformat()
        for path in ("MEMORY.md", "DREAMS.md", f"notes/{today}.md", "memory/lessons.md"):
            body = {"content": f"## {CANARY}\n- {CANARY}\n"}
            put = await owner.put(f"{AGENT}/files/{path}", json=body)
            assert put.status_code == 200, put.text
        for path in ("plans/acquisition.md", "SECRETS.md"):
            body = {"content": f"We buy {CANARY} in Q4. More.\n"}
            assert (await owner.put(f"{AGENT}/files/{path}", json=body)).status_code == 200
        workspace = config["workspaces"][0]["workspaceId"]
        for path in ("MEMORY.md", "notes/today.md"):
            url = f"/v1/workspaces/{workspace}/files/{path}"
            assert (await owner.put(url, json={"content": CANARY})).status_code == 200
        self.memory = await self.call_tool("remember", {"content": f"{CANARY} is a secret place"})
        await self.call_tool("recall", {"query": CANARY})
        private = (await owner.post(f"{AGENT}/sessions", json={})).json()["id"]
        entry = {"role": "user", "content": f"{CANARY}!", "senderId": CANARY}
        await owner.post(f"{AGENT}/sessions/{private}/entries", json=entry)
        shared = await owner.post(f"{AGENT}/sessions", json={"scope": "group"})
        self.private, self.shared = private, shared.json()["id"]
        started = await owner.post("/v1/runs", json={"agentId": "kate", "scope": "shared"})
        self.run = started.json()["runId"]
        return self

    async def call_tool(self, tool: str, arguments: dict[str, Any]) -> Any:
        answer = await self.owner.post(f"{AGENT}/tools/{tool}", json={"arguments": arguments})
        assert CANARY in answer.text
        return answer.json()["structured"]


@pytest.fixture
async def agent(tmp_path: File) -> AsyncIterator[PrivateAgent]:
    async with open_full_app(tmp_path) as server:
        yield await PrivateAgent(server, await server.owner()).populate()


def shared_contexts(agent: PrivateAgent) -> list[dict[str, Any]]:
    return [
        {"scope": "shared"},
        {"scope": "channel"},
        {"sessionId": agent.shared},
        {"sessionId": agent.shared, "scope": "main"},
        {"runId": agent.run},
        {"runId": agent.run, "scope": "main"},
    ]


async def test_no_tool_reveals_private_content(agent: PrivateAgent) -> None:
    guesses: list[dict[str, Any]] = [
        {},
        {"section": ""},
        {"query": "z", "limit": 50},
        {"id": agent.memory["id"]},
        {"action": "list_sessions"},
        {"action": "read_session", "session_id": agent.private},
        {"action": "search", "query": "z"},
        {"action": "recent", "session_id": agent.private},
        {"limit": 100, "include_diff": True},
        {"content": "zanzibar is a secret place".replace("zanzibar", "elsewhere")},
        {"note": "x"},
        {"file_path": "MEMORY.md"},
        {"pattern": "**"},
        {"pattern": "z", "output_mode": "content"},
        {"command": "cat MEMORY.md"},
    ]
    for tool in ALL_TOOLS:
        for context in shared_contexts(agent):
            for arguments in guesses:
                body = {"arguments": arguments, **context}
                answer = await agent.owner.post(f"{AGENT}/tools/{tool.name}", json=body)
                assert answer.status_code == 200, answer.text
                assert CANARY not in answer.text, (tool.name, body)
    assert CANARY in (await agent.owner.get(f"{AGENT}/memories")).text, "no memory was deleted"


async def test_remember_in_a_shared_session_never_returns_a_private_memory(
    agent: PrivateAgent,
) -> None:
    body = {"arguments": {"content": f"{CANARY} is a secret place"}, "scope": "shared"}
    result = (await agent.owner.post(f"{AGENT}/tools/remember", json=body)).json()["structured"]
    assert result["created"]
    assert result["id"] != agent.memory["id"]


async def test_a_shared_prompt_and_a_shared_run_show_nothing_private(agent: PrivateAgent) -> None:
    urls = [f"{AGENT}/prompt?scope=shared", f"{AGENT}/prompt?scope=lobby"]
    run = f"/v1/runs/{agent.run}"
    urls += [run, f"{run}/files", f"{run}/files?content=true", f"{run}/prompt", f"{run}/diff"]
    urls += [f"{run}/prompt?scope=main"]
    names = ("USER.md", "MEMORY.md", "DREAMS.md", "memory/lessons.md")
    urls += [f"{run}/files/{name}" for name in names]
    urls += [f"{run}/diff?path={name}" for name in names]
    for url in urls:
        answer = await agent.owner.get(url)
        assert CANARY not in answer.text, url
    replayed = await agent.owner.post("/v1/runs", json={"replayOf": agent.run})
    child = await agent.owner.post(
        "/v1/runs", json={"parentRunId": agent.run, "scope": "main", "shareSnapshot": True}
    )
    for answer in (replayed, child):
        run = f"/v1/runs/{answer.json()['runId']}"
        for part in ("/files", "/prompt", "/files/MEMORY.md"):
            assert CANARY not in (await agent.owner.get(run + part)).text


async def test_the_shared_file_map_reveals_no_private_content(agent: PrivateAgent) -> None:
    body = {"action": "regenerate-map", "agentId": "kate"}
    assert (await agent.owner.post("/api/workspaces/files", json=body)).status_code == 200
    run = await agent.owner.post("/v1/runs", json={"agentId": "kate", "scope": "shared"})
    urls = [f"{AGENT}/prompt?scope=shared"]
    urls += [f"/v1/runs/{run.json()['runId']}/{part}" for part in ("prompt", "files/AGENTS.md")]
    for url in urls:
        answer = await agent.owner.get(url)
        assert "- memory/" in answer.text.replace("\\n", "\n").splitlines()
        assert "lessons.md" not in answer.text
        assert "acquisition.md" in answer.text
        assert CANARY not in answer.text, url


words = st.text(st.sampled_from("azniber *%_'\"\\"), max_size=8)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tool=st.sampled_from(ALL_TOOLS),
    context_index=st.integers(0, 5),
    text=words,
    number=st.integers(-1, 600),
    action=st.sampled_from(["list_sessions", "read_session", "search", "recent", "x"]),
    names=st.sets(
        st.sampled_from(["section", "query", "id", "session_id", "note", "limit", "action"])
    ),
)
async def test_no_arguments_reveal_private_content(  # noqa: PLR0913, PLR0917 - drawn by hypothesis
    agent: PrivateAgent,
    tool: Any,
    context_index: int,
    text: str,
    number: int,
    action: str,
    names: set[str],
) -> None:
    candidates: dict[str, Any] = {"action": action, "limit": number, "id": agent.memory["id"]}
    candidates |= {"session_id": agent.private, "query": text, "section": text, "note": text or "x"}
    body = {
        "arguments": {name: candidates[name] for name in names},
        **shared_contexts(agent)[context_index],
    }
    answer = await agent.owner.post(f"{AGENT}/tools/{tool.name}", json=body)
    assert answer.status_code == 200, answer.text
    assert CANARY not in answer.text
