"""Event streams miss no event and repeat none, for any number of listeners."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from carrel.actions.events import streams
from carrel.actions.events.event_access import Batches
from carrel.actions.events.run_log import listen_to_run
from carrel.actions.events.streams import (
    EventRingBuffer,
    EventSubscriber,
    listen,
    shared_broadcaster,
)
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
from carrel.actions.public_cursors import FROM_START, conceal_cursor, conceal_event
from carrel.actions.runs import runs
from carrel.actions.runs.runs import RunRequest
from carrel.core.access import Actor
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, Scope
from carrel.core.runs import NOOP_WORKFLOW, Run, RunStatus
from carrel.core.store.event import EVENT_TYPES, WORKSPACE_UPDATED, Event, EventFilter
from carrel.ports import Ports

pytestmark = pytest.mark.anyio

ADA, STRANGER = Actor("acme", "ada"), Actor("globex", "gus")
OTHER_WORKSPACE = Actor("acme", "ada", workspace="attic")
ALL_EVENTS = EventFilter("acme")


async def write(ports: Ports, actor: Actor = ADA, path: str = "a.md", **options: Any) -> None:
    await files.put(ports, (actor.scope,), Path(path), b"x", actor, WriteOptions(**options))


async def receive(batches: Batches, count: int) -> list[Event]:
    """The next events up to a count, or all if the stream ends earlier."""
    events: list[Event] = []
    async with asyncio.timeout(30), aclosing(batches):
        async for batch in batches:
            events += batch
            if len(events) >= count:
                break
    return events


async def read_log(ports: Ports) -> list[Event]:
    """All events as the tenant sees them."""
    events = await ports.events.read_after(None, ALL_EVENTS, limit=100_000)
    return [conceal_event(ports, event) for event in events]


async def test_a_stream_starts_with_the_next_event(ports: Ports) -> None:
    await write(ports)
    start, batches = await listen(ports, ALL_EVENTS)
    await write(ports, path="b.md")
    await write(ports, path="c.md")
    received = await receive(batches, 2)
    assert [event.payload["path"] for event in received] == ["b.md", "c.md"]
    assert received == (await read_log(ports))[1:]
    assert received == list((await streams.read_page(ports, ALL_EVENTS, start))[0])


async def test_a_stream_continues_after_any_cursor(ports: Ports) -> None:
    for _ in range(5):
        await write(ports)
    _, batches = await listen(ports, ALL_EVENTS, "0")
    all_events = await receive(batches, 5)
    assert all_events == await read_log(ports)
    for position, event in enumerate(all_events[:-1], 1):
        _, batches = await listen(ports, ALL_EVENTS, event.cursor)
        assert await receive(batches, 5 - position) == all_events[position:]


async def test_a_listener_receives_only_matching_events(ports: Ports) -> None:
    filters = {
        "tenant": EventFilter("acme"),
        "scope": EventFilter("acme", scopes=frozenset({OTHER_WORKSPACE.scope})),
        "types": EventFilter("acme", types=frozenset({"run.started"})),
    }
    open_streams = {name: (await listen(ports, item))[1] for name, item in filters.items()}
    later = {name: asyncio.create_task(receive(item, 2)) for name, item in open_streams.items()}
    for _ in range(2):
        await write(ports, STRANGER)
        await write(ports, OTHER_WORKSPACE)
        await runs.start(ports, ADA, RunRequest("w"))
    received = {name: await task for name, task in later.items()}
    assert [event.type for event in received["tenant"]] == [WORKSPACE_UPDATED, "run.started"]
    assert {event.scope for event in received["scope"]} == {OTHER_WORKSPACE.scope}
    assert [event.type for event in received["types"]] == ["run.started"] * 2
    assert {event.tenant for events in received.values() for event in events} == {"acme"}


@pytest.mark.parametrize("cursor", ["x", "", "-1", "1", "1 ", "9" * 40, "1;2", "\x00"])
async def test_an_invalid_cursor_is_refused_before_streaming(ports: Ports, cursor: str) -> None:
    with pytest.raises(ValidationError):
        await listen(ports, ALL_EVENTS, cursor)
    with pytest.raises(ValidationError):
        await streams.read_page(ports, ALL_EVENTS, cursor)
    run = await runs.start(ports, ADA, RunRequest("w"))
    if cursor != "1":  # The sequence of the run's first event.
        with pytest.raises(ValidationError):
            await listen_to_run(ports, ADA, run, cursor)


@pytest.mark.parametrize("capacity", [4, 64, 4096])
async def test_no_event_is_missed_or_repeated_while_writers_and_listeners_come_and_go(
    ports: Ports, capacity: int
) -> None:
    """Several buffer sizes, so that listeners read from the table, the buffer, and both."""
    rng = random.Random(capacity)
    writers, per_writer, listeners = 4, 40, 12
    total = writers * per_writer

    async def author(number: int) -> None:
        for _ in range(per_writer):
            await write(ports, path=f"{number}.md")

    async def follower() -> list[Event]:
        received: list[Event] = []
        since = "0"
        while len(received) < total:
            _, batches = await listen(ports, ALL_EVENTS, since)
            received += await receive(batches, min(rng.randint(1, 60), total - len(received)))
            since = received[-1].cursor
        return received

    async with asyncio.timeout(60), shared_broadcaster(ports.events, capacity):
        following = [asyncio.create_task(follower()) for _ in range(listeners)]
        await asyncio.gather(*map(author, range(writers)))
        received_by_listener = await asyncio.gather(*following)
    expected = await read_log(ports)
    assert len(expected) == total
    for events in received_by_listener:
        assert [event.cursor for event in events] == [event.cursor for event in expected]


async def test_a_slow_listener_behind_the_buffer_reads_from_the_table(
    ports: Ports,
) -> None:
    async with shared_broadcaster(ports.events, 4) as broadcaster:
        slow = EventSubscriber(broadcaster, ALL_EVENTS, await ports.events.latest_cursor())
        received: list[Event] = []
        for burst in (1, 1, 50, 1):
            for _ in range(burst):
                await write(ports)
                await broadcaster.catch_up()
            expected = len(received) + burst
            while len(received) < expected:
                received += await slow.next()
        assert [conceal_event(ports, event) for event in received] == await read_log(ports)


class CountingEventLog:
    """An event log that counts the calls of its methods."""

    def __init__(self, events: Any) -> None:
        self._events = events
        self.calls: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            self.calls[name] += 1
            await asyncio.sleep(0)
            return await getattr(self._events, name)(*args, **options)

        return call


async def test_a_thousand_listeners_read_the_log_no_more_than_one(ports: Ports) -> None:
    counting = CountingEventLog(ports.events)
    counting_ports = replace(ports, events=counting)
    async with shared_broadcaster(counting) as broadcaster:
        start = await ports.events.latest_cursor()
        await write(ports)
        await broadcaster.catch_up()
        [event] = await ports.events.read_after(start, ALL_EVENTS)
        listeners = [EventSubscriber(broadcaster, ALL_EVENTS, event.cursor) for _ in range(1000)]
        waiting = [asyncio.create_task(listener.next()) for listener in listeners]
        await asyncio.sleep(0)
        counting.calls.clear()
        await write(counting_ports, path="news.md")
        async with asyncio.timeout(30):
            batches = await asyncio.gather(*waiting)
    assert {batch[0].payload["path"] for batch in batches} == {"news.md"}
    assert counting.calls["read_after"] < 10


async def test_concurrent_catch_ups_share_one_read(ports: Ports) -> None:
    counting = CountingEventLog(ports.events)
    async with shared_broadcaster(counting) as broadcaster:
        counting.calls.clear()
        await asyncio.gather(*(broadcaster.catch_up() for _ in range(1000)))
    assert counting.calls["read_after"] < 10


async def test_the_last_listener_stops_the_broadcaster(ports: Ports) -> None:
    before = asyncio.all_tasks()
    opened = [(await listen(ports, ALL_EVENTS))[1] for _ in range(3)]
    waiting = [asyncio.create_task(receive(batches, 1)) for batches in opened]
    await write(ports)
    await asyncio.gather(*waiting)
    assert asyncio.all_tasks() == before
    assert ports.events not in streams._BROADCASTERS
    listening = asyncio.Event()

    async def listen_once() -> None:
        async with shared_broadcaster(ports.events) as broadcaster:
            listening.set()
            await EventSubscriber(
                broadcaster, ALL_EVENTS, await ports.events.latest_cursor()
            ).next()

    task = asyncio.create_task(listen_once())
    await listening.wait()
    task.cancel()
    await asyncio.wait({task})
    assert asyncio.all_tasks() == before
    assert ports.events not in streams._BROADCASTERS


class FlakyEventLog:
    """An event log whose store is unavailable on demand."""

    def __init__(self, events: Any) -> None:
        self._events = events
        self.unavailable = False
        self.failed = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        if self.unavailable and name in {"read_after", "wait_for_new"}:
            self.failed.set()
            raise OSError("the store is unavailable")
        return getattr(self._events, name)


async def test_listeners_survive_an_outage_of_the_store(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_RETRY_SECONDS", 0.01)
    flaky = FlakyEventLog(ports.events)
    async with asyncio.timeout(30), shared_broadcaster(flaky) as broadcaster:
        listener = EventSubscriber(broadcaster, ALL_EVENTS, await ports.events.latest_cursor())
        await write(ports, path="before.md")
        assert [event.payload["path"] for event in await listener.next()] == ["before.md"]
        flaky.unavailable = True
        next_batch = asyncio.create_task(listener.next())
        await flaky.failed.wait()
        await write(ports, path="during.md")
        flaky.unavailable = False
        assert [event.payload["path"] for event in await next_batch] == ["during.md"]


async def test_a_ring_buffer_drops_its_oldest_events() -> None:
    ring = EventRingBuffer(3)
    scope = Scope("acme", ADA.scope.kind, "x")
    events = [Event(f"c{n}", f"ev_{n}", WORKSPACE_UPDATED, "acme", n, {}, scope) for n in range(5)]
    ring.add(events[:2])
    assert ring.read_from(0) == tuple(events[:2])
    assert (
        ring.has_position(0),
        ring.position_after("c1"),
        ring.position_after("c4"),
        ring.position_after(None),
    ) == (
        *(True, 2),
        *(None, None),
    )
    ring.add(events[2:])
    assert [ring.has_position(position) for position in range(6)] == [
        False,
        False,
        True,
        True,
        True,
        True,
    ]
    assert (ring.position_after("c1"), ring.position_after("c2"), ring.position_after("c4")) == (
        None,
        3,
        5,
    )
    assert ring.read_from(3) == tuple(events[3:])


async def event_types(ports: Ports, run: Run, since: str | None = None) -> list[str]:
    _, batches = await listen_to_run(ports, ADA, run, since)
    return [event.type for event in await receive(batches, 1000)]


async def test_a_run_stream_is_its_complete_log_and_ends_with_the_run(ports: Ports) -> None:
    run = await runs.start(ports, ADA, RunRequest("w"))
    await runs.start(ports, ADA, RunRequest("another"))
    following = asyncio.create_task(event_types(ports, run))
    await write(ports, run=run.id)
    await write(ports)
    await runs.update(ports, ADA, run.id, status=RunStatus.FAILED)
    assert await following == ["run.started", WORKSPACE_UPDATED, "run.failed"]
    ended = await runs.get(ports, ADA, run.id)
    assert await event_types(ports, ended) == ["run.started", WORKSPACE_UPDATED, "run.failed"]
    assert ports.events not in streams._BROADCASTERS


async def test_the_stream_of_an_ended_run_ends_from_any_cursor(ports: Ports) -> None:
    run = await runs.start(ports, ADA, RunRequest(NOOP_WORKFLOW))
    log = await ports.events.read_after(None, EventFilter("acme", run=run.id))
    started, completed = (conceal_event(ports, event) for event in log)
    assert await event_types(ports, run, started.cursor) == ["run.completed"]
    assert await event_types(ports, run, completed.cursor) == []
    await write(ports)
    latest = conceal_cursor(ports, "acme", await ports.events.latest_cursor())
    assert await event_types(ports, run, latest) == []


class PrunedEventLog:
    """An event log whose events have been pruned."""

    def __init__(self, events: Any) -> None:
        self._events = events

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)

    async def read_after(self, *args: Any, **options: Any) -> tuple[Event, ...]:
        return ()


async def test_the_stream_of_a_run_without_events_ends(ports: Ports) -> None:
    run = await runs.start(ports, ADA, RunRequest(NOOP_WORKFLOW))
    released = await runs.update(ports, ADA, run.id, keep_snapshot=False)
    assert await event_types(replace(ports, events=PrunedEventLog(ports.events)), released) == []


async def test_a_page_returns_the_cursor_of_the_next(ports: Ports) -> None:
    for _ in range(5):
        await write(ports)
    all_events = await read_log(ports)
    first, cursor = await streams.read_page(ports, ALL_EVENTS, limit=3)
    rest, last = await streams.read_page(ports, ALL_EVENTS, cursor, limit=3)
    assert [*first, *rest] == all_events
    assert await streams.read_page(ports, ALL_EVENTS, last) == ((), last)
    assert {event.type for event in all_events} <= {*EVENT_TYPES}


async def test_cursors_and_ids_tell_a_tenant_nothing_about_others(ports: Ports) -> None:
    await write(ports)
    start, _ = await listen(ports, ALL_EVENTS)
    other = EventFilter("other")
    with pytest.raises(ValidationError):
        await listen(ports, other, start)
    other_start, _ = await listen(ports, other)
    for _ in range(12):
        await write(ports)
    later, _ = await listen(ports, other)

    events = await read_log(ports)
    names = {name for event in events for name in (event.cursor, event.id)}
    assert len(names) == 2 * len(events)
    assert len({len(event.cursor) for event in events}) == 1
    assert not any(name.removeprefix("ev_").isdigit() for name in {*names, start})
    assert other_start == later == FROM_START
