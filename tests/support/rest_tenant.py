"""Requests to the overlay endpoint, and the agent they are about."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx

URL = "/api/workspaces/files"
SOUL = "{{AGENT_NAME}} is brisk"
IDENTITY = "# Me\n\n- **Name:** {{AGENT_NAME}}\n- **Vibe:** calm\n- **Emoji:** x\n"


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def post_action(client: httpx.AsyncClient, action: str, **body: Any) -> httpx.Response:
    return await client.post(URL, json={"action": action, **body})


async def run_action(client: httpx.AsyncClient, action: str, **body: Any) -> dict[str, Any]:
    """The payload of a successful response."""
    response = await post_action(client, action, **body)
    assert response.status_code == 200, response.text
    payload: dict[str, Any] = response.json()
    assert payload["ok"] is True
    return payload


async def refused_action(client: httpx.AsyncClient, action: str, **body: Any) -> tuple[int, str]:
    """Status and message of a refusal; damage has its code too."""
    response = await post_action(client, action, **body)
    assert response.headers["content-type"] == "application/json"
    payload = response.json()
    expected = {"ok": False, "error": payload["error"]}
    assert payload == expected | ({"code": "corrupt"} if response.status_code == 500 else {}), (
        payload
    )
    assert payload["error"]
    return response.status_code, payload["error"]


async def files_by_path(client: httpx.AsyncClient, **body: Any) -> dict[str, dict[str, Any]]:
    """A listing by path."""
    return {row["path"]: row for row in (await run_action(client, "list", **body))["files"]}


async def create_overlay_agent(owner: httpx.AsyncClient) -> str:
    """Create an agent whose template has guardrails and a soul; return its id."""
    await owner.put("/v1/defaults/files/ROUTER.md", json={"content": "route {{HUMAN_NAME}}"})
    await owner.put("/v1/defaults/files/USER.md", json={"content": "for {{HUMAN_NAME}}"})
    await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    for path, text in (("GUARDRAILS.md", "be good"), ("SOUL.md", SOUL), ("IDENTITY.md", IDENTITY)):
        put = await owner.put(f"/v1/templates/sales/files/{path}", json={"content": text})
        assert put.status_code == 200, put.text
    new = {"slug": "marco", "name": "Marco", "templateId": "sales"}
    response = await owner.post("/v1/agents", json=new)
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


async def create_member(owner: httpx.AsyncClient, **facts: Any) -> dict[str, Any]:
    bob = {"name": "Bob", "email": "bob@example.org", "role": "member", **facts}
    response = await owner.post("/v1/people", json=bob)
    assert response.status_code == 201, response.text
    person: dict[str, Any] = response.json()
    return person
