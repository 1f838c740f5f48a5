"""Nothing of one agent is seen over MCP by those of another tenant or another agent's key."""

from __future__ import annotations

import json
import secrets
from typing import Any

import httpx
import pytest
from tests.server.mcp.test_wire import HEAD, asked, modern
from tests.support.mcp_clients import McpServer

pytestmark = pytest.mark.anyio


async def planted(place: McpServer, canary: str) -> dict[str, str]:
    """An agent of which everything holds the canary, and the ids of it all."""
    slug = await place.agent()
    async with place.as_() as owner:
        at = f"/v1/agents/{slug}"
        for path in ("SOUL.md", "MEMORY.md", f"notes/{canary}.md"):
            await owner.put(f"{at}/files/{path}", json={"content": f"## {canary}\n- {canary}\n"})
        memory = (await owner.post(f"{at}/memories", json={"content": canary})).json()
        await owner.put(f"{at}/items/{canary}", json={"value": canary})
        session = (await owner.post(f"{at}/sessions", json={})).json()["id"]
        entry = {"role": "user", "content": canary}
        await owner.post(f"{at}/sessions/{session}/entries", json=entry)
        run = (await owner.post("/v1/runs", json={"agentId": slug})).json()["runId"]
        id = (await owner.get(at)).json()["id"]
    return {"slug": slug, "id": id, "memory": memory["id"], "session": session, "run": run}


def questions(theirs: dict[str, str], canary: str) -> list[dict[str, Any]]:
    """All that one can ask, about what is another's."""
    found = [asked(each) for each in ("tools/list", "resources/list", "prompts/list")]
    found.append(asked("prompts/get", name="system"))
    for name in (theirs["slug"], theirs["id"]):
        for path in ("SOUL.md", "MEMORY.md", f"notes/{canary}.md"):
            found.append(asked("resources/read", uri=f"carrel://agents/{name}/files/{path}"))
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
    found += [asked("tools/call", name=name, arguments=given) for name, given in calls]
    for said in ({"carrel/run": theirs["run"]}, {"carrel/session": theirs["session"]}):
        found.append(asked("tools/call", name="what_do_i_know", arguments={}, _meta=said))
        found.append(asked("resources/list", _meta=said))
        found.append(asked("prompts/get", name="system", _meta=said))
    return found


def heard(answer: httpx.Response, canary: str, question: Any) -> bool:
    """Whether it tells more than what it was asked with."""
    told = answer.text.replace(json.dumps(question), "")
    for echo in (f"no such item: '{canary}'", f'"query":"{canary}"', f'\\"query\\":\\"{canary}'):
        told = told.replace(echo, "")
    told = told.replace(f"files/notes/{canary}.md", "")
    return canary in told


async def test_canaries_are_not_heard_elsewhere(place: McpServer) -> None:
    canary = "canary" + secrets.token_hex(8)
    theirs = await planted(place, canary)
    mine = await place.agent(isShared=True)
    stranger = await place.stranger()
    async with place.as_(stranger) as wire:
        body = {"slug": "mine", "name": "Mine", "isShared": True}
        assert (await wire.post("/v1/agents", json=body)).status_code == 201
    for token, slug in ((await place.own_key(mine), mine), (stranger, "mine")):
        async with place.as_(token) as wire:
            for question in questions(theirs, canary):
                params = {k: v for k, v in question["params"].items() if k != "_meta"}
                anew, head = modern(question["method"], **params)
                anew["params"]["_meta"] = {
                    **anew["params"]["_meta"],
                    **question["params"].get("_meta", {}),
                }
                for sent, said in ((question, HEAD), (anew, head)):
                    answer = await wire.post(f"/mcp/agents/{slug}", json=sent, headers=said)
                    assert answer.status_code < 500
                    assert not heard(answer, canary, sent), (sent, answer.text)
                    for name in (theirs["slug"], theirs["id"]):
                        there = await wire.post(f"/mcp/agents/{name}", json=sent, headers=said)
                        assert there.status_code == 404
            for name in ("run", "session"):
                url = f"/mcp/agents/{slug}?{name}={theirs[name]}"
                answer = await wire.post(url, json=asked("resources/list"), headers=HEAD)
                assert answer.status_code in {400, 404}


async def test_the_canary_would_be_heard_at_its_own_desk(place: McpServer) -> None:
    canary = "canary" + secrets.token_hex(8)
    theirs = await planted(place, canary)
    async with place.as_() as wire:
        told = [
            await wire.post(f"/mcp/agents/{theirs['slug']}", json=question, headers=HEAD)
            for question in questions(theirs, canary)
        ]
    assert sum(heard(answer, canary, None) for answer in told) >= 12
