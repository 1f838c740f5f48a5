"""What tests of the overlay endpoint ask, and the agent they ask about."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx

URL = "/api/workspaces/files"
SOUL = "{{AGENT_NAME}} is brisk"
IDENTITY = "# Me\n\n- **Name:** {{AGENT_NAME}}\n- **Vibe:** calm\n- **Emoji:** x\n"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def ask(who: httpx.AsyncClient, action: str, **body: Any) -> httpx.Response:
    return await who.post(URL, json={"action": action, **body})


async def done(who: httpx.AsyncClient, action: str, **body: Any) -> dict[str, Any]:
    """What is told where nothing is refused."""
    answer = await ask(who, action, **body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    assert told["ok"] is True
    return told


async def no(who: httpx.AsyncClient, action: str, **body: Any) -> tuple[int, str]:
    """The status and the words of a refusal, which has nothing else."""
    answer = await ask(who, action, **body)
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert told == {"ok": False, "error": told["error"]}, told
    assert told["error"]
    return answer.status_code, told["error"]


async def rows(who: httpx.AsyncClient, **body: Any) -> dict[str, dict[str, Any]]:
    """A list by path."""
    return {row["path"]: row for row in (await done(who, "list", **body))["files"]}


async def stage(owner: httpx.AsyncClient) -> str:
    """The id of an agent whose template has a guardrail and a voice, over a default of its own."""
    await owner.put("/v1/defaults/files/ROUTER.md", json={"content": "route {{HUMAN_NAME}}"})
    await owner.put("/v1/defaults/files/USER.md", json={"content": "for {{HUMAN_NAME}}"})
    await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    for path, text in (("GUARDRAILS.md", "be good"), ("SOUL.md", SOUL), ("IDENTITY.md", IDENTITY)):
        put = await owner.put(f"/v1/templates/sales/files/{path}", json={"content": text})
        assert put.status_code == 200, put.text
    new = {"slug": "marco", "name": "Marco", "templateId": "sales"}
    made = await owner.post("/v1/agents", json=new)
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


async def member(owner: httpx.AsyncClient, **facts: Any) -> dict[str, Any]:
    bob = {"name": "Bob", "email": "bob@example.org", "role": "member", **facts}
    made = await owner.post("/v1/people", json=bob)
    assert made.status_code == 201, made.text
    told: dict[str, Any] = made.json()
    return told
