"""The five tools of shared items, through the wire, by the keys of agents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.server.rest.agents.test_items import bound
from tests.support.full_app import FullApp, open_full_app

from carrel.tools import ALL

pytestmark = pytest.mark.anyio
MINE = [tool for tool in ALL if tool.name.startswith("workspace_")]


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
    me = (await owner.get("/v1/people")).json()["items"][0]["id"]
    for slug, shared in (("cook", False), ("main", False), ("desk", True)):
        new = {"slug": slug, "name": slug, "isShared": shared, "ownerId": me}
        assert (await owner.post("/v1/agents", json=new)).status_code == 201
    return owner


class Agent:
    """One that calls its tools with its own key."""

    def __init__(self, client: httpx.AsyncClient, slug: str, id: str) -> None:
        self.client, self.slug, self.id = client, slug, id

    async def asks(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        body = {"arguments": arguments}
        answer = await self.client.post(f"/v1/agents/{self.slug}/tools/{tool}", json=body)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    async def does(self, tool: str, /, **arguments: Any) -> Any:
        told = await self.asks(tool, **arguments)
        assert not told["isError"], told
        return told["structured"]

    async def cannot(self, tool: str, /, **arguments: Any) -> str:
        told = await self.asks(tool, **arguments)
        assert told["isError"], told
        return str(told["content"])


async def agent(desk: FullApp, ada: httpx.AsyncClient, slug: str) -> Agent:
    id = (await ada.get(f"/v1/agents/{slug}")).json()["id"]
    return Agent(await bound(desk, ada, slug), slug, id)


async def test_agents_of_one_person_share_what_one_writes(
    desk: FullApp, ada: httpx.AsyncClient
) -> None:
    cook, main = await agent(desk, ada, "cook"), await agent(desk, ada, "main")
    written = await cook.does("workspace_write", key="shopping/list", value="x" * 101)
    assert written == {"status": "written", "key": "shopping/list", "version": 1}
    await main.does("workspace_write", key="later", value="{}")
    listed = await main.does("workspace_list")
    assert [sorted(row) for row in listed] == [
        ["created_by", "key", "preview", "updated_at", "version"]
    ] * 2
    assert [(row["key"], row["preview"], row["created_by"]) for row in listed] == [
        ("later", "{}", main.id),
        ("shopping/list", "x" * 100 + "...", cook.id),
    ]
    read = await main.does("workspace_read", key="shopping/list")
    assert (read["value"], read["created_by"], read["version"]) == ("x" * 101, cook.id, 1)
    assert read["created_at"] == read["updated_at"]
    again = await main.does("workspace_write", key="shopping/list", value="eggs", version=1)
    assert again["version"] == 2
    read = await cook.does("workspace_read", key="shopping/list")
    assert (read["value"], read["created_by"]) == ("eggs", cook.id)
    assert [row["key"] for row in await cook.does("workspace_list", prefix="l")] == ["later"]
    assert [row["key"] for row in await cook.does("workspace_list", limit=1)] == ["shopping/list"]


async def test_what_was_read_may_have_changed_and_the_current_version_is_named(
    desk: FullApp, ada: httpx.AsyncClient
) -> None:
    cook = await agent(desk, ada, "cook")
    await cook.does("workspace_write", key="k", value="1", version=0)
    for version in (0, 2):
        told = await cook.cannot("workspace_write", key="k", value="2", version=version)
        assert told == "item 'k' changed since it was read: it is now at version 1"
    told = await cook.cannot("workspace_delete", key="k", version=3)
    assert "it is now at version 1" in told
    assert "it does not exist" in await cook.cannot("workspace_write", key="n", value="", version=1)
    done = await cook.does("workspace_delete", key="k", version=1)
    assert done == {"status": "deleted", "key": "k"}
    assert await cook.cannot("workspace_read", key="k") == "no such item: 'k'"
    assert await cook.cannot("workspace_delete", key="k") == "no such item: 'k'"
    assert "control" in await cook.cannot("workspace_write", key="\x07", value="x")
    assert "are invalid" in await cook.cannot("workspace_read", key="")


async def test_what_is_published_is_a_copy_with_a_shared_agent(
    desk: FullApp, ada: httpx.AsyncClient
) -> None:
    cook, shared = await agent(desk, ada, "cook"), await agent(desk, ada, "desk")
    await cook.does("workspace_write", key="menu", value="soup")
    told = await cook.does("workspace_publish", key="menu", target_agent_id="desk")
    assert told == {
        **{"status": "published", "from_key": "menu", "to_agent": shared.id},
        **{"to_key": "menu", "version": 1},
    }
    renamed = {"key": "menu", "target_agent_id": shared.id, "target_key": "today"}
    assert (await cook.does("workspace_publish", **renamed))["to_key"] == "today"
    await cook.does("workspace_write", key="menu", value="fish")
    for key in ("menu", "today"):
        read = await shared.does("workspace_read", key=key)
        assert (read["value"], read["created_by"]) == ("soup", cook.id)
    back = await shared.cannot("workspace_publish", key="menu", target_agent_id="cook")
    assert "cannot publish" in back
    private = await cook.cannot("workspace_publish", key="menu", target_agent_id="main")
    assert "private" in private


async def test_a_run_that_writes_tells_of_it_in_its_log(ada: httpx.AsyncClient) -> None:
    run = (await ada.post("/v1/runs", json={"agentId": "cook"})).json()["runId"]
    body = {"arguments": {"key": "k", "value": "v"}, "runId": run}
    told = (await ada.post("/v1/agents/cook/tools/workspace_write", json=body)).json()
    assert not told["isError"], told
    await ada.patch(f"/v1/runs/{run}", json={"status": "completed"})
    events = (await ada.get(f"/v1/runs/{run}/events")).text
    assert '"path":"k"' in events


async def test_nothing_tells_where_items_are_kept(desk: FullApp, ada: httpx.AsyncClient) -> None:
    assert [tool.name for tool in MINE] == [
        *("workspace_delete", "workspace_list", "workspace_publish"),
        *("workspace_read", "workspace_write"),
    ]
    for tool in MINE:
        assert not {"workspace", "workspace_id", "user_id"} & set(tool.schema["properties"])
    cook, shared = await agent(desk, ada, "cook"), await agent(desk, ada, "desk")
    said = [
        await cook.asks("workspace_write", key="k", value="v"),
        await cook.asks("workspace_read", key="k"),
        await cook.asks("workspace_list"),
        await cook.asks("workspace_publish", key="k", target_agent_id="desk"),
        await shared.asks("workspace_read", key="k"),
        await cook.asks("workspace_delete", key="k"),
        await cook.asks("workspace_delete", key="k"),
    ]
    assert not any("user-" in str(one) or "agent-" in str(one) for one in said)


async def test_item_tools_are_there_in_a_shared_session_and_filtered_as_all_are(
    ada: httpx.AsyncClient,
) -> None:
    body = {"arguments": {}, "scope": "shared"}
    told = (await ada.post("/v1/agents/cook/tools/workspace_list", json=body)).json()
    assert told == {"content": "[]", "isError": False, "structured": []}
    config = {"config": {"allowedTools": ["workspace_r*"]}}
    assert (await ada.patch("/v1/agents/cook", json=config)).status_code == 200
    tools = (await ada.get("/v1/agents/cook/tools")).json()["items"]
    assert [tool["name"] for tool in tools] == ["workspace_read"]
    assert (await ada.post("/v1/agents/cook/tools/workspace_list", json={})).status_code == 404
