"""A request asks the store for the records revision once."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path as File
from typing import Any, Final

import httpx
import pytest
from tests.support.full_app import Whole, app_of
from tests.support.stores import open_ports

from carrel.core.identifiers import Scope, ScopeKind
from carrel.ports import Ports
from carrel.ports.request_view import MAX_AGE_MS, RequestView
from carrel.server.mcp import http as mcp_http
from carrel.settings import load
from carrel.wiring.server_app import authenticator

pytestmark = pytest.mark.anyio
AGENT: Final = "/v1/agents/marco"
FILE: Final = f"{AGENT}/files/SOUL.md"
Call = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]


class CountedRecords:
    """Records of a store, with the number of calls of `revision`."""

    def __init__(self, records: Any) -> None:
        self._records = records
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._records, name)

    async def revision(self) -> int:
        self.asked += 1
        revision: int = await self._records.revision()
        return revision


class FrozenClock:
    """Clock that stands still, so that a slow machine does not outlive a revision's age."""

    def __init__(self, clock: Any) -> None:
        self._clock, self._now = clock, clock.now()
        self.ahead = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._clock, name)

    def now(self) -> int:
        return int(self._now) + self.ahead


@dataclasses.dataclass
class CountedServer:
    ports: Ports
    records: CountedRecords
    client: httpx.AsyncClient


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[CountedServer]:
    async with open_ports(tmp_path) as opened:
        records = CountedRecords(opened.records)
        clock: Any = FrozenClock(opened.clock)
        counted: Any = records
        ports = dataclasses.replace(opened, records=counted, clock=clock)
        app = app_of(ports)
        known = authenticator(load(environ={}, file=File("no such file")))
        async with mcp_http.mount(ports, known, asyncio.Event(), warmup_delay=600) as mount:
            app.mount(mount)
            owner = await Whole(ports, app).owner()
            new = {"slug": "marco", "name": "Marco"}
            assert (await owner.post("/v1/agents", json=new)).status_code == 201
            yield CountedServer(ports, records, owner)


def call_tool(name: str, arguments: dict[str, Any]) -> Call:
    params = {"name": name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    return lambda client: client.post("/mcp/agents/marco", json=body, headers=headers)


def overlay(**body: Any) -> Call:
    body["agentId"] = "marco"
    return lambda client: client.post("/api/workspaces/files", json=body)


CALLS: Final[dict[str, Call]] = {
    "get a file": lambda client: client.get(FILE),
    "list files": lambda client: client.get(f"{AGENT}/files"),
    "list files with content": lambda client: client.get(f"{AGENT}/files?content=true"),
    "list files of defaults": lambda client: client.get("/v1/defaults/files"),
    "prompt": lambda client: client.get(f"{AGENT}/prompt"),
    "put a file": lambda client: client.put(FILE, json={"content": "kind"}),
    "overlay API list": overlay(action="list", includeContent=True),
    "overlay API put": overlay(action="put", path="SOUL.md", content="kind"),
    "MCP tool call, read": call_tool("workspace_read", {"path": "SOUL.md"}),
    "MCP tool call, list": call_tool("workspace_list", {}),
    "MCP tool call, write": call_tool("workspace_write", {"path": "a.md", "content": "tea"}),
}


@pytest.mark.parametrize("call", CALLS)
async def test_records_revision_is_asked_once_a_request(server: CountedServer, call: str) -> None:
    for caches in ("cold", "warm", "after a record changed"):
        if caches == "after a record changed":
            renamed = await server.client.patch(AGENT, json={"name": "Polo"})
            assert renamed.status_code == 200, renamed.text
        server.records.asked = 0
        response = await CALLS[call](server.client)
        assert response.status_code == 200, response.text
        assert "error" not in response.json(), response.text
        assert server.records.asked == 1, caches


async def test_a_commit_ends_the_revision(server: CountedServer) -> None:
    view = RequestView(server.ports)
    before = await view.ports.records.revision()
    await server.client.patch(AGENT, json={"name": "Polo"})
    assert await view.ports.records.revision() == before
    assert await view.ports.trees.commit(()) == ()
    assert await view.ports.records.revision() > before


async def test_a_read_of_trees_brings_its_revision(server: CountedServer) -> None:
    view = RequestView(server.ports)
    before = await view.ports.records.revision()
    await server.client.patch(AGENT, json={"name": "Polo"})
    server.records.asked = 0
    await view.ports.trees.read([Scope("acme", ScopeKind.DEFAULTS, "")], ())
    assert await view.ports.records.revision() > before
    assert server.records.asked == 0


async def test_a_long_request_asks_again(server: CountedServer) -> None:
    view = RequestView(server.ports)
    clock: Any = server.ports.clock
    server.records.asked = 0
    for passed, asked in ((0, 1), (MAX_AGE_MS, 1), (1, 2)):
        clock.ahead += passed
        await view.ports.records.revision()
        assert server.records.asked == asked
    view.end()
    await view.ports.records.revision()
    await view.ports.records.revision()
    assert server.records.asked == 4, "a stream sees every change"
