"""MCP reveals nothing of an agent to another tenant or another agent's key."""

from __future__ import annotations

import json
import secrets
from typing import Any

import httpx
import pytest
from tests.server.mcp.test_wire import HEAD, modern, rpc_request
from tests.support.mcp_clients import McpServer

pytestmark = pytest.mark.anyio


async def create_canary_agent(server: McpServer, canary: str) -> dict[str, str]:
    """Create an agent whose content is the canary, and return its ids."""
    slug = await server.agent()
    async with server.as_() as owner:
        agent_url = f"/v1/agents/{slug}"
        for path in ("SOUL.md", "MEMORY.md", f"notes/{canary}.md"):
            await owner.put(
                f"{agent_url}/files/{path}", json={"content": f"## {canary}\n- {canary}\n"}
            )
        memory = (await owner.post(f"{agent_url}/memories", json={"content": canary})).json()
        await owner.put(f"{agent_url}/items/{canary}", json={"value": canary})
        session = (await owner.post(f"{agent_url}/sessions", json={})).json()["id"]
        entry = {"role": "user", "content": canary}
        await owner.post(f"{agent_url}/sessions/{session}/entries", json=entry)
        run = (await owner.post("/v1/runs", json={"agentId": slug})).json()["runId"]
        id = (await owner.get(agent_url)).json()["id"]
    return {"slug": slug, "id": id, "memory": memory["id"], "session": session, "run": run}


def build_requests(theirs: dict[str, str], canary: str) -> list[dict[str, Any]]:
    """Every request about another agent's content."""
    requests = [rpc_request(method) for method in ("tools/list", "resources/list", "prompts/list")]
    requests.append(rpc_request("prompts/get", name="system"))
    for name in (theirs["slug"], theirs["id"]):
        for path in ("SOUL.md", "MEMORY.md", f"notes/{canary}.md"):
            requests.append(
                rpc_request("resources/read", uri=f"carrel://agents/{name}/files/{path}")
            )
    calls = [
        ("workspace_list", {}),
        ("workspace_read", {"key": canary}),
        ("workspace_publish", {"key": canary, "target_agent_id": theirs["slug"]}),
        ("recall", {"query": canary}),
        ("forget", {"id": theirs["memory"]}),
        ("what_do_i_know", {}),
        ("who_am_i", {}),
        ("session_logs", {"action": "search", "query": canary}),
        ("session_logs", {"action": "read_session", "session_id": theirs["session"]}),
        ("session_logs", {"action": "list_sessions"}),
    ]
    requests += [
        rpc_request("tools/call", name=name, arguments=arguments) for name, arguments in calls
    ]
    for meta in ({"carrel/run": theirs["run"]}, {"carrel/session": theirs["session"]}):
        requests.append(rpc_request("tools/call", name="what_do_i_know", arguments={}, _meta=meta))
        requests.append(rpc_request("resources/list", _meta=meta))
        requests.append(rpc_request("prompts/get", name="system", _meta=meta))
    return requests


def reveals(answer: httpx.Response, canary: str, request: Any) -> bool:
    """Whether a response contains the canary beyond an echo of the request."""
    text = answer.text.replace(json.dumps(request), "")
    for echo in (f"no such item: '{canary}'", f'"query":"{canary}"', f'\\"query\\":\\"{canary}'):
        text = text.replace(echo, "")
    text = text.replace(f"files/notes/{canary}.md", "")
    return canary in text


async def test_canaries_are_not_revealed_to_others(server: McpServer) -> None:
    canary = "canary" + secrets.token_hex(8)
    theirs = await create_canary_agent(server, canary)
    mine = await server.agent(isShared=True)
    other_token = await server.foreign_token()
    async with server.as_(other_token) as wire:
        body = {"slug": "mine", "name": "Mine", "isShared": True}
        assert (await wire.post("/v1/agents", json=body)).status_code == 201
    for token, slug in ((await server.own_key(mine), mine), (other_token, "mine")):
        async with server.as_(token) as wire:
            for request in build_requests(theirs, canary):
                params = {k: v for k, v in request["params"].items() if k != "_meta"}
                modern_request, modern_headers = modern(request["method"], **params)
                modern_request["params"]["_meta"] = {
                    **modern_request["params"]["_meta"],
                    **request["params"].get("_meta", {}),
                }
                for sent, headers in ((request, HEAD), (modern_request, modern_headers)):
                    answer = await wire.post(f"/mcp/agents/{slug}", json=sent, headers=headers)
                    assert answer.status_code < 500
                    assert not reveals(answer, canary, sent), (sent, answer.text)
                    for name in (theirs["slug"], theirs["id"]):
                        there = await wire.post(f"/mcp/agents/{name}", json=sent, headers=headers)
                        assert there.status_code == 404
            for name in ("run", "session"):
                url = f"/mcp/agents/{slug}?{name}={theirs[name]}"
                answer = await wire.post(url, json=rpc_request("resources/list"), headers=HEAD)
                assert answer.status_code in {400, 404}


async def test_the_canary_is_revealed_to_its_own_tenant(server: McpServer) -> None:
    canary = "canary" + secrets.token_hex(8)
    theirs = await create_canary_agent(server, canary)
    async with server.as_() as wire:
        responses = [
            await wire.post(f"/mcp/agents/{theirs['slug']}", json=request, headers=HEAD)
            for request in build_requests(theirs, canary)
        ]
    assert sum(reveals(answer, canary, None) for answer in responses) >= 12
