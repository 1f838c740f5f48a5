"""Prompts over REST: text, blocks, etag and access."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app
from tests.support.stores import advance_clock

from carrel.core.access import Permission

pytestmark = pytest.mark.anyio
AGENT = "/v1/agents/marco"
PROMPT = f"{AGENT}/prompt"
CANARY = "canary-0815"
PRIVATE = ("MEMORY.md", "notes/2026-01-01.md", "DREAMS.md", "memory/contacts.md", "extra.md")


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    config = {"extraDocs": ["extra.md"]}
    new = {"slug": "marco", "name": "Marco", "config": config}
    assert (await owner.post("/v1/agents", json=new)).status_code == 201
    return owner


async def put(client: httpx.AsyncClient, path: str, text: str) -> None:
    answer = await client.put(f"{AGENT}/files/{path}", json={"content": text})
    assert answer.status_code == 200, answer.text


async def get_prompt(client: httpx.AsyncClient, url: str = PROMPT) -> dict[str, Any]:
    answer = await client.get(url)
    assert answer.status_code == 200, answer.text
    prompt: dict[str, Any] = answer.json()
    assert answer.headers["etag"] == prompt["etag"]
    assert answer.headers["cache-control"] == "private, no-cache"
    return prompt


async def start(client: httpx.AsyncClient, scope: str) -> str:
    answer = await client.post("/v1/runs", json={"agentId": "marco", "scope": scope})
    assert answer.status_code == 201, answer.text
    return f"/v1/runs/{answer.json()['runId']}"


async def test_a_prompt_has_its_text_and_a_row_for_every_file(ada: httpx.AsyncClient) -> None:
    await put(ada, "SOUL.md", "brisk, {{AGENT_NAME}}")
    prompt = await get_prompt(ada)
    assert set(prompt) == {"text", "blocks", "chars", "tokens", "tokenizer", "etag"}
    assert "# SOUL\nbrisk, Marco\n\n# USER" in prompt["text"]
    assert prompt["chars"] == len(prompt["text"])
    [soul] = [block for block in prompt["blocks"] if block["path"] == "SOUL.md"]
    assert soul == {
        "name": "SOUL",
        "path": "SOUL.md",
        "source": "agent-override",
        "version": 2,
        "chars": len("# SOUL\nbrisk, Marco"),
        "tokens": 5,
        "kept": "kept",
        "reason": "",
    }
    [extra] = [block for block in prompt["blocks"] if block["path"] == "extra.md"]
    assert (extra["kept"], extra["reason"]) == ("left out", "no such file")


async def test_a_matching_etag_returns_304(server: FullApp, ada: httpx.AsyncClient) -> None:
    first = await get_prompt(ada)
    cached = {"If-None-Match": first["etag"]}
    misses = server.app.caches.responses.misses
    answer = await ada.get(PROMPT, headers=cached)
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", first["etag"])
    assert await get_prompt(ada) == first
    assert server.app.caches.responses.misses == misses
    advance_clock(server.ports, 86_400_000)
    assert (await ada.get(PROMPT, headers=cached)).status_code == 200, "other notes are recent"
    await put(ada, "SOUL.md", "other")
    assert (await ada.get(PROMPT, headers=cached)).status_code == 200


@pytest.mark.parametrize("scope", ["shared", "group", "MAIN", ""])
async def test_private_files_do_not_affect_a_shared_prompt(
    ada: httpx.AsyncClient, scope: str
) -> None:
    before = (await ada.get(PROMPT, params={"scope": scope})).content
    for path in PRIVATE:
        await put(ada, path, CANARY)
    after = await ada.get(PROMPT, params={"scope": scope})
    assert after.content == before
    assert "# USER" not in after.json()["text"]
    assert CANARY in (await ada.get(PROMPT, params={"scope": "main"})).text


async def test_a_policy_file_over_its_limit_is_409_and_named(ada: httpx.AsyncClient) -> None:
    body = {"content": "x" * 12_001, "acceptTemplateUpdate": True}
    assert (await ada.put(f"{AGENT}/files/GUARDRAILS.md", json=body)).status_code == 200
    answer = await ada.get(PROMPT)
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
    assert answer.json()["details"] == {"path": "GUARDRAILS.md", "chars": 12_001, "limit": 12_000}


async def test_a_runs_prompt_does_not_change(server: FullApp, ada: httpx.AsyncClient) -> None:
    run = await start(ada, "main")
    before = await ada.get(f"{run}/prompt")
    assert before.json() == await get_prompt(ada)
    await put(ada, "SOUL.md", "other")
    await ada.patch(AGENT, json={"name": "Mara", "config": {"promptChars": 1000}})
    advance_clock(server.ports, 9 * 86_400_000)
    server.app.caches.responses.clear()
    again = await ada.get(f"{run}/prompt")
    assert again.content == before.content
    cached = {"If-None-Match": before.headers["etag"]}
    assert (await ada.get(f"{run}/prompt", headers=cached)).status_code == 304
    patch = {"status": "completed", "kept": False}
    assert (await ada.patch(run, json=patch)).status_code == 200
    assert (await ada.get(f"{run}/prompt")).status_code == 404


async def test_a_shared_run_reveals_nothing_private_at_any_url(ada: httpx.AsyncClient) -> None:
    for path in PRIVATE:
        await put(ada, path, f"{CANARY}\n")
    run = await start(ada, "shared")
    for path in PRIVATE:
        await put(ada, path, f"{CANARY} again\n")
    unknown_query = await ada.get(f"{run}/prompt?scope=main")
    assert (unknown_query.status_code, CANARY in unknown_query.text) == (400, False)
    below = ["", "/files", "/prompt", "/diff", "/events"]
    below += [f"/files/{path}" for path in (*PRIVATE, "USER.md")]
    below += [f"/diff?path={path}" for path in (*PRIVATE, "USER.md")]
    for suffix in below:
        answer = await ada.get(run + suffix)
        assert answer.status_code == (404 if ".md" in suffix else 200), suffix
        assert CANARY not in answer.text, suffix
    paths = [file["path"] for file in (await ada.get(f"{run}/files")).json()["files"]]
    assert paths == ["CAPABILITIES.md", "GUARDRAILS.md", "IDENTITY.md", "PLATFORM.md", "SOUL.md"]
    assert [row["path"] for row in (await ada.get(run)).json()["workspace"]] == paths
    assert (await ada.get(f"{run}/diff")).json()["changes"] == []
    child = await ada.post(
        "/v1/runs", json={"parentRunId": run.split("/")[-1], "shareSnapshot": True, "scope": "main"}
    )
    response = await ada.get(f"/v1/runs/{child.json()['runId']}/files/MEMORY.md")
    assert response.status_code == 404


async def test_a_prompt_needs_workspace_read_in_the_same_tenant(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    run = await start(ada, "main")
    runs_reader = await server.key(ada, Permission.RUNS_READ)
    other_owner = await server.owner("globex")
    for url in (PROMPT, f"{run}/prompt"):
        assert (await runs_reader.get(url)).status_code == 403
        assert (await server.as_(None).get(url)).status_code == 401
        assert (await other_owner.get(url)).status_code == 404
    assert (await ada.get("/v1/agents/missing/prompt")).status_code == 404
    assert (await ada.get(f"{PROMPT}?scop=main")).status_code == 400
