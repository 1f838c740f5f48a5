"""A run on the wire of openwop: snapshots, resumed logs, long polls and cancelling."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator, FormatChecker
from tests.support.full_app import FILES, FullApp, open_full_app
from tests.support.sse_client import open_stream

pytestmark = pytest.mark.anyio
RUNS = "/v1/runs"
SCHEMA = json.loads((File(__file__).parent / "run-snapshot.schema.json").read_text())


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    return await server.owner()


async def start(client: httpx.AsyncClient, **body: Any) -> str:
    response = await client.post(RUNS, json=body or {"workflowId": "w"})
    assert response.status_code == 201, response.text
    return str(response.json()["runId"])


async def write(client: httpx.AsyncClient, run: str, path: str) -> None:
    response = await client.put(
        f"{FILES}/{path}", json={"content": "x"}, headers={"Carrel-Run": run}
    )
    assert response.status_code == 200, response.text


async def poll(client: httpx.AsyncClient, run: str, **query: Any) -> Any:
    response = await client.get(f"{RUNS}/{run}/events/poll", params=query)
    assert response.status_code == 200, response.text
    return response.json()


async def test_a_run_in_every_state_fits_the_schema_of_run_snapshots(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    agent = (await ada.post("/v1/agents", json={"slug": "a", "name": "A"})).json()["id"]
    running = await start(ada, agentId=agent)
    ids = [running, await start(ada, parentRunId=running), await start(ada, replayOf=running)]
    for status in ("completed", "failed", "cancelled"):
        ids.append(await start(ada))
        await ada.patch(f"{RUNS}/{ids[-1]}", json={"status": status})
    await ada.patch(f"{RUNS}/{ids[-1]}", json={"kept": False})
    listed = (await ada.get(RUNS)).json()["items"]
    assert {run["runId"] for run in listed} == set(ids)
    snapshots = [(await ada.get(f"{RUNS}/{id}")).json() for id in ids]
    for snapshot in (*snapshots, *listed):
        Draft202012Validator(SCHEMA, format_checker=FormatChecker()).validate(snapshot)
        assert ("completedAt" in snapshot) == (snapshot["status"] != "running")
    assert snapshots[0]["workflowId"] == "agent"
    events = [event for id in ids for event in (await poll(ada, id, timeout=0))["events"]]
    assert all(event["payload"]["workflowId"] for event in events)


@pytest.mark.parametrize("key", ["id", "sequence", "eventId"])
async def test_a_stream_of_a_run_resumes_by_its_id_a_sequence_or_an_event_id(
    ada: httpx.AsyncClient, key: str
) -> None:
    run = await start(ada)
    await write(ada, run, "a.md")
    await ada.post(f"{RUNS}/{run}/cancel")
    path = f"{RUNS}/{run}/events"
    async with open_stream(ada, path) as stream:
        events = await stream.rest()
    assert [event.payload["sequence"] for event in events] == [1, 2, 3]
    for index, event in enumerate(events):
        position = event.id if key == "id" else str(event.payload[key])
        async with open_stream(ada, path, position) as stream:
            assert await stream.rest() == events[index + 1 :]
        page = (await ada.get(path, params={"since": position})).json()
        assert [row["sequence"] for row in page["events"]] == [2, 3][index:]


async def test_a_run_does_not_resume_after_an_event_of_another_run_or_tenant(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    run, other = await start(ada), await start(ada)
    stranger = await server.owner("globex")
    foreign = await start(stranger)
    for client, id in ((ada, other), (stranger, foreign)):
        event_id = (await poll(client, id))["events"][0]["eventId"]
        refused = await ada.get(f"{RUNS}/{run}/events", params={"since": event_id})
        assert (refused.status_code, refused.json()["error"]) == (400, "validation_error")


async def test_a_poll_returns_the_events_after_a_sequence_and_says_where_to_continue(
    ada: httpx.AsyncClient,
) -> None:
    run = await start(ada)
    await write(ada, run, "a.md")
    first = await poll(ada, run, lastSequence=0, timeout=1)
    assert [event["sequence"] for event in first["events"]] == [1, 2]
    facts = {name: first[name] for name in ("runId", "lastSequence", "status", "isTerminal")}
    assert facts == {"runId": run, "lastSequence": 2, "status": "running", "isTerminal": False}
    for query in ({"afterSequence": 2}, {"lastSequence": 99}, {"since": first["next"]}):
        none = await poll(ada, run, timeout=0, **query)
        assert (none["events"], none["lastSequence"], none["isTerminal"]) == ([], 2, False)
    assert len((await poll(ada, run, afterSequence=-1))["events"]) == 2
    await ada.post(f"{RUNS}/{run}/cancel")
    last = await poll(ada, run, since=first["next"])
    assert [event["type"] for event in last["events"]] == ["run.cancelled"]
    assert (last["status"], last["isTerminal"], last["isComplete"]) == ("cancelled", True, True)
    assert (await poll(ada, run, lastSequence=3))["isTerminal"]


async def test_a_poll_waits_for_the_next_event(ada: httpx.AsyncClient) -> None:
    run = await start(ada)
    waiting = asyncio.create_task(poll(ada, run, lastSequence=1, timeout=30))
    await write(ada, run, "a.md")
    page = await waiting
    assert [event["type"] for event in page["events"]] == ["workspace.updated"]


async def test_a_poll_ends_without_events_after_its_timeout(ada: httpx.AsyncClient) -> None:
    run = await start(ada)
    page = await poll(ada, run, lastSequence=1, timeout=1)
    assert (page["events"], page["lastSequence"], page["status"]) == ([], 1, "running")


@pytest.mark.parametrize("query", ["timeout=-1", "timeout=x", "lastSequence=x", "since=ev_x"])
async def test_a_bad_poll_is_refused(ada: httpx.AsyncClient, query: str) -> None:
    run = await start(ada)
    assert (await ada.get(f"{RUNS}/{run}/events/poll?{query}")).status_code == 400


async def test_a_run_is_cancelled_once_and_an_ended_run_names_its_status(
    ada: httpx.AsyncClient,
) -> None:
    run = await start(ada)
    for _ in range(2):
        cancelled = await ada.post(f"{RUNS}/{run}/cancel", json={"reason": "no longer needed"})
        assert (cancelled.status_code, cancelled.json()) == (
            200,
            {"runId": run, "status": "cancelled"},
        )
    assert len((await poll(ada, run))["events"]) == 2
    for status in ("completed", "failed"):
        ended = await start(ada)
        await ada.patch(f"{RUNS}/{ended}", json={"status": status})
        refused = await ada.post(f"{RUNS}/{ended}/cancel")
        assert (refused.status_code, refused.json()["error"]) == (409, "conflict")
        assert refused.json()["details"]["status"] == status


@pytest.mark.parametrize(
    ("endpoint", "accept"),
    [
        ("events", "application/json"),
        ("events", "text/event-stream"),
        ("events/poll", "application/json"),
    ],
)
async def test_an_unknown_stream_mode_is_refused_with_the_supported_ones(
    ada: httpx.AsyncClient, endpoint: str, accept: str
) -> None:
    path = f"{RUNS}/{await start(ada, workflowId='conformance-noop')}/{endpoint}"
    for mode in ("bogus", "messages", "", "updates,bogus"):
        refused = await ada.get(path, params={"streamMode": mode}, headers={"Accept": accept})
        assert (refused.status_code, refused.json()["error"]) == (400, "unsupported_stream_mode")
        assert refused.json()["details"] == {"supported": ["updates", "debug"]}
    for mode in ("updates", "debug", "updates,debug"):
        assert (await ada.get(path, params={"streamMode": mode})).status_code == 200


async def test_the_noop_workflow_has_a_definition_and_no_other_has(
    ada: httpx.AsyncClient,
) -> None:
    definition = (await ada.get("/v1/workflows/conformance-noop")).json()
    assert {"id", "name", "version", "nodes", "edges", "triggers"} <= definition.keys()
    assert {"variables", "metadata", "settings"} <= definition.keys()
    assert definition["id"] == "conformance-noop"
    assert (await ada.get("/v1/workflows/other")).status_code == 404


async def test_discovery_declares_that_it_depends_on_the_credential(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    response = await ada.get("/.well-known/openwop")
    assert response.json()["discovery"] == {"authScoped": True}
    assert response.headers["cache-control"] == "private, max-age=300"
    public = await server.as_(None).get("/.well-known/openwop")
    assert public.headers["cache-control"] == "public, max-age=300"
