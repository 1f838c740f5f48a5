"""A request asks PostgreSQL for the records revision once."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path as File
from typing import Any, Final

import httpx
import pytest
from tests.support.commits import put_text
from tests.support.full_app import FullApp, create_rest_app
from tests.support.stores import ports_over

from carrel.adapters.postgres.store import open_store
from carrel.core.identifiers import Scope, ScopeKind
from carrel.ports import Ports, request_scope
from carrel.server.mcp import http as mcp_http
from carrel.settings import load
from carrel.wiring.server_app import authenticator

pytestmark = pytest.mark.anyio
AGENT: Final = "/v1/agents/marco"
FILE: Final = f"{AGENT}/files/SOUL.md"
Call = Callable[[httpx.AsyncClient], Awaitable[httpx.Response]]


@dataclasses.dataclass
class CountedServer:
    ports: Ports
    client: httpx.AsyncClient
    questions: list[str]
    """One entry per question for the records revision."""


@pytest.fixture
async def server(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[CountedServer]:
    monkeypatch.setattr(request_scope, "MAX_AGE_SECONDS", 3600)  # for slow machines
    questions: list[str] = []
    async with open_store(postgres_url) as store:
        database = store.records._database
        query = database.value

        async def counted(name: str, *parameters: Any) -> Any:
            questions.extend([name] if name == "records_revision" else [])
            return await query(name, *parameters)

        monkeypatch.setattr(database, "value", counted)
        ports = ports_over(store)
        app = create_rest_app(ports)
        authenticate = authenticator(ports, load(environ={}, file=File("no such file")))
        async with mcp_http.mount(ports, authenticate, asyncio.Event(), warmup_delay=600) as mount:
            app.mount(mount)
            owner = await FullApp(ports, app).owner()
            new = {"slug": "marco", "name": "Marco"}
            assert (await owner.post("/v1/agents", json=new)).status_code == 201
            yield CountedServer(ports, owner, questions)


def call_tool(name: str, arguments: dict[str, Any]) -> Call:
    params = {"name": name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {
        "Host": "localhost",
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
        server.questions.clear()
        response = await CALLS[call](server.client)
        assert response.status_code == 200, response.text
        assert "error" not in response.json(), response.text
        assert len(server.questions) == 1, caches


async def in_request(action: Callable[[], Awaitable[Any]]) -> Any:
    token = request_scope.begin()
    try:
        return await action()
    finally:
        request_scope.end(token)


async def test_a_commit_ends_the_revision(server: CountedServer) -> None:
    async def revisions() -> tuple[int, int, int]:
        before = await server.ports.records.revision()
        await rename(server)
        repeated = await server.ports.records.revision()
        await put_text(server.ports, "kind")
        return before, repeated, await server.ports.records.revision()

    before, repeated, after = await in_request(revisions)
    assert before == repeated < after


async def test_a_read_of_trees_brings_its_revision(server: CountedServer) -> None:
    async def revisions() -> tuple[int, int]:
        before = await server.ports.records.revision()
        await rename(server)
        server.questions.clear()
        await server.ports.trees.read([Scope("acme", ScopeKind.DEFAULTS, "")], ())
        return before, await server.ports.records.revision()

    before, after = await in_request(revisions)
    assert before < after
    assert server.questions == []


async def test_a_long_request_asks_again(
    server: CountedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def count_questions() -> int:
        server.questions.clear()
        for max_age in (3600, 3600, 0):
            monkeypatch.setattr(request_scope, "MAX_AGE_SECONDS", max_age)
            await server.ports.records.revision()
        return len(server.questions)

    assert await in_request(count_questions) == 2


async def test_a_task_that_outlives_its_request_asks_every_time(server: CountedServer) -> None:
    ended = asyncio.Event()

    async def count_questions() -> int:
        await ended.wait()
        server.questions.clear()
        await server.ports.records.revision()
        await server.ports.records.revision()
        return len(server.questions)

    async def start_task() -> asyncio.Task[int]:
        await server.ports.records.revision()
        return asyncio.create_task(count_questions())

    task = await in_request(start_task)
    ended.set()
    assert await task == 2


async def rename(server: CountedServer) -> None:
    """Rename the agent in a request of its own, whose context is a task's."""
    patch = server.client.patch(AGENT, json={"name": "Polo"})
    assert (await asyncio.create_task(patch)).status_code == 200
