"""In a shared session nothing private is told: not a byte, by no tool and through no endpoint."""

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

from carrel.tools import ALL

pytestmark = pytest.mark.anyio
AGENT = "/v1/agents/kate"
CANARY = "zanzibar"
PRIVATE = ("USER.md", "MEMORY.md", "DREAMS.md", "notes")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Scene:
    """An agent whose every private thing has the canary in it, and a session with listeners."""

    def __init__(self, desk: FullApp, owner: httpx.AsyncClient) -> None:
        self.desk, self.owner = desk, owner

    async def set(self) -> Scene:
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
        self.memory = await self.told("remember", {"content": f"{CANARY} is a secret place"})
        await self.told("recall", {"query": CANARY})
        private = (await owner.post(f"{AGENT}/sessions", json={})).json()["id"]
        said = {"role": "user", "content": f"{CANARY}!", "senderId": CANARY}
        await owner.post(f"{AGENT}/sessions/{private}/entries", json=said)
        shared = await owner.post(f"{AGENT}/sessions", json={"scope": "group"})
        self.private, self.shared = private, shared.json()["id"]
        started = await owner.post("/v1/runs", json={"agentId": "kate", "scope": "shared"})
        self.run = started.json()["runId"]
        return self

    async def told(self, tool: str, arguments: dict[str, Any]) -> Any:
        answer = await self.owner.post(f"{AGENT}/tools/{tool}", json={"arguments": arguments})
        assert CANARY in answer.text
        return answer.json()["structured"]


@pytest.fixture
async def scene(tmp_path: File) -> AsyncIterator[Scene]:
    async with open_full_app(tmp_path) as desk:
        yield await Scene(desk, await desk.owner()).set()


def circumstances(scene: Scene) -> list[dict[str, Any]]:
    return [
        {"scope": "shared"},
        {"scope": "channel"},
        {"sessionId": scene.shared},
        {"sessionId": scene.shared, "scope": "main"},
        {"runId": scene.run},
        {"runId": scene.run, "scope": "main"},
    ]


async def test_every_tool_tells_nothing_private(scene: Scene) -> None:
    guesses: list[dict[str, Any]] = [
        {},
        {"section": ""},
        {"query": "z", "limit": 50},
        {"id": scene.memory["id"]},
        {"action": "list_sessions"},
        {"action": "read_session", "session_id": scene.private},
        {"action": "search", "query": "z"},
        {"action": "recent", "session_id": scene.private},
        {"limit": 100, "include_diff": True},
        {"content": "zanzibar is a secret place".replace("zanzibar", "elsewhere")},
        {"note": "x"},
        {"file_path": "MEMORY.md"},
        {"pattern": "**"},
        {"pattern": "z", "output_mode": "content"},
        {"command": "cat MEMORY.md"},
    ]
    for tool in ALL:
        for where in circumstances(scene):
            for arguments in guesses:
                body = {"arguments": arguments, **where}
                answer = await scene.owner.post(f"{AGENT}/tools/{tool.name}", json=body)
                assert answer.status_code == 200, answer.text
                assert CANARY not in answer.text, (tool.name, body)
    assert CANARY in (await scene.owner.get(f"{AGENT}/memories")).text, "nothing was forgotten"


async def test_whatever_is_remembered_in_a_shared_session_tells_nothing_of_what_was(
    scene: Scene,
) -> None:
    body = {"arguments": {"content": f"{CANARY} is a secret place"}, "scope": "shared"}
    told = (await scene.owner.post(f"{AGENT}/tools/remember", json=body)).json()["structured"]
    assert told["created"]
    assert told["id"] != scene.memory["id"]


async def test_a_shared_prompt_and_a_shared_run_show_nothing_private(scene: Scene) -> None:
    urls = [f"{AGENT}/prompt?scope=shared", f"{AGENT}/prompt?scope=lobby"]
    run = f"/v1/runs/{scene.run}"
    urls += [run, f"{run}/files", f"{run}/files?content=true", f"{run}/prompt", f"{run}/diff"]
    urls += [f"{run}/prompt?scope=main"]
    names = ("USER.md", "MEMORY.md", "DREAMS.md", "memory/lessons.md")
    urls += [f"{run}/files/{name}" for name in names]
    urls += [f"{run}/diff?path={name}" for name in names]
    for url in urls:
        answer = await scene.owner.get(url)
        assert CANARY not in answer.text, url
    replayed = await scene.owner.post("/v1/runs", json={"replayOf": scene.run})
    child = await scene.owner.post(
        "/v1/runs", json={"parentRunId": scene.run, "scope": "main", "shareSnapshot": True}
    )
    for answer in (replayed, child):
        run = f"/v1/runs/{answer.json()['runId']}"
        for part in ("/files", "/prompt", "/files/MEMORY.md"):
            assert CANARY not in (await scene.owner.get(run + part)).text


async def test_the_map_in_what_is_shared_tells_nothing_of_what_is_private(scene: Scene) -> None:
    body = {"action": "regenerate-map", "agentId": "kate"}
    assert (await scene.owner.post("/api/workspaces/files", json=body)).status_code == 200
    run = await scene.owner.post("/v1/runs", json={"agentId": "kate", "scope": "shared"})
    urls = [f"{AGENT}/prompt?scope=shared"]
    urls += [f"/v1/runs/{run.json()['runId']}/{part}" for part in ("prompt", "files/AGENTS.md")]
    for url in urls:
        answer = await scene.owner.get(url)
        assert "lessons.md" in answer.text
        assert CANARY not in answer.text, url


words = st.text(st.sampled_from("azniber *%_'\"\\"), max_size=8)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    tool=st.sampled_from(ALL),
    where=st.integers(0, 5),
    text=words,
    number=st.integers(-1, 600),
    action=st.sampled_from(["list_sessions", "read_session", "search", "recent", "x"]),
    names=st.sets(
        st.sampled_from(["section", "query", "id", "session_id", "note", "limit", "action"])
    ),
)
async def test_no_arguments_get_anything_private_told(  # noqa: PLR0913, PLR0917 - what hypothesis draws
    scene: Scene,
    tool: Any,
    where: int,
    text: str,
    number: int,
    action: str,
    names: set[str],
) -> None:
    all: dict[str, Any] = {"action": action, "limit": number, "id": scene.memory["id"]}
    all |= {"session_id": scene.private, "query": text, "section": text, "note": text or "x"}
    body = {
        "arguments": {name: all[name] for name in names},
        **circumstances(scene)[where],
    }
    answer = await scene.owner.post(f"{AGENT}/tools/{tool.name}", json=body)
    assert answer.status_code == 200, answer.text
    assert CANARY not in answer.text
