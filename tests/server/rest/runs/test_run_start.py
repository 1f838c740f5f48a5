"""One-request start of a run: files, prompt and tools with the run, conditional by ETag."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app
from tests.support.rest_client import open_rest_server

from carrel.server.rest.runs import runs

pytestmark = pytest.mark.anyio

ALL = ["files", "prompt", "tools"]


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def owner(server: FullApp) -> httpx.AsyncClient:
    owner = await server.owner()
    await owner.post("/v1/agents", json={"slug": "kate", "name": "Kate"})
    await owner.put("/v1/agents/kate/files/SOUL.md", json={"content": "I am {{AGENT_NAME}}.\n"})
    return owner


async def start(
    owner: httpx.AsyncClient, headers: dict[str, str] | None = None, **body: Any
) -> dict[str, Any]:
    answer = await owner.post(
        "/v1/runs", json={"agentId": "kate", "include": ALL, **body}, headers=headers
    )
    assert answer.status_code == 201, answer.text
    started: dict[str, Any] = answer.json()
    assert answer.headers["etag"] == started["etag"]
    assert answer.headers["location"] == started["statusUrl"]
    return started


async def test_a_start_returns_what_the_run_reads(owner: httpx.AsyncClient) -> None:
    started = await start(owner, dialect="openai")
    url = started["statusUrl"]
    files = {file["path"]: file for file in started["files"]}
    assert files["SOUL.md"]["content"] == "I am Kate.\n"
    listed = (await owner.get(f"{url}/files")).json()["files"]
    assert [file["path"] for file in started["files"]] == [file["path"] for file in listed]
    assert started["prompt"] == (await owner.get(f"{url}/prompt")).json()
    tools = await owner.get("/v1/agents/kate/tools", params={"dialect": "openai"})
    assert started["tools"] == tools.json()["items"]
    assert started["notModified"] is False
    assert started["etags"]["prompt"] == started["prompt"]["etag"]


async def test_only_requested_parts_are_returned(owner: httpx.AsyncClient) -> None:
    started = await start(owner, include=["prompt"])
    assert set(started["etags"]) == {"prompt"}
    assert "files" not in started
    assert "tools" not in started
    plain = (await owner.post("/v1/runs", json={"agentId": "kate"})).json()
    assert set(plain) == {"runId", "status", "eventsUrl", "statusUrl"}


async def test_known_parts_are_omitted_and_the_run_starts_all_the_same(
    owner: httpx.AsyncClient,
) -> None:
    first = await start(owner)
    again = await start(owner, {"If-None-Match": first["etag"]})
    assert again["runId"] != first["runId"]
    assert (again["notModified"], again["etag"]) == (True, first["etag"])
    assert not {"files", "prompt", "tools"} & set(again)
    run = (await owner.get(again["statusUrl"])).json()
    assert run["status"] == "running"

    await owner.put("/v1/agents/kate/files/notes.txt", json={"content": "not in the prompt\n"})
    etags = ", ".join(first["etags"].values())
    changed = await start(owner, {"If-None-Match": etags})
    assert changed["notModified"] is False
    assert "files" in changed
    assert not {"prompt", "tools"} & set(changed)
    stale = await start(owner, {"If-None-Match": first["etag"]})
    assert stale["etag"] != first["etag"]
    assert {"files", "prompt", "tools"} <= set(stale)


async def test_parts_are_frozen_with_the_run(owner: httpx.AsyncClient) -> None:
    started = await start(owner)
    await owner.put("/v1/agents/kate/files/SOUL.md", json={"content": "Changed.\n"})
    prompt = (await owner.get(f"{started['statusUrl']}/prompt")).json()
    assert prompt == started["prompt"]
    replay = await start(owner, agentId=None, replayOf=started["runId"])
    assert (replay["files"], replay["prompt"]) == (started["files"], started["prompt"])


async def test_a_repeated_start_returns_the_same_run_with_its_parts(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    key = {"Idempotency-Key": "k"}
    first = await start(owner, key)
    await owner.put("/v1/agents/kate/files/SOUL.md", json={"content": "Changed.\n"})
    assert await start(owner, key) == first
    assert len((await owner.get("/v1/runs")).json()["items"]) == 1


async def test_a_shared_run_gets_the_shared_parts(owner: httpx.AsyncClient) -> None:
    await owner.put("/v1/agents/kate/files/MEMORY.md", json={"content": "Ada likes tea.\n"})
    started = await start(owner, scope="shared")
    assert "MEMORY.md" not in {file["path"] for file in started["files"]}
    assert "likes tea" not in started["prompt"]["text"]
    main = await start(owner)
    assert main["etag"] != started["etag"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"include": ["secrets"]}, 400),
        ({"include": "files"}, 400),
        ({"dialect": "cobol"}, 400),
        ({"include": ["files"] * 9}, 400),
        ({"agentId": "missing"}, 404),
        ({"sessionId": ""}, 400),
        ({"sessionId": "a\n"}, 400),
    ],
)
async def test_a_bad_start_is_refused_and_starts_nothing(
    owner: httpx.AsyncClient, body: dict[str, Any], status: int
) -> None:
    answer = await owner.post("/v1/runs", json={"agentId": "kate", **body})
    assert answer.status_code == status, answer.text
    assert (await owner.get("/v1/runs")).json()["items"] == []


async def test_a_start_whose_parts_fail_leaves_no_running_run(owner: httpx.AsyncClient) -> None:
    refused = await owner.post("/v1/runs", json={"workflowId": "wf", "include": ["tools"]})
    assert refused.status_code == 400
    config = {"config": {"promptChars": 1000}}
    assert (await owner.patch("/v1/agents/kate", json=config)).status_code == 200
    refused = await owner.post("/v1/runs", json={"agentId": "kate", "include": ["prompt"]})
    assert refused.status_code == 409
    statuses = {run["status"] for run in (await owner.get("/v1/runs")).json()["items"]}
    assert statuses == {"cancelled"}


async def test_parts_need_the_permission_to_read(server: FullApp, owner: httpx.AsyncClient) -> None:
    starter = (
        await owner.post(
            "/v1/keys", json={"name": "s", "kind": "service", "scopes": ["runs:write"]}
        )
    ).json()["key"]
    client = server.as_(starter)
    assert (await client.post("/v1/runs", json={"agentId": "kate"})).status_code == 201
    for body in ({"include": ["files"]}, {"sessionId": "x"}):
        refused = await client.post("/v1/runs", json={"agentId": "kate", **body})
        assert refused.status_code == 403


async def test_a_run_joins_its_session(owner: httpx.AsyncClient) -> None:
    started = await start(owner, sessionId="chat/1")
    assert started["sessionId"] == "chat/1"
    url = "/v1/agents/kate/sessions/chat%2F1"
    session = (await owner.get(url)).json()
    assert (session["runId"], session["scope"]) == (started["runId"], "main")
    run = (await owner.get(started["statusUrl"])).json()
    assert run["sessionId"] == "chat/1"
    query = f'{{ run(id: "{started["runId"]}") {{ sessionId }} }}'
    graph = (await owner.post("/graphql", json={"query": query})).json()
    assert graph["data"]["run"]["sessionId"] == "chat/1"
    hello = {"role": "user", "content": "hello"}
    appended = await owner.post(f"{url}/entries", json=hello)
    assert appended.json()["runId"] == started["runId"]
    second = await start(owner, sessionId="chat/1")
    runs = await owner.get("/v1/runs", params={"agentId": "kate", "sessionId": "chat/1"})
    assert [run["runId"] for run in runs.json()["items"]] == [second["runId"], started["runId"]]
    assert (await owner.get("/v1/runs", params={"sessionId": "chat/1"})).status_code == 400
    assert (await owner.delete(url)).status_code == 204
    assert (await owner.get(started["statusUrl"])).json()["sessionId"] is None


async def test_a_run_in_a_shared_session_is_shared(owner: httpx.AsyncClient) -> None:
    await owner.post("/v1/agents/kate/sessions", json={"id": "group", "scope": "shared"})
    started = await start(owner, sessionId="group")
    assert (await owner.get(started["statusUrl"])).json()["scope"] == "shared"
    for body in ({"sessionId": "group", "scope": "main"}, {"replayOf": None}):
        answer = await owner.post("/v1/runs", json={"agentId": "kate", **body})
        assert answer.status_code == (409 if "sessionId" in body else 201)
    await owner.post("/v1/agents/kate/sessions", json={"id": "own"})
    refused = await owner.post(
        "/v1/runs", json={"agentId": "kate", "sessionId": "own", "scope": "shared"}
    )
    assert refused.status_code == 409
    await owner.post("/v1/agents/kate/sessions/own/close")
    closed = await owner.post("/v1/runs", json={"agentId": "kate", "sessionId": "own"})
    assert closed.status_code == 409
    other = await owner.post("/v1/runs", json={"workflowId": "wf", "sessionId": "own"})
    assert other.status_code == 400


async def test_a_run_ends_with_its_last_entries(owner: httpx.AsyncClient) -> None:
    started = await start(owner, sessionId="chat")
    url, entries = started["statusUrl"], "/v1/agents/kate/sessions/chat/entries"
    body = {
        "status": "completed",
        "entries": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "item": {"content": [{"text": "hi"}]}},
        ],
    }
    key = {"Idempotency-Key": "end"}
    for _ in range(2):
        ended = await owner.patch(url, json=body, headers=key)
        assert (ended.status_code, ended.json()["status"]) == (200, "completed")
    rows = (await owner.get(entries)).json()["items"]
    assert [(row["content"], row["runId"]) for row in rows] == [
        *(("hello", started["runId"]), ("hi", started["runId"]))
    ]
    late = await owner.patch(url, json={**body, "status": "failed"})
    assert late.status_code == 409
    assert len((await owner.get(entries)).json()["items"]) == 2
    plain = (await owner.post("/v1/runs", json={"agentId": "kate"})).json()["statusUrl"]
    assert (await owner.patch(plain, json=body)).status_code == 400
    assert (await owner.get(plain)).json()["status"] == "running"


async def test_a_run_with_two_tool_calls_takes_four_requests(
    server: FullApp, owner: httpx.AsyncClient
) -> None:
    requests: list[str] = []

    async def count(request: httpx.Request) -> None:
        requests.append(f"{request.method} {request.url.path}")

    owner.event_hooks["request"].append(count)
    started = await start(owner, sessionId="chat", dialect="anthropic")
    calls = []
    for name in ("who_am_i", "my_stats"):
        body = {"arguments": {}, "runId": started["runId"], "sessionId": "chat"}
        reply = await owner.post(f"/v1/agents/kate/tools/{name}", json=body)
        calls += [
            {"role": "assistant", "item": {"type": "tool_use", "name": name, "input": {}}},
            {"role": "tool", "item": {"type": "tool_result", "content": reply.json()["content"]}},
        ]
    entries = [
        {"role": "user", "content": "Who are you?"},
        *calls,
        {"role": "assistant", "content": "I am Kate."},
    ]
    ended = await owner.patch(
        started["statusUrl"], json={"status": "completed", "entries": entries}
    )
    assert ended.status_code == 200
    assert len(requests) == 4
    session = (await owner.get("/v1/agents/kate/sessions/chat")).json()
    assert session["entryCount"] == 6
    assert {entry["runId"] for entry in session["entries"]} == {started["runId"]}


async def test_a_start_whose_response_was_lost_is_found_again(tmp_path: File) -> None:
    async with open_rest_server(tmp_path / "crash", forgetful=True, more=runs.ENDPOINTS) as server:
        owner = await server.create_tenant()
        await owner.post("/v1/agents", json={"slug": "kate", "name": "Kate"})
        key = {"Idempotency-Key": "k"}
        first, again = [await start(owner, key, sessionId="any text") for _ in range(2)]
        assert again == first
        body = {"id": "other text"}
        sessions = [
            await owner.post("/v1/agents/kate/sessions", json=body, headers=key) for _ in range(2)
        ]
        assert [answer.status_code for answer in sessions] == [201, 201]
        assert sessions[0].json() == sessions[1].json()
