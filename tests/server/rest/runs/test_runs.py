"""Runs over REST: snapshots, diffs, logs and access."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.support.full_app import FILES, FullApp, open_full_app
from tests.support.sse_client import open_stream

from carrel import defaults
from carrel.core.access import Permission

pytestmark = pytest.mark.anyio
RUNS = "/v1/runs"


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    return await server.owner()


async def put(client: httpx.AsyncClient, path: str, text: str, **headers: str) -> dict[str, Any]:
    answer = await client.put(f"{FILES}/{path}", json={"content": text}, headers=headers)
    assert answer.status_code == 200, answer.text
    file: dict[str, Any] = answer.json()
    return file


async def start(client: httpx.AsyncClient, **body: Any) -> str:
    answer = await client.post(RUNS, json=body or {"workflowId": "w"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


async def get_run(client: httpx.AsyncClient, run: str, below: str = "") -> Any:
    answer = await client.get(f"{RUNS}/{run}{below}")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_started_run_returns_its_urls(ada: httpx.AsyncClient) -> None:
    answer = await ada.post(RUNS, json={"workflowId": "conformance-noop"})
    assert answer.status_code == 201
    body = answer.json()
    run = body["runId"]
    assert body == {
        "runId": run,
        "status": "completed",
        "eventsUrl": f"{RUNS}/{run}/events",
        "statusUrl": f"{RUNS}/{run}",
    }
    assert answer.headers["location"] == body["statusUrl"]
    assert (await ada.get(body["statusUrl"])).json()["status"] == "completed"


async def test_a_run_has_its_owner_and_its_files_in_order(ada: httpx.AsyncClient) -> None:
    for path in ("b.md", "a/c.md", "a.md", "b.md"):
        await put(ada, path, "x")
    run = await start(ada, workflowId="daily report", scope="main")
    body = await get_run(ada, run)
    owner = body.pop("owner")
    assert {"tenant", "workspace", "principal"} == set(owner)
    assert (owner["tenant"], owner["workspace"]) == ("acme", "default")
    assert re.fullmatch(r"per_[0-9a-f]{24}", owner["principal"])
    assert body.pop("startedAt").endswith("Z")
    assert body == {
        "runId": run,
        "workflowId": "daily report",
        "status": "running",
        "scope": "main",
        "agentId": None,
        "parentRunId": None,
        "replayOf": None,
        "sessionId": None,
        "endedAt": None,
        "reason": None,
        "abandonedAt": None,
        "kept": True,
        "workspace": [
            {"path": "a.md", "version": 1, "layer": "workspace"},
            {"path": "a/c.md", "version": 1, "layer": "workspace"},
            {"path": "b.md", "version": 2, "layer": "workspace"},
        ],
        "skills": [],
    }


async def test_extra_fields_of_openwop_clients_are_ignored(ada: httpx.AsyncClient) -> None:
    run = await start(
        ada,
        workflowId="w",
        inputs={"a": [1, {"b": None}]},
        tenantId="globex",
        configurable={"model": "x"},
        metadata={"k": "v"},
        tags=["a"],
        somethingNew=7,
    )
    assert (await get_run(ada, run))["owner"]["tenant"] == "acme"


@pytest.mark.parametrize(
    ("scope", "mode"),
    [(None, "main"), ("main", "main"), ("shared", "shared"), ("MAIN", "shared"), ("", "shared")],
)
async def test_an_unknown_scope_is_shared(
    ada: httpx.AsyncClient, scope: str | None, mode: str
) -> None:
    body = {"workflowId": "w"} | ({} if scope is None else {"scope": scope})
    assert (await get_run(ada, await start(ada, **body)))["scope"] == mode


async def test_a_runs_files_survive_edits_and_deletion(ada: httpx.AsyncClient) -> None:
    await ada.put("/v1/policy", json={"limits": {"maxVersions": 1}})
    created = await put(ada, "a/b.md", "as it was")
    run = await start(ada)
    await put(ada, "a/b.md", "edited")
    await ada.delete(f"{FILES}/a/b.md")
    await put(ada, "a/b.md", "recreated")
    await put(ada, "later.md", "x")
    for path in ("a/b.md", "a%2Fb.md"):
        answer = await ada.get(f"{RUNS}/{run}/files/{path}")
        file = answer.json()
        for field in ("path", "content", "contentType", "version", "etag", "updatedAt"):
            assert file[field] == created[field]
        assert answer.headers["etag"] == created["etag"]
        assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    [row] = (await get_run(ada, run, "/files"))["files"]
    assert (row["path"], row["version"], "content" in row) == ("a/b.md", 1, False)
    assert (await get_run(ada, run))["workspace"] == [
        {"path": "a/b.md", "version": 1, "layer": "workspace"}
    ]
    cached = {"If-None-Match": created["etag"]}
    unchanged = await ada.get(f"{RUNS}/{run}/files/a/b.md", headers=cached)
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert "immutable" in unchanged.headers["cache-control"]
    for absent in ("later.md", "nowhere"):
        assert (await ada.get(f"{RUNS}/{run}/files/{absent}")).status_code == 404
    assert (await ada.get(f"{RUNS}/{run}/files/a/..%2f")).status_code == 400


async def test_a_write_in_a_run_is_in_its_log_and_seen_by_the_next_run_only(
    ada: httpx.AsyncClient,
) -> None:
    run = await start(ada)
    await put(ada, "note.md", "x", **{"Carrel-Run": run})
    after = await start(ada)
    assert (await get_run(ada, run))["workspace"] == []
    assert (await get_run(ada, after))["workspace"] == [
        {"path": "note.md", "version": 1, "layer": "workspace"}
    ]
    log = await get_run(ada, run, "/events")
    assert [(event["type"], event["sequence"]) for event in log["events"]] == [
        ("run.started", 1),
        ("workspace.updated", 2),
    ]
    assert log["events"][1]["payload"] == {"path": "note.md", "version": 1}
    assert {event["runId"] for event in log["events"]} == {run}
    assert not log["isComplete"]
    ended = await ada.patch(f"{RUNS}/{run}", json={"status": "completed"})
    assert (ended.json()["status"], ended.json()["endedAt"] is None) == ("completed", False)
    late = {"Carrel-Run": run}
    refused = await ada.put(f"{FILES}/late.md", json={"content": "x"}, headers=late)
    assert refused.status_code == 409
    more = await ada.get(f"{RUNS}/{run}/events", params={"since": log["next"]})
    assert [event["type"] for event in more.json()["events"]] == ["run.completed"]
    assert more.json()["isComplete"]


async def test_the_log_of_an_ended_run_is_streamed_to_its_end(ada: httpx.AsyncClient) -> None:
    run = await start(ada, workflowId="conformance-noop")
    path = f"{RUNS}/{run}/events?streamMode=updates"
    async with open_stream(ada, path) as stream:
        assert stream.headers["content-type"] == "text/event-stream"
        events = await stream.rest()
    assert [event.type for event in events] == ["run.started", "run.completed"]
    for event in events:
        assert set(event.payload) == {
            *("eventId", "runId", "type"),
            *("payload", "timestamp", "sequence"),
        }
        assert event.payload["type"] == event.type
    async with open_stream(ada, path, events[0].id) as stream:
        assert await stream.rest() == events[1:]
    async with open_stream(ada, path, events[1].id) as stream:
        assert await stream.rest() == []


async def test_children_and_replays_read_the_right_snapshot(ada: httpx.AsyncClient) -> None:
    await put(ada, "AGENTS.md", "old")
    parent = await start(ada, workflowId="w", scope="shared")
    await put(ada, "AGENTS.md", "new")
    child = await start(ada, parentRunId=parent)
    sharing = await start(ada, parentRunId=parent, shareSnapshot=True)
    replay = await start(ada, replayOf=parent)
    versions = {}
    for run in (child, sharing, replay):
        body = await get_run(ada, run)
        versions[run] = body["workspace"][0]["version"]
        assert (body["scope"], body["workflowId"]) == ("shared", "w")
    assert versions == {child: 2, sharing: 1, replay: 1}
    assert (await get_run(ada, child))["parentRunId"] == parent
    assert (await get_run(ada, replay))["replayOf"] == parent
    assert (await get_run(ada, replay, "/files/AGENTS.md"))["content"] == "old"


async def test_a_run_with_a_deleted_snapshot_has_no_files(
    ada: httpx.AsyncClient,
) -> None:
    await put(ada, "a.md", "x")
    run = await start(ada)
    assert (await ada.patch(f"{RUNS}/{run}", json={"kept": False})).status_code == 409
    ended = await ada.patch(f"{RUNS}/{run}", json={"status": "failed", "kept": False})
    assert (ended.status_code, ended.json()["kept"], ended.json()["workspace"]) == (200, False, [])
    assert (await get_run(ada, run))["workspace"] == []
    for below in ("/files", "/files/a.md", "/diff", "/diff?path=a.md"):
        answer = await ada.get(f"{RUNS}/{run}{below}")
        assert answer.status_code == 404
        assert "snapshot was deleted" in answer.json()["message"]
    for body in ({"replayOf": run}, {"parentRunId": run, "shareSnapshot": True}):
        assert (await ada.post(RUNS, json=body)).status_code == 409
    assert (await ada.patch(f"{RUNS}/{run}", json={"kept": True})).status_code == 409
    assert (await ada.patch(f"{RUNS}/{run}", json={"status": "completed"})).status_code == 409


async def test_an_agent_s_run_names_the_agent(server: FullApp, ada: httpx.AsyncClient) -> None:
    created = (await ada.post("/v1/agents", json={"slug": "marco", "name": "Marco"})).json()
    await ada.put("/v1/agents/marco/files/SOUL.md", json={"content": "kind"})
    run = await start(ada, agentId="marco")
    body = await get_run(ada, run)
    assert (body["agentId"], "workspace" in body["owner"]) == (created["id"], False)
    assert {"path": "SOUL.md", "version": 2, "layer": "agent"} in body["workspace"]
    assert {"path": "ROUTER.md", "version": 1, "layer": "defaults"} in body["workspace"]
    assert {row["path"] for row in body["workspace"]} == set(defaults.FILES)
    [mine] = (await ada.get(RUNS, params={"agentId": "marco"})).json()["items"]
    assert mine["runId"] == run
    marco = await server.key(ada, agent=created["id"])
    assert (await get_run(marco, await start(marco)))["agentId"] == created["id"]


async def test_runs_are_listed_newest_first_without_their_files(ada: httpx.AsyncClient) -> None:
    started = [await start(ada) for _ in range(5)]
    first = (await ada.get(RUNS, params={"limit": 3})).json()
    rest = (await ada.get(RUNS, params={"limit": 3, "cursor": first["next"]})).json()
    assert [run["runId"] for run in first["items"] + rest["items"]] == started[::-1]
    assert rest["next"] is None
    assert all("workspace" not in run for run in first["items"])


async def test_a_diff_shows_paths_and_for_one_path_the_text(ada: httpx.AsyncClient) -> None:
    await put(ada, "a.md", "one\ntwo\n")
    await put(ada, "b.md", "x")
    run = await start(ada)
    await put(ada, "a.md", "one\n2\n")
    await ada.delete(f"{FILES}/b.md")
    await put(ada, "c.md", "y")
    diff = await get_run(ada, run, "/diff")
    assert diff == {
        "runId": run,
        "changes": [
            {"path": "a.md", "change": "changed", "beforeVersion": 1, "afterVersion": 2},
            {"path": "b.md", "change": "removed", "beforeVersion": 1, "afterVersion": None},
            {"path": "c.md", "change": "added", "beforeVersion": None, "afterVersion": 1},
        ],
    }
    [change] = (await get_run(ada, run, "/diff?path=a.md"))["changes"]
    assert change["diff"].splitlines()[-3:] == [" one", "-two", "+2"]
    assert (await ada.get(f"{RUNS}/{run}/diff?path=none.md")).status_code == 404
    assert (await ada.get(f"{RUNS}/{run}/diff?path=a/../b")).status_code == 400


async def test_the_same_request_sent_twice_starts_one_run(ada: httpx.AsyncClient) -> None:
    once = {"Idempotency-Key": "k"}
    answers = await asyncio.gather(
        *(ada.post(RUNS, json={"workflowId": "w"}, headers=once) for _ in range(4))
    )
    assert len({answer.json()["runId"] for answer in answers}) == 1
    assert len((await ada.get(RUNS)).json()["items"]) == 1


BELOW = ("", "/files", "/files/a.md", "/diff", "/diff?path=a.md", "/events")


async def test_a_run_of_another_tenant_or_workspace_is_404(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    await put(ada, "a.md", "canary")
    run = await start(ada)
    other_owner = await server.owner("globex")
    confined = await server.key(ada, workspace="attic")
    for other in (other_owner, confined):
        for below in BELOW:
            answer = await other.get(f"{RUNS}/{run}{below}")
            assert answer.status_code == 404
            assert "canary" not in answer.text
        assert (await other.patch(f"{RUNS}/{run}", json={"status": "failed"})).status_code == 404
        for body in ({"parentRunId": run}, {"replayOf": run}):
            assert (await other.post(RUNS, json=body)).status_code == 404
        assert (await other.get(RUNS)).json()["items"] == []
    assert (await get_run(ada, run))["status"] == "running"


async def test_every_run_endpoint_needs_its_permission(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    await put(ada, "a.md", "x")
    run = await start(ada)
    needs = {
        ("GET", ""): Permission.RUNS_READ,
        ("PATCH", ""): Permission.RUNS_WRITE,
        ("GET", "/files"): Permission.WORKSPACE_READ,
        ("GET", "/files/a.md"): Permission.WORKSPACE_READ,
        ("GET", "/diff"): Permission.WORKSPACE_READ,
        ("GET", "/events"): Permission.RUNS_READ,
    }
    for (method, below), needed in needs.items():
        for permission in (needed, Permission.TENANT_ADMIN):
            client = await server.key(ada, permission)
            answer = await client.request(method, f"{RUNS}/{run}{below}", content=b"{}")
            assert answer.status_code == (200 if permission is needed else 403)
        anonymous = server.as_(None)
        for path in (run, "run_none"):
            assert (await anonymous.request(method, f"{RUNS}/{path}{below}")).status_code == 401


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"{}", b"[]", b"null", b"7", b'"x"', b"{", b"\xff", b'{"workflowId": ""}'),
        *(b'{"workflowId": 7}', b'{"workflowId": "\\u0000"}', b'{"workflowId": "a\\n"}'),
        *(b'{"workflowId": "\\ud800"}', b'{"workflowId": "a", "shareSnapshot": true}'),
        *(b'{"workflowId": "a", "shareSnapshot": 1}', b'{"workflowId": "a", "scope": 7}'),
        *(b'{"workflowId": "' + b"a" * 257 + b'"}', b'{"workflowId": "a", "scope": null, }'),
        *(b'{"x":' * 5000 + b"1" + b"}" * 5000,),
    ],
)
async def test_a_bad_body_is_refused_and_starts_nothing(
    ada: httpx.AsyncClient, body: bytes
) -> None:
    answer = await ada.post(RUNS, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"] == "validation_error"
    assert (await ada.get(RUNS)).json()["items"] == []


@pytest.mark.parametrize("name", ["\x00", "a\x00b", "../x", "run_none", "é", "x" * 200, " "])
async def test_an_unknown_run_or_agent_is_404(ada: httpx.AsyncClient, name: str) -> None:
    for key in ("agentId", "parentRunId", "replayOf"):
        assert (await ada.post(RUNS, json={"workflowId": "w", key: name})).status_code == 404
    for below in BELOW:
        assert (await ada.get(f"{RUNS}/{quote(name, safe='')}{below}")).status_code == 404
    assert (await ada.get(RUNS, params={"agentId": name})).status_code == 404


@pytest.mark.parametrize(
    "query", ["cursor=%00", "cursor=a%0a", "cursor=zzz", "limit=0", "limit=501", "x=1"]
)
async def test_a_bad_query_is_refused(ada: httpx.AsyncClient, query: str) -> None:
    assert (await ada.get(f"{RUNS}?{query}")).status_code == 400
    run = await start(ada)
    for bad in ("since=x", "since=1%00", "since=1%0a"):
        assert (await ada.get(f"{RUNS}/{run}/events?{bad}")).status_code == 400
    accept = {"Accept": "text/event-stream", "Last-Event-ID": "not a cursor"}
    assert (await ada.get(f"{RUNS}/{run}/events", headers=accept)).status_code == 400
