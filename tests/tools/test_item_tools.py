"""The five shared-item tools over REST, with agents' own keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.server.rest.agents.test_items import agent_client
from tests.support.full_app import FullApp, open_full_app

from carrel.tools.registry import ALL_TOOLS

pytestmark = pytest.mark.anyio
MINE = [tool for tool in ALL_TOOLS if tool.name.startswith("workspace_")]


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
    me = (await owner.get("/v1/people")).json()["items"][0]["id"]
    for slug, shared in (("cook", False), ("main", False), ("support", True)):
        new = {"slug": slug, "name": slug, "isShared": shared, "ownerId": me}
        assert (await owner.post("/v1/agents", json=new)).status_code == 201
    return owner


class Agent:
    """Client that calls an agent's tools with the agent's own key."""

    def __init__(self, client: httpx.AsyncClient, slug: str, id: str) -> None:
        self.client, self.slug, self.id = client, slug, id

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        body = {"arguments": arguments}
        answer = await self.client.post(f"/v1/agents/{self.slug}/tools/{tool}", json=body)
        assert answer.status_code == 200, answer.text
        reply: dict[str, Any] = answer.json()
        return reply

    async def call_ok(self, tool: str, /, **arguments: Any) -> Any:
        reply = await self.call(tool, **arguments)
        assert not reply["isError"], reply
        return reply["structured"]

    async def call_refused(self, tool: str, /, **arguments: Any) -> str:
        reply = await self.call(tool, **arguments)
        assert reply["isError"], reply
        return str(reply["content"])


async def agent(server: FullApp, ada: httpx.AsyncClient, slug: str) -> Agent:
    id = (await ada.get(f"/v1/agents/{slug}")).json()["id"]
    return Agent(await agent_client(server, ada, slug), slug, id)


async def test_agents_of_one_person_share_items(server: FullApp, ada: httpx.AsyncClient) -> None:
    cook, main = await agent(server, ada, "cook"), await agent(server, ada, "main")
    written = await cook.call_ok("workspace_write", key="shopping/list", value="x" * 101)
    assert written == {"status": "written", "key": "shopping/list", "version": 1}
    await main.call_ok("workspace_write", key="later", value="{}")
    listed = await main.call_ok("workspace_list")
    assert [sorted(row) for row in listed["items"]] == [
        ["created_by", "key", "preview", "updated_at", "version"]
    ] * 2
    assert [(row["key"], row["preview"], row["created_by"]) for row in listed["items"]] == [
        ("later", "{}", main.id),
        ("shopping/list", "x" * 100 + "...", cook.id),
    ]
    read = await main.call_ok("workspace_read", key="shopping/list")
    assert (read["value"], read["created_by"], read["version"]) == ("x" * 101, cook.id, 1)
    assert read["created_at"] == read["updated_at"]
    again = await main.call_ok("workspace_write", key="shopping/list", value="eggs", version=1)
    assert again["version"] == 2
    read = await cook.call_ok("workspace_read", key="shopping/list")
    assert (read["value"], read["created_by"]) == ("eggs", cook.id)
    for query, key in (({"prefix": "l"}, "later"), ({"limit": 1}, "shopping/list")):
        page = await cook.call_ok("workspace_list", **query)
        assert [row["key"] for row in page["items"]] == [key]


async def test_a_stale_version_is_refused_with_the_current_version(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    cook = await agent(server, ada, "cook")
    await cook.call_ok("workspace_write", key="k", value="1", version=0)
    for version in (0, 2):
        refusal = await cook.call_refused("workspace_write", key="k", value="2", version=version)
        assert refusal == "item 'k' changed since it was read: it is now at version 1"
    refusal = await cook.call_refused("workspace_delete", key="k", version=3)
    assert "it is now at version 1" in refusal
    assert "it does not exist" in await cook.call_refused(
        "workspace_write", key="n", value="", version=1
    )
    done = await cook.call_ok("workspace_delete", key="k", version=1)
    assert done == {"status": "deleted", "key": "k"}
    assert await cook.call_refused("workspace_read", key="k") == "no such item: 'k'"
    assert await cook.call_refused("workspace_delete", key="k") == "no such item: 'k'"
    assert "control" in await cook.call_refused("workspace_write", key="\x07", value="x")
    assert "are invalid" in await cook.call_refused("workspace_read", key="")


async def test_publishing_copies_an_item_to_a_shared_agent(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    cook, shared = await agent(server, ada, "cook"), await agent(server, ada, "support")
    await cook.call_ok("workspace_write", key="menu", value="soup")
    published = await cook.call_ok("workspace_publish", key="menu", target_agent_id="support")
    assert published == {
        **{"status": "published", "from_key": "menu", "to_agent": shared.id},
        **{"to_key": "menu", "version": 1},
    }
    renamed = {"key": "menu", "target_agent_id": shared.id, "target_key": "today"}
    assert (await cook.call_ok("workspace_publish", **renamed))["to_key"] == "today"
    await cook.call_ok("workspace_write", key="menu", value="fish")
    for key in ("menu", "today"):
        read = await shared.call_ok("workspace_read", key=key)
        assert (read["value"], read["created_by"]) == ("soup", cook.id)
    back = await shared.call_refused("workspace_publish", key="menu", target_agent_id="cook")
    assert "cannot publish" in back
    private = await cook.call_refused("workspace_publish", key="menu", target_agent_id="main")
    assert "private" in private


async def test_a_write_in_a_run_is_in_the_runs_log(ada: httpx.AsyncClient) -> None:
    run = (await ada.post("/v1/runs", json={"agentId": "cook"})).json()["runId"]
    body = {"arguments": {"key": "k", "value": "v"}, "runId": run}
    reply = (await ada.post("/v1/agents/cook/tools/workspace_write", json=body)).json()
    assert not reply["isError"], reply
    await ada.patch(f"/v1/runs/{run}", json={"status": "completed"})
    events = (await ada.get(f"/v1/runs/{run}/events")).text
    assert '"path":"k"' in events


async def test_tools_do_not_reveal_where_items_are_stored(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    assert [tool.name for tool in MINE] == [
        *("workspace_delete", "workspace_list", "workspace_publish"),
        *("workspace_read", "workspace_write"),
    ]
    for tool in MINE:
        assert not {"workspace", "workspace_id", "user_id"} & set(tool.schema["properties"])
    cook, shared = await agent(server, ada, "cook"), await agent(server, ada, "support")
    replies = [
        await cook.call("workspace_write", key="k", value="v"),
        await cook.call("workspace_read", key="k"),
        await cook.call("workspace_list"),
        await cook.call("workspace_publish", key="k", target_agent_id="support"),
        await shared.call("workspace_read", key="k"),
        await cook.call("workspace_delete", key="k"),
        await cook.call("workspace_delete", key="k"),
    ]
    assert not any("user-" in str(reply) or "agent-" in str(reply) for reply in replies)


async def test_item_tools_work_in_shared_sessions_and_follow_allowed_tools(
    ada: httpx.AsyncClient,
) -> None:
    body = {"arguments": {}, "scope": "shared"}
    reply = (await ada.post("/v1/agents/cook/tools/workspace_list", json=body)).json()
    assert reply == {"content": "[]", "isError": False, "structured": {"items": []}}
    config = {"config": {"allowedTools": ["workspace_r*"]}}
    assert (await ada.patch("/v1/agents/cook", json=config)).status_code == 200
    tools = (await ada.get("/v1/agents/cook/tools")).json()["items"]
    assert [tool["name"] for tool in tools] == ["workspace_read"]
    assert (await ada.post("/v1/agents/cook/tools/workspace_list", json={})).status_code == 404
