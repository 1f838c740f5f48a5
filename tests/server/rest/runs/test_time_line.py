"""The time line of a run: order, pages and what callers may see."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from tests.support.full_app import FullApp, create_rest_app
from tests.support.server_stores import open_app_over
from tests.support.stores import advance_clock

from carrel.adapters.system_clock import SystemClock

pytestmark = pytest.mark.anyio


class SteppingClock(SystemClock):
    """A clock that steps by the same time with every question, an hour from now."""

    def __init__(self, now: int, step: int) -> None:
        super().__init__()
        self._now, self._step = now + 3_600_000, step

    def now(self) -> int:
        self._now += self._step
        return self._now


@pytest.fixture(params=["sqlite", "postgres"])
async def server(request: pytest.FixtureRequest, tmp_path: File) -> AsyncIterator[FullApp]:
    async with open_app_over(request, tmp_path) as opened:
        yield opened


@pytest.fixture
async def ada(server: FullApp) -> httpx.AsyncClient:
    client = await server.owner()
    assert (await client.post("/v1/agents", json={"slug": "kate", "name": "Kate"})).is_success
    return client


async def read_all(client: httpx.AsyncClient, run: str, limit: int) -> list[Any]:
    items: list[Any] = []
    cursor = ""
    while cursor is not None:
        query: dict[str, Any] = {"limit": limit, **({"cursor": cursor} if cursor else {})}
        answer = await client.get(f"/v1/runs/{run}/timeline", params=query)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["items"]) <= limit
        items += answer.json()["items"]
        cursor = answer.json()["next"]
    return items


def describe(item: Any) -> str:
    if item["entry"]:
        return f"{item['entry']['sessionId']} {item['entry']['preview']}"
    payload = item["event"]["payload"]
    return f"{item['event']['type']} {payload.get('path') or payload.get('tool') or ''}".strip()


async def run_with_two_sessions(server: FullApp, ada: httpx.AsyncClient) -> str:
    start = {"agentId": "kate", "sessionId": "chat"}
    run = str((await ada.post("/v1/runs", json=start)).json()["runId"])
    await ada.post("/v1/agents/kate/sessions", json={"id": "other"})

    async def say(session: str, role: str, content: str) -> None:
        advance_clock(server.ports, 1000)
        entry = {"role": role, "content": content, "runId": run}
        answer = await ada.post(f"/v1/agents/kate/sessions/{session}/entries", json=entry)
        assert answer.is_success, answer.text

    await say("chat", "user", "May I?")
    advance_clock(server.ports, 1000)
    call = {"arguments": {}, "runId": run}
    assert (await ada.post("/v1/agents/kate/tools/who_am_i", json=call)).is_success
    await say("other", "user", "And me?")
    advance_clock(server.ports, 1000)
    note = {"content": "asked", "acceptTemplateUpdate": True}
    headers = {"Carrel-Run": run}
    answer = await ada.put("/v1/agents/kate/files/notes/a.md", json=note, headers=headers)
    assert answer.is_success, answer.text
    await say("chat", "assistant", "No.")
    advance_clock(server.ports, 1000)
    await ada.patch(f"/v1/runs/{run}", json={"status": "completed"})
    return run


@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_events_and_entries_of_all_sessions_are_in_order_of_time(
    server: FullApp, ada: httpx.AsyncClient, limit: int
) -> None:
    run = await run_with_two_sessions(server, ada)
    items = await read_all(ada, run, limit)
    assert [describe(item) for item in items] == [
        "run.started",
        "chat May I?",
        "tool.called who_am_i",
        "other And me?",
        "workspace.updated notes/a.md",
        "chat No.",
        "run.completed",
    ]
    times = [item["at"] for item in items]
    assert times == sorted(times)


@pytest.mark.parametrize("step", [0, -1, -5000, 1])
@pytest.mark.parametrize("limit", [1, 100])
async def test_entries_that_end_a_run_are_before_its_end_whatever_the_clock_says(
    server: FullApp, ada: httpx.AsyncClient, limit: int, step: int
) -> None:
    start = {"agentId": "kate", "sessionId": "chat"}
    run = str((await ada.post("/v1/runs", json=start)).json()["runId"])
    entries = [{"role": "user", "content": "Really?"}, {"role": "assistant", "content": "Yes."}]
    stepping = replace(server.ports, clock=SteppingClock(server.ports.clock.now(), step))
    token = ada.headers["Authorization"].removeprefix("Bearer ")
    async with FullApp(stepping, create_rest_app(stepping)).as_(token) as client:
        ending = {"status": "completed", "entries": entries}
        answer = await client.patch(f"/v1/runs/{run}", json=ending)
        assert answer.status_code == 200, answer.text
    items = await read_all(ada, run, limit)
    assert [describe(item) for item in items] == [
        "run.started",
        "chat Really?",
        "chat Yes.",
        "run.completed",
    ]


async def test_large_entries_end_a_page_and_none_is_skipped(
    server: FullApp, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = await run_with_two_sessions(server, ada)
    monkeypatch.setattr("carrel.core.sessions.session.MAX_READ_BYTES", 1)
    monkeypatch.setattr("carrel.adapters.postgres.sessions.MAX_READ_BYTES", 1)
    items = await read_all(ada, run, 100)
    assert len(items) == 7
    assert [item["at"] for item in items] == sorted(item["at"] for item in items)


@pytest.mark.parametrize("cursor", ["x", "W10", "WzEsMl0", "bm90IGpzb24"])
async def test_other_cursors_are_refused(
    server: FullApp, ada: httpx.AsyncClient, cursor: str
) -> None:
    run = await run_with_two_sessions(server, ada)
    answer = await ada.get(f"/v1/runs/{run}/timeline", params={"cursor": cursor})
    assert answer.status_code in {200, 400}
    assert cursor == "W10" or answer.status_code == 400
