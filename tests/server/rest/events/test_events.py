"""Event streams of a live server: complete, without duplicates, per tenant."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FILES, FullApp, open_full_app
from tests.support.server_process import ServerProcess, serving
from tests.support.sse_client import ServerEvent, open_stream

from carrel import defaults
from carrel.core.access import Permission
from carrel.server.rest.events import events as events_module

pytestmark = pytest.mark.anyio
OWN, TENANT = "/v1/host/workspace/events", "/v1/events"


@pytest.fixture(scope="module", params=[1, 2], ids=["one process", "two processes"])
def live(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    data: File = tmp_path_factory.mktemp("events")
    with serving(data, workers=request.param, platform_token="platform") as live:
        yield live


@pytest.fixture
async def ada(live: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    """The owner of a new tenant without later events."""
    async with live.http("platform") as platform, live.http(await tenant(platform)) as client:
        yield client


_NAMES = map("tenant-{}".format, range(1, 1000))


async def tenant(platform: httpx.AsyncClient) -> str:
    slug = next(_NAMES)
    owner = {"name": "Ada", "email": "ada@example.org"}
    created = await platform.post(
        "/v1/tenants", json={"slug": slug, "name": "Acme", "owner": owner}
    )
    assert created.status_code == 201, created.text
    return str(created.json()["ownerToken"])


async def put(client: httpx.AsyncClient, path: str, root: str = FILES, **headers: str) -> int:
    body = {"content": "a text that no event contains"}
    answer = await client.put(f"{root}/{path}", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["version"])


def paths(events: list[ServerEvent]) -> list[str]:
    return [event.payload["payload"]["path"] for event in events]


async def test_a_stream_has_every_change_of_the_callers_own_workspace(
    ada: httpx.AsyncClient,
) -> None:
    await put(ada, "before.md")
    async with open_stream(ada, OWN) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream")
        await stream.position()
        await put(ada, "a.md")
        await put(ada, "elsewhere.md", "/v1/workspaces/attic/files")
        await put(ada, "a.md")
        await ada.delete(f"{FILES}/a.md")
        events = await stream.take(3)
    assert [event.payload["payload"] for event in events] == [
        {"path": "a.md", "version": 1},
        {"path": "a.md", "version": 2},
        {"path": "a.md", "version": 3},
    ]
    for event in events:
        assert set(event.payload) == {
            *("eventId", "type", "payload"),
            *("timestamp", "workspace", "runId"),
        }
        assert event.type == event.payload["type"] == "workspace.updated"
        assert event.payload["workspace"] == {"kind": "workspace", "name": "default"}
        assert event.payload["timestamp"].endswith("Z")
    assert len({event.payload["eventId"] for event in events}) == 3


async def test_a_stream_resumes_after_the_last_event(ada: httpx.AsyncClient) -> None:
    for number in range(4):
        await put(ada, f"{number}.md")
    for arguments in ({"path": OWN, "last": "0"}, {"path": f"{OWN}?since=0"}):
        async with open_stream(ada, **arguments) as stream:
            events = await stream.take(4)
        assert paths(events) == ["0.md", "1.md", "2.md", "3.md"]
    async with open_stream(ada, OWN, events[1].id) as stream:
        assert await stream.take(2) == events[2:]
    async with open_stream(ada, f"{OWN}?since=0", events[2].id) as stream:
        assert await stream.take(1) == events[3:], "Last-Event-ID overrides the query"


async def test_a_client_that_reconnects_before_the_first_event_misses_nothing(
    ada: httpx.AsyncClient,
) -> None:
    await put(ada, "old.md")
    async with open_stream(ada, OWN) as stream:
        last = await stream.position()
    await put(ada, "meanwhile.md")
    async with open_stream(ada, OWN, last) as stream:
        assert paths(await stream.take(1)) == ["meanwhile.md"]


async def test_four_writers_and_reconnects_lose_and_duplicate_no_event(
    ada: httpx.AsyncClient,
) -> None:
    writers, per_writer = 4, 40
    total = writers * per_writer

    async def write(number: int) -> None:
        for _ in range(per_writer):
            await put(ada, f"{number}.md")

    async def follower(path: str, batch: int) -> list[ServerEvent]:
        received: list[ServerEvent] = []
        last = before
        while len(received) < total:
            async with open_stream(ada, path, last) as stream:
                received += await stream.take(min(batch, total - len(received)))
                last = stream.last
        return received

    async with open_stream(ada, TENANT) as stream:
        before = await stream.position()
    listeners = [(OWN, 7), (OWN, 1000), (TENANT, 13), (f"{TENANT}?types=workspace.updated", 50)]
    following = [asyncio.create_task(follower(*arguments)) for arguments in listeners]
    await asyncio.gather(*map(write, range(writers)))
    async with asyncio.timeout(60):
        logs = await asyncio.gather(*following)
    for log in logs:
        assert [event.id for event in log] == [event.id for event in logs[0]]
        counts = Counter(
            (e.payload["payload"]["path"], e.payload["payload"]["version"]) for e in log
        )
        expected = [
            (f"{n}.md", version) for n in range(writers) for version in range(1, per_writer + 1)
        ]
        assert counts == Counter(expected)


async def test_the_tenants_stream_has_all_events_or_the_requested_types(
    ada: httpx.AsyncClient,
) -> None:
    async with (
        open_stream(ada, TENANT) as everything,
        open_stream(ada, f"{TENANT}?types=run.started,run.completed") as runs,
    ):
        await everything.position()
        await runs.position()
        await put(ada, "a.md", "/v1/workspaces/attic/files")
        started = await ada.post("/v1/runs", json={"workflowId": "conformance-noop"})
        events = await everything.take(3)
        assert await runs.take(2) == events[1:]
    assert [event.type for event in events] == [
        *("workspace.updated", "run.started", "run.completed"),
    ]
    assert events[0].payload["workspace"] == {"kind": "workspace", "name": "attic"}
    assert {event.payload["runId"] for event in events[1:]} == {started.json()["runId"]}


async def test_the_stream_of_a_run_ends_when_the_run_does(ada: httpx.AsyncClient) -> None:
    run = (await ada.post("/v1/runs", json={"workflowId": "w"})).json()["runId"]
    async with open_stream(ada, f"/v1/runs/{run}/events") as stream:
        [first] = await stream.take(1)
        await put(ada, "in.md", **{"Carrel-Run": run})
        await put(ada, "beside.md")
        await ada.patch(f"/v1/runs/{run}", json={"status": "cancelled"})
        rest = await stream.rest()
    assert [event.type for event in (first, *rest)] == [
        *("run.started", "workspace.updated", "run.cancelled"),
    ]
    assert [event.payload["sequence"] for event in (first, *rest)] == [1, 2, 3]


async def test_a_stream_has_no_event_of_another_tenant(
    live: ServerProcess, ada: httpx.AsyncClient
) -> None:
    async with (
        live.http("platform") as platform,
        live.http(await tenant(platform)) as eve,
        open_stream(eve, TENANT, "0") as all_of_eve,
        open_stream(eve, OWN, "0") as own,
    ):
        await all_of_eve.position()
        for number in range(5):
            await put(ada, f"canary-{number}.md")
        await put(eve, "mine.md")
        received = await all_of_eve.take(15)
        files = [event for event in received if "path" in event.payload["payload"]]
        assert paths(files) == [*sorted(defaults.FILES), "mine.md"]
        records = [event.payload["payload"]["noun"] for event in received if event not in files]
        assert sorted(records) == ["defaults", "person", "tenant"]
        assert paths(await own.take(1)) == ["mine.md"]


async def test_revoking_a_key_ends_its_stream(live: ServerProcess, ada: httpx.AsyncClient) -> None:
    scopes = ["events:read", "workspace:read"]
    body = {"name": "listener", "kind": "service", "scopes": scopes}
    created = (await ada.post("/v1/keys", json=body)).json()
    async with live.http(created["key"]) as listener, open_stream(listener, TENANT) as stream:
        await stream.position()
        await put(ada, "before.md")
        assert paths(await stream.take(1)) == ["before.md"]
        assert (await ada.delete(f"/v1/keys/{created['id']}")).status_code == 204
        await put(ada, "after.md")
        assert await stream.rest() == []


async def test_a_hundred_listeners_receive_the_same_event(ada: httpx.AsyncClient) -> None:
    async def listen(ready: asyncio.Barrier) -> ServerEvent | None:
        async with open_stream(ada, OWN) as stream:
            await stream.position()
            await ready.wait()
            return await stream.next()

    ready = asyncio.Barrier(101)
    listeners = [asyncio.create_task(listen(ready)) for _ in range(100)]
    await ready.wait()
    await put(ada, "news.md")
    received = await asyncio.gather(*listeners)
    assert len({event.id for event in received if event}) == 1
    assert all(received)


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


async def test_a_workspace_key_follows_its_workspace_and_not_the_tenant(
    server: FullApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "_MAX_STREAM_SECONDS", 0.05)
    owner = await server.owner()
    confined = await server.key(owner, workspace="attic")
    for root in (FILES, "/v1/workspaces/attic/files"):
        await put(owner, f"{root.count('w')}.md", root)
    async with open_stream(confined, OWN, "0") as stream:
        [event] = await stream.rest()
    assert event.payload["workspace"] == {"kind": "workspace", "name": "attic"}
    async with open_stream(confined, TENANT, "0") as stream:
        assert stream.status == 403


async def test_an_agent_receives_events_of_every_layer_of_its_stack(
    server: FullApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "_MAX_STREAM_SECONDS", 0.05)
    owner = await server.owner()
    await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    body = {"slug": "marco", "name": "Marco", "templateId": "sales"}
    created = (await owner.post("/v1/agents", json=body)).json()
    marco = await server.key(owner, agent=created["id"])
    for root in ("agents/marco", "templates/sales", "defaults", "workspaces/attic"):
        await put(owner, f"{root.split('/')[0]}.md", f"/v1/{root}/files")
    async with open_stream(marco, OWN, "0") as stream:
        received = [path for path in paths(await stream.rest()) if path not in defaults.FILES]
    assert received == ["agents.md", "templates.md", "defaults.md"]


async def test_a_stream_ends_at_its_time_limit_and_can_be_resumed(
    server: FullApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events_module, "_MAX_STREAM_SECONDS", 0.05)
    owner = await server.owner()
    async with open_stream(owner, OWN) as stream:
        assert await stream.rest() == []
        last = stream.last
    await put(owner, "a.md")
    async with open_stream(owner, OWN, last) as stream:
        assert paths(await stream.rest()) == ["a.md"]


async def test_an_invalid_cursor_or_type_is_400_before_the_stream_starts(
    server: FullApp,
) -> None:
    owner = await server.owner()
    for path in (OWN, TENANT):
        for last in ("x", "-1", "1 2", "\u00e9", "9" * 99):
            header = {b"Last-Event-ID": last.encode("latin-1")}
            answer = await owner.get(path, headers=header)
            assert answer.status_code == 400, last
        for query in ("since=x", "since=%00", "since=1%0a", "since=" + "1" * 99):
            assert (await owner.get(f"{path}?{query}")).status_code == 400, query
    for query in ("types=x", "types=run.*", "types=run.started,%00", "other=1"):
        assert (await owner.get(f"{TENANT}?{query}")).status_code == 400, query


async def test_a_stream_needs_its_permission(server: FullApp) -> None:
    owner = await server.owner()
    writer = await server.key(owner, Permission.WORKSPACE_WRITE)
    for path in (OWN, TENANT):
        assert (await writer.get(path)).status_code == 403
        assert (await server.as_(None).get(path)).status_code == 401
        head = await owner.head(path)
        assert (head.status_code, head.content) == (200, b"")


async def test_no_event_carries_content(server: FullApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events_module, "_MAX_STREAM_SECONDS", 0.05)
    owner = await server.owner()
    await put(owner, "a.md")
    answer = await owner.get(TENANT, headers={"Last-Event-ID": "0"})
    assert "a text that no event contains" not in answer.text
    lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    events: list[dict[str, Any]] = [json.loads(line.removeprefix("data: ")) for line in lines]
    files = [event for event in events if event["type"] == "workspace.updated"]
    assert [set(event["payload"]) for event in files] == [{"path", "version"}] * 12
    assert {frozenset(event["payload"]) for event in events if event not in files} == {
        frozenset({"noun", "id"})
    }
    assert events[-1]["payload"] == {"path": "a.md", "version": 1}
