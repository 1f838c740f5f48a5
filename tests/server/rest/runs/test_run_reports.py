"""Heartbeats, reasons and tool calls of a run over REST, and the log of an abandoned one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, open_full_app
from tests.support.sse_client import open_stream
from tests.support.stores import advance_clock

from carrel.actions.run_reports import abandon_silent_runs

pytestmark = pytest.mark.anyio
RUNS = "/v1/runs"
HOURS = 3_600_000


@pytest.fixture
async def server(tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_full_app(tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    client = await server.owner()
    assert (await client.post("/v1/agents", json={"slug": "kate", "name": "Kate"})).is_success
    return client


async def start(client: httpx.AsyncClient) -> str:
    answer = await client.post(RUNS, json={"agentId": "kate", "sessionId": "chat"})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["runId"])


async def get(client: httpx.AsyncClient, path: str) -> Any:
    answer = await client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_a_heartbeat_answers_the_status_and_the_end_of_the_lease(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    run = await start(ada)
    first = (await ada.post(f"{RUNS}/{run}/heartbeat", json={})).json()
    assert (first["runId"], first["status"]) == (run, "running")
    advance_clock(server.ports, 60_000)
    later = (await ada.post(f"{RUNS}/{run}/heartbeat")).json()
    assert later["leaseEndsAt"] > first["leaseEndsAt"]

    await ada.post(f"{RUNS}/{run}/cancel", json={})
    ended = await ada.post(f"{RUNS}/{run}/heartbeat", json={"anything": 1})
    assert ended.json() == {"runId": run, "status": "cancelled", "leaseEndsAt": None}
    assert (await ada.post(f"{RUNS}/run_none/heartbeat", json={})).status_code == 404


async def test_an_abandoned_run_ends_its_stream_and_can_still_end(
    server: FullApp, ada: httpx.AsyncClient
) -> None:
    run = await start(ada)
    advance_clock(server.ports, 2 * HOURS)
    assert await abandon_silent_runs(server.ports) == 1

    lost = await get(ada, f"{RUNS}/{run}")
    assert lost["status"] == "abandoned"
    assert lost["abandonedAt"] == lost["endedAt"] is not None
    async with open_stream(ada, f"{RUNS}/{run}/events") as stream:
        events = await stream.rest()
    assert [event.payload["type"] for event in events] == ["run.started", "run.abandoned"]

    ended = await ada.patch(f"{RUNS}/{run}", json={"status": "completed"})
    assert ended.json()["status"] == "completed"
    assert ended.json()["abandonedAt"] == lost["abandonedAt"]
    page = await get(ada, f"{RUNS}/{run}/events")
    assert [event["type"] for event in page["events"]][-1] == "run.completed"


async def test_entries_and_tool_calls_are_reports(server: FullApp, ada: httpx.AsyncClient) -> None:
    run = await start(ada)
    advance_clock(server.ports, HOURS - 60_000)
    entry = {"role": "user", "content": "hello"}
    answer = await ada.post("/v1/agents/kate/sessions/chat/entries", json=entry)
    assert answer.is_success, answer.text
    advance_clock(server.ports, HOURS - 60_000)
    assert await abandon_silent_runs(server.ports) == 0
    call = {"arguments": {}, "runId": run}
    assert (await ada.post("/v1/agents/kate/tools/who_am_i", json=call)).is_success
    advance_clock(server.ports, HOURS - 60_000)
    assert await abandon_silent_runs(server.ports) == 0
    advance_clock(server.ports, 61_000)
    assert await abandon_silent_runs(server.ports) == 1


async def test_tool_calls_of_a_run_are_in_its_log_without_their_arguments(
    ada: httpx.AsyncClient,
) -> None:
    run = await start(ada)
    call = {"arguments": {"content": "Ada likes tea"}, "runId": run, "callId": "call-1"}
    for _ in range(2):
        assert (await ada.post("/v1/agents/kate/tools/remember", json=call)).is_success
    wrong = {"arguments": {"no_such": 1}, "runId": run}
    assert (await ada.post("/v1/agents/kate/tools/recall", json=wrong)).json()["isError"]
    await ada.post("/v1/agents/kate/tools/who_am_i", json={"arguments": {}})

    page = await get(ada, f"{RUNS}/{run}/events")
    calls = [event for event in page["events"] if event["type"] == "tool.called"]
    assert [event["payload"]["tool"] for event in calls] == ["remember", "recall"]
    assert [event["payload"]["isError"] for event in calls] == [False, True]
    assert set(calls[0]["payload"]) == {"runId", "agentId", "tool", "isError", "durationMs"}
    assert "tea" not in str(page)


async def test_a_reason_is_stored_redacted_and_shown_in_lists(ada: httpx.AsyncClient) -> None:
    secret = {"value": "opensesame-12345"}
    assert (await ada.put("/v1/secrets/door", json=secret)).is_success
    run = await start(ada)
    body = {"status": "failed", "reason": "the key opensesame-12345 was refused"}
    failed = await ada.patch(f"{RUNS}/{run}", json=body)
    assert failed.json()["reason"] == "the key [REDACTED:door] was refused"
    [listed] = (await get(ada, RUNS))["items"]
    assert (listed["status"], listed["reason"]) == ("failed", failed.json()["reason"])
    provenance = await get(ada, f"{RUNS}/{run}/provenance")
    assert provenance["run"]["reason"] == failed.json()["reason"]


@pytest.mark.parametrize(
    "body", [{"status": "abandoned"}, {"reason": "why"}, {"status": "failed", "reason": "x" * 4001}]
)
async def test_bad_ends_are_refused(ada: httpx.AsyncClient, body: dict[str, Any]) -> None:
    run = await start(ada)
    assert (await ada.patch(f"{RUNS}/{run}", json=body)).status_code == 400
