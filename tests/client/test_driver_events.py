"""Event streams by the client, over every driver."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.client.drivers import EVENT_SECONDS, next_event

import carrel

pytestmark = pytest.mark.anyio
UPDATED = "workspace.updated"


async def test_stream_has_the_events_of_its_own_workspace_only(api: Any) -> None:
    async with api.workspace("team").events() as team, api.events() as tenant:
        await api.workspace().put("a.md", "x")
        run = await api.workspace("team").start_run("nightly")
        await api.workspace("team").put("b.md", "x", run_id=run.id)
        event = await next_event(team)
        assert event.payload == {"path": "b.md", "version": 1}
        assert (event.workspace, event.run_id) == ({"kind": "workspace", "name": "team"}, run.id)
        types = [(await next_event(tenant)).type for _ in range(3)]
        assert types == [UPDATED, "run.started", UPDATED]


async def test_stream_of_an_agent_has_the_writes_of_its_layers(api: Any) -> None:
    await api.templates.create("calm")
    await api.templates.create("wild")
    await api.agents.create("ada", template_id="calm")
    async with api.agent("ada").events() as stream, api.template("calm").events() as template:
        await api.template("wild").put("w.md", "x")
        await api.template("calm").put("t.md", "x")
        await api.defaults.put("d.md", "x")
        await api.agent("ada").put("a.md", "x")
        paths = [(await next_event(stream)).payload["path"] for _ in range(3)]
        assert paths == ["t.md", "d.md", "a.md"]
        assert (await next_event(template)).payload["path"] == "t.md"


async def test_stream_continues_after_a_cursor(api: Any) -> None:
    workspace = api.workspace()
    await workspace.put("a.md", "x")
    await workspace.put("b.md", "x")
    async with workspace.events(since="0") as stream:
        first = await next_event(stream)
    async with api.events(types=[UPDATED], since=first.cursor) as stream:
        second = await next_event(stream)
    assert (first.payload["path"], second.payload["path"]) == ("a.md", "b.md")
    assert first.timestamp <= second.timestamp


async def test_a_run_is_polled_and_cancelled(api: Any) -> None:
    run = await api.workspace().start_run("nightly")
    first = await run.poll_events()
    assert [event["type"] for event in first.events] == ["run.started"]
    assert (await run.poll_events(since=first.last_sequence, timeout=0)).events == ()
    await run.cancel()
    assert (await run.cancel()).status == "cancelled"
    for position in (first.next, 1, first.events[0]["eventId"]):
        last = await run.poll_events(since=position)
        assert [event["type"] for event in last.events] == ["run.cancelled"]
        assert (last.is_complete, last.status) == (True, "cancelled")


async def test_stream_of_a_run_ends_with_the_run(api: Any) -> None:
    run = await api.workspace().start_run("nightly")
    await api.workspace().put("a.md", "x", run_id=run.id)
    await run.finish()

    async def read() -> list[str]:
        async with run.events() as stream:
            return [event.type async for event in stream]

    types = await asyncio.wait_for(read(), EVENT_SECONDS)
    assert types == ["run.started", UPDATED, "run.completed"]


async def test_invalid_cursor_is_refused(api: Any) -> None:
    with pytest.raises(carrel.ValidationError):
        await anext(api.workspace().events(since="yesterday"))
    with pytest.raises(carrel.ValidationError):
        await anext(api.events(types=["no.such.type"]))
