"""Streams through a live server: none missed, none twice, to nobody else, across reconnects."""

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
from carrel.server.rest.events import events as face

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
    """The owner of a fresh tenant, in which nothing has happened yet."""
    async with live.http("platform") as platform, live.http(await tenant(platform)) as client:
        yield client


_NAMES = map("tenant-{}".format, range(1, 1000))


async def tenant(platform: httpx.AsyncClient) -> str:
    slug = next(_NAMES)
    owner = {"name": "Ada", "email": "ada@example.org"}
    made = await platform.post("/v1/tenants", json={"slug": slug, "name": "Acme", "owner": owner})
    assert made.status_code == 201, made.text
    return str(made.json()["ownerToken"])


async def put(client: httpx.AsyncClient, path: str, root: str = FILES, **headers: str) -> int:
    body = {"content": "a text that no event tells"}
    answer = await client.put(f"{root}/{path}", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["version"])


def paths(events: list[ServerEvent]) -> list[str]:
    return [event.payload["payload"]["path"] for event in events]


async def test_a_stream_tells_of_every_change_in_the_caller_s_own_workspace(
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


async def test_a_stream_is_taken_up_after_the_last_event(ada: httpx.AsyncClient) -> None:
    for number in range(4):
        await put(ada, f"{number}.md")
    for where in ({"path": OWN, "last": "0"}, {"path": f"{OWN}?since=0"}):
        async with open_stream(ada, **where) as stream:
            events = await stream.take(4)
        assert paths(events) == ["0.md", "1.md", "2.md", "3.md"]
    async with open_stream(ada, OWN, events[1].id) as stream:
        assert await stream.take(2) == events[2:]
    async with open_stream(ada, f"{OWN}?since=0", events[2].id) as stream:
        assert await stream.take(1) == events[3:], "what the browser says goes before the address"


async def test_who_leaves_before_anything_happened_misses_nothing(
    ada: httpx.AsyncClient,
) -> None:
    await put(ada, "old.md")
    async with open_stream(ada, OWN) as stream:
        last = await stream.position()
    await put(ada, "meanwhile.md")
    async with open_stream(ada, OWN, last) as stream:
        assert paths(await stream.take(1)) == ["meanwhile.md"]


async def test_none_is_missed_or_doubled_across_reconnects_while_four_write(
    ada: httpx.AsyncClient,
) -> None:
    writers, each = 4, 40
    total = writers * each

    async def author(number: int) -> None:
        for _ in range(each):
            await put(ada, f"{number}.md")

    async def follower(path: str, read_timeouts: int) -> list[ServerEvent]:
        found: list[ServerEvent] = []
        last = before
        while len(found) < total:
            async with open_stream(ada, path, last) as stream:
                found += await stream.take(min(read_timeouts, total - len(found)))
                last = stream.last
        return found

    async with open_stream(ada, TENANT) as stream:
        before = await stream.position()
    listeners = [(OWN, 7), (OWN, 1000), (TENANT, 13), (f"{TENANT}?types=workspace.updated", 50)]
    following = [asyncio.create_task(follower(*one)) for one in listeners]
    await asyncio.gather(*map(author, range(writers)))
    async with asyncio.timeout(60):
        stories = await asyncio.gather(*following)
    for story in stories:
        assert [event.id for event in story] == [event.id for event in stories[0]]
        told = Counter(
            (e.payload["payload"]["path"], e.payload["payload"]["version"]) for e in story
        )
        expected = [(f"{n}.md", version) for n in range(writers) for version in range(1, each + 1)]
        assert told == Counter(expected)


async def test_the_tenant_s_stream_tells_of_everything_or_of_what_is_asked_for(
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


async def test_nobody_hears_of_another_tenant(live: ServerProcess, ada: httpx.AsyncClient) -> None:
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
        heard = await all_of_eve.take(15)
        files = [event for event in heard if "path" in event.payload["payload"]]
        assert paths(files) == [*sorted(defaults.FILES), "mine.md"]
        records = [event.payload["payload"]["noun"] for event in heard if event not in files]
        assert sorted(records) == ["defaults", "person", "tenant"]
        assert paths(await own.take(1)) == ["mine.md"]


async def test_who_is_no_longer_let_in_hears_nothing_more(
    live: ServerProcess, ada: httpx.AsyncClient
) -> None:
    scopes = ["events:read", "workspace:read"]
    body = {"name": "ear", "kind": "service", "scopes": scopes}
    made = (await ada.post("/v1/keys", json=body)).json()
    async with live.http(made["key"]) as ear, open_stream(ear, TENANT) as heard:
        await heard.position()
        await put(ada, "before.md")
        assert paths(await heard.take(1)) == ["before.md"]
        assert (await ada.delete(f"/v1/keys/{made['id']}")).status_code == 204
        await put(ada, "after.md")
        assert await heard.rest() == []


async def test_a_hundred_listeners_hear_the_same(ada: httpx.AsyncClient) -> None:
    async def one(ready: asyncio.Barrier) -> ServerEvent | None:
        async with open_stream(ada, OWN) as stream:
            await stream.position()
            await ready.wait()
            return await stream.next()

    ready = asyncio.Barrier(101)
    listeners = [asyncio.create_task(one(ready)) for _ in range(100)]
    await ready.wait()
    await put(ada, "news.md")
    heard = await asyncio.gather(*listeners)
    assert len({event.id for event in heard if event}) == 1
    assert all(heard)


@pytest.fixture
async def here(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


async def test_a_confined_credential_follows_its_own_workspace_and_not_the_tenant(
    here: FullApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(face, "_MAX_STREAM_SECONDS", 0.05)
    owner = await here.owner()
    confined = await here.key(owner, workspace="attic")
    for root in (FILES, "/v1/workspaces/attic/files"):
        await put(owner, f"{root.count('w')}.md", root)
    async with open_stream(confined, OWN, "0") as stream:
        [event] = await stream.rest()
    assert event.payload["workspace"] == {"kind": "workspace", "name": "attic"}
    async with open_stream(confined, TENANT, "0") as stream:
        assert stream.status == 403


async def test_an_agent_hears_of_every_layer_of_its_stack(
    here: FullApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(face, "_MAX_STREAM_SECONDS", 0.05)
    owner = await here.owner()
    await owner.post("/v1/templates", json={"slug": "sales", "name": "Sales"})
    body = {"slug": "marco", "name": "Marco", "templateId": "sales"}
    made = (await owner.post("/v1/agents", json=body)).json()
    marco = await here.key(owner, agent=made["id"])
    for root in ("agents/marco", "templates/sales", "defaults", "workspaces/attic"):
        await put(owner, f"{root.split('/')[0]}.md", f"/v1/{root}/files")
    async with open_stream(marco, OWN, "0") as stream:
        heard = [path for path in paths(await stream.rest()) if path not in defaults.FILES]
    assert heard == ["agents.md", "templates.md", "defaults.md"]


async def test_a_stream_ends_after_a_while_so_that_its_reader_shows_its_credential_again(
    here: FullApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(face, "_MAX_STREAM_SECONDS", 0.05)
    owner = await here.owner()
    async with open_stream(owner, OWN) as stream:
        assert await stream.rest() == []
        last = stream.last
    await put(owner, "a.md")
    async with open_stream(owner, OWN, last) as stream:
        assert paths(await stream.rest()) == ["a.md"]


async def test_what_is_no_cursor_or_no_type_is_refused_before_the_stream_begins(
    here: FullApp,
) -> None:
    owner = await here.owner()
    for path in (OWN, TENANT):
        for last in ("x", "-1", "1 2", "\u00e9", "9" * 99):
            header = {b"Last-Event-ID": last.encode("latin-1")}
            answer = await owner.get(path, headers=header)
            assert answer.status_code == 400, last
        for query in ("since=x", "since=%00", "since=1%0a", "since=" + "1" * 99):
            assert (await owner.get(f"{path}?{query}")).status_code == 400, query
    for query in ("types=x", "types=run.*", "types=run.started,%00", "other=1"):
        assert (await owner.get(f"{TENANT}?{query}")).status_code == 400, query


async def test_streams_are_for_those_who_may_hear(here: FullApp) -> None:
    owner = await here.owner()
    deaf = await here.key(owner, Permission.WORKSPACE_WRITE)
    for path in (OWN, TENANT):
        assert (await deaf.get(path)).status_code == 403
        assert (await here.as_(None).get(path)).status_code == 401
        head = await owner.head(path)
        assert (head.status_code, head.content) == (200, b"")


async def test_no_event_carries_content(here: FullApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(face, "_MAX_STREAM_SECONDS", 0.05)
    owner = await here.owner()
    await put(owner, "a.md")
    answer = await owner.get(TENANT, headers={"Last-Event-ID": "0"})
    assert "a text that no event tells" not in answer.text
    lines = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    told: list[dict[str, Any]] = [json.loads(line.removeprefix("data: ")) for line in lines]
    files = [each for each in told if each["type"] == "workspace.updated"]
    assert [set(each["payload"]) for each in files] == [{"path", "version"}] * 12
    assert {frozenset(each["payload"]) for each in told if each not in files} == {
        frozenset({"noun", "id"})
    }
    assert told[-1]["payload"] == {"path": "a.md", "version": 1}
