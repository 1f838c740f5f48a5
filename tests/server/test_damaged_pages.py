"""Whatever page of the database is damaged, every kind of read says so."""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import (
    FILES,
    create_tool_config,
    open_configured_app,
    settings_in,
)

from carrel.actions.accounts import tenants
from carrel.core.outages import CorruptContent
from carrel.settings import load
from carrel.tools.registry import ALL_TOOLS
from carrel.wiring.server_app import endpoints

PAGE_BYTES = 4096
GROUPS = 4
"""Pages are tested in so many groups, in parallel."""
LONG = "long text " * 500
"""Fills more than one page."""
MCP_HEADERS = {"Accept": "application/json, text/event-stream"}
LEFT_OUT = re.compile(
    r"/v1/(events|host/workspace/events|runs/{id}/events|session.*)|/v1/(templates|defaults)/.*files.*"
    r"|/(schemas|ui|git|graphql)/.*|/|/[a-z]+\.[a-z]+|/healthz"
)
"""Streams, documents, and addresses of the same reads on another layer."""
TOOL_ARGUMENTS: dict[str, dict[str, Any]] = {
    **{
        name: {}
        for name in ("who_am_i", "what_do_i_know", "my_stats", "ls", "workspace_list", "skill")
    },
    **{name: {"query": "figs"} for name in ("recall", "memory_search")},
    "session_logs": {"action": "search", "query": "figs"},
    "read": {"file_path": "a.md"},
    "grep": {"pattern": "figs"},
    "glob": {"pattern": "**"},
    "workspace_read": {"key": "plan"},
    "memory": {"command": "view", "path": "/memories"},
    "memory_history": {},
    "skill": {},
    "approval_result": {"approval_id": "approvals"},
}
"""Of every tool that reads."""
RESOURCE = "carrel://agents/kate/files/a.md"
QUERIES = (
    "{ agents { items { slug } } }",
    '{ agent(id: "kate") { slug files { items { path content } } } }',
    "{ templates { items { slug } } people { items { id } } }",
    "{ runs { items { id } } }",
    "{ audit { items { why } } }",
)


async def create(directory: File) -> tuple[str, dict[str, str]]:
    """A store with some of everything; the owner's token, and ids by part of a path."""
    async with open_configured_app(settings_in(directory, webhooks_private="true")) as app:
        created = await tenants.create(app.ports, "acme", "Acme", "Ada", "ada@acme.example")
        async with app.as_(created.token) as ada:
            return created.token, await populate(ada)


async def populate(ada: httpx.AsyncClient) -> dict[str, str]:
    async def send(method: str, path: str, /, **body: Any) -> Any:
        response = await ada.request(method, path, json=body)
        assert response.is_success, response.text
        return response.json()

    await send("POST", "/v1/templates", slug="sales", name="Sales")
    await send("PUT", "/v1/templates/sales/files/GUARDRAILS.md", content=LONG)
    await send("POST", "/v1/agents", slug="kate", name="Kate", templateId="sales")
    kate = "/v1/agents/kate"
    config = await create_tool_config(ada)
    gated = (await send("POST", "/accounts/me/sandboxes", name="gated"))["sandboxId"]
    notes = config["workspaces"][0]["workspaceId"]
    config["workspaces"].append({"name": "gated", "workspaceId": notes, "sandbox": gated})
    await send("PATCH", kate, config=config)
    await send("PUT", f"/v1/workspaces/{notes}/files/a.md", content="figs")
    write = {"file_path": "b.md", "content": LONG, "workspace": "gated"}
    approval = (await send("POST", f"{kate}/tools/write", arguments=write))["approval"]
    ids = {"agents": "kate", "templates": "sales", "path": "a.md", "key": "plan"}
    ids["approvals"] = approval["id"]
    for number in range(3):
        for root in (FILES, f"{kate}/files/notes"):
            await send("PUT", f"{root}/{number}.md", content=f"{number} {LONG}")
    skill = f"---\nname: figs\ndescription: {LONG[:900]}\n---\n{LONG}"
    await send("PUT", f"{kate}/files/skills/figs/SKILL.md", content=skill)
    await send("PUT", f"{FILES}/a.md", content="a")
    await send("PUT", f"{kate}/files/a.md", content="a")
    await send("PUT", f"{kate}/items/plan", value=LONG)
    for number in range(3):
        memory = await send("POST", f"{kate}/memories", content=f"{number} figs. {LONG}"[:2000])
    ids["memory"] = memory["id"]
    session = await send("POST", f"{kate}/sessions")
    ids["sid"] = session["id"]
    for number in range(3):
        entries = f"{kate}/sessions/{session['id']}/entries"
        await send("POST", entries, role="user", content=f"{number} figs, {LONG}")
        run = await send("POST", "/v1/runs", agentId="kate")
    ids["runs"] = run["runId"]
    ids["dream"] = (await send("POST", f"{kate}/dreams")).get("id") or "none"
    hook = {"url": "http://127.0.0.1:9/hook", "events": ["workspace.updated"]}
    ids["webhooks"] = (await send("POST", "/v1/webhooks", **hook))["id"]
    await send("PUT", "/v1/secrets/token", value="a secret of many letters")
    ids["secrets"] = "token"
    ids["sandboxes"] = (await send("POST", "/accounts/me/sandboxes", name="box"))["sandboxId"]
    workspace = await send("POST", "/accounts/me/workspaces", name="shared")
    ids["workspaces"] = workspace["workspaceId"]
    return ids


def urls(ids: dict[str, str]) -> Iterator[str]:
    """All addresses that can be read, but those left out."""
    for endpoint in endpoints(load(environ={}, file=File("no such file"))):
        if endpoint.method != "GET" or LEFT_OUT.fullmatch(endpoint.path):
            continue
        url = endpoint.path.replace("{path...}", "a.md").replace("{key...}", "plan")
        parts = url.split("/")
        for position, part in enumerate(parts):
            name = part.strip("{}").removesuffix("}.jsonl")
            if part.startswith("{"):
                value = ids.get(parts[position - 1] if name == "id" else name, "none")
                parts[position] = value + (".jsonl" if part.endswith(".jsonl") else "")
        yield "/".join(parts)
    yield "/v1/search?q=figs"
    yield "/v1/agents/kate/memories?q=figs"
    yield "/v1/agents/kate/sessions?q=figs"
    yield f"{FILES}/7.md"


def mcp_requests(ids: dict[str, str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every request over MCP that reads: calls of tools, resources and the prompt."""
    yield from ((f"{kind}/list", {}) for kind in ("tools", "resources", "prompts"))
    yield "resources/read", {"uri": RESOURCE}
    yield "prompts/get", {"name": "system"}
    for name, arguments in TOOL_ARGUMENTS.items():
        named = {key: ids.get(value, value) for key, value in arguments.items()}
        yield "tools/call", {"name": name, "arguments": named}


async def call(ada: httpx.AsyncClient, method: str, params: dict[str, Any]) -> str:
    """Error code of an MCP response; empty if there is none."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer = await ada.post("/mcp/agents/kate", json=body, headers=MCP_HEADERS)
    response = answer.json()
    if answer.status_code != 200:
        return str(response["error"])
    if "error" in response:
        return str(response["error"]["data"]["error"])
    result = response["result"]
    return str(result["structuredContent"]["error"]) if result.get("isError") else ""


async def read_all(data: File, token: str, ids: dict[str, str]) -> dict[str, str]:
    """What each read answers: a status, or the code of a failure."""
    answers: dict[str, str] = {}
    settings = settings_in(data)
    async with open_configured_app(settings, mcp=True) as app, app.as_(token) as ada:
        for url in urls(ids):
            answers[url] = failure_or_status(await ada.get(url))
        for query in QUERIES:
            answer = (await ada.post("/graphql", json={"query": query})).json()
            reasons = {error["extensions"].get("reason") for error in answer.get("errors", ())}
            answers[query] = " ".join(map(str, reasons))
        for method, params in mcp_requests(ids):
            answers[f"{method} {params}"] = await call(ada, method, params)
    return answers


def failure_or_status(response: httpx.Response) -> str:
    if response.status_code < 500:
        return str(response.status_code)
    text = response.text
    if not text.startswith("{"):
        return text.partition(":")[0]
    body = response.json()
    error = body["error"]
    return str(error["code"] if isinstance(error, dict) else body.get("code") or error)


@dataclass(frozen=True)
class Intact:
    """A store without damage."""

    data: File
    token: str
    ids: dict[str, str]
    answers: dict[str, str]


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Intact:
    directory = tmp_path_factory.mktemp("intact") / "data"
    token, ids = asyncio.run(create(directory))
    copy = File(shutil.copytree(directory, directory.parent / "copy"))
    return Intact(directory, token, ids, asyncio.run(read_all(copy, token, ids)))


def test_an_intact_store_has_no_errors(intact: Intact) -> None:
    answers = set(intact.answers.values())
    assert not answers - {"", "200", "204", "400", "404"}, intact.answers


def test_every_tool_that_reads_is_called() -> None:
    assert {tool.name for tool in ALL_TOOLS if not tool.writes} <= TOOL_ARGUMENTS.keys()


@pytest.mark.parametrize("group", range(GROUPS))
def test_every_read_of_a_damaged_page_is_corrupt(
    intact: Intact, tmp_path: File, group: int
) -> None:
    pages = (intact.data / "carrel.db").stat().st_size // PAGE_BYTES
    failures: set[tuple[str, str]] = set()
    for number in range(1 + group, pages, GROUPS):
        data = File(shutil.copytree(intact.data, tmp_path / "damaged"))
        with open(data / "carrel.db", "r+b") as file:
            file.seek(number * PAGE_BYTES)
            file.write((b"\xff" if number % 3 else b"\0") * PAGE_BYTES)
        with suppress(sqlite3.DatabaseError, CorruptContent):  # the store does not open
            answers = asyncio.run(read_all(data, intact.token, intact.ids))
            failures |= answers.items() - intact.answers.items()
        shutil.rmtree(data)
    assert failures
    assert {(read, answer) for read, answer in failures if answer != "corrupt"} == set()
