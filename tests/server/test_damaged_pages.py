"""Whatever page of the database is damaged, every kind of read says so."""

from __future__ import annotations

import asyncio
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FILES, open_configured_app, settings_in

from carrel.actions.accounts import tenants
from carrel.core.outages import CorruptContent
from carrel.settings import load
from carrel.wiring.server_app import endpoints

PAGE_BYTES = 4096
GROUPS = 4
"""Pages are tested in so many groups, in parallel."""
LONG = "long text " * 500
"""Fills more than one page."""
LEFT_OUT = re.compile(
    r"/v1/(events|host/workspace/events|runs/{id}/events|session.*)|/v1/(templates|defaults)/.*files.*"
    r"|/(schemas|ui|git|graphql)/.*|/|/[a-z]+\.[a-z]+|/healthz"
)
"""Streams, documents, and addresses of the same reads on another layer."""
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
    ids = {"agents": "kate", "templates": "sales", "path": "a.md", "key": "plan"}
    for number in range(3):
        for root in (FILES, f"{kate}/files/notes"):
            await send("PUT", f"{root}/{number}.md", content=f"{number} {LONG}")
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


async def read_all(data: File, token: str, ids: dict[str, str]) -> Counter[str]:
    """Error codes of all reads, with the addresses of internal errors."""
    codes = Counter[str]()
    async with open_configured_app(settings_in(data)) as app, app.as_(token) as ada:
        for url in urls(ids):
            response = await ada.get(url)
            if response.status_code >= 500:
                # The errors of /accounts/me have a text and no code.
                is_corrupt = '"corrupt"' in response.text or "damaged" in response.text
                codes["corrupt" if is_corrupt else f"{url}: {response.text}"] += 1
        for query in QUERIES:
            answer = (await ada.post("/graphql", json={"query": query})).json()
            for error in answer.get("errors", ()):
                reason = error["extensions"].get("reason")
                codes["corrupt" if reason == "corrupt" else f"graphql: {error}"] += 1
    return codes


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> tuple[File, str, dict[str, str]]:
    """A data directory, the owner's token, and ids."""
    directory = tmp_path_factory.mktemp("intact") / "data"
    return directory, *asyncio.run(create(directory))


def test_an_intact_store_has_no_errors(intact: tuple[File, str, dict[str, str]]) -> None:
    assert asyncio.run(read_all(*intact)) == {}


@pytest.mark.parametrize("group", range(GROUPS))
def test_every_read_of_a_damaged_page_is_corrupt(
    intact: tuple[File, str, dict[str, str]], tmp_path: File, group: int
) -> None:
    directory, token, ids = intact
    pages = (directory / "carrel.db").stat().st_size // PAGE_BYTES
    codes = Counter[str]()
    for number in range(1 + group, pages, GROUPS):
        data = File(shutil.copytree(directory, tmp_path / "damaged"))
        with open(data / "carrel.db", "r+b") as file:
            file.seek(number * PAGE_BYTES)
            file.write((b"\xff" if number % 3 else b"\0") * PAGE_BYTES)
        with suppress(sqlite3.DatabaseError, CorruptContent):  # the store does not open
            codes += asyncio.run(read_all(data, token, ids))
        shutil.rmtree(data)
    assert codes.keys() == {"corrupt"}
