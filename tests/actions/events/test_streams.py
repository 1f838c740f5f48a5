"""Who follows the log misses nothing and hears nothing twice, however many listen."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from carrel.actions.events import streams
from carrel.actions.events.streams import (
    Batches,
    EventRingBuffer,
    EventSubscriber,
    listen,
    listen_to_run,
    shared_broadcaster,
)
from carrel.actions.files import files
from carrel.actions.files.files import WriteOptions
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
ATTIC = Actor("acme", "ada", workspace="attic")
EVERYTHING = EventFilter("acme")


async def write(ports: Ports, actor: Actor = ADA, path: str = "a.md", **more: Any) -> None:
    await files.put(ports, (actor.scope,), Path(path), b"x", actor, WriteOptions(**more))


async def heard(batches: Batches, count: int) -> list[Event]:
    """The next so many events, or all where the stream ends before."""
    found: list[Event] = []
    async with asyncio.timeout(30), aclosing(batches):
        async for batch in batches:
            found += batch
            if len(found) >= count:
                break
    return found


async def logged(ports: Ports, cursor: str | None = None) -> list[Event]:
    return list(await ports.events.read_after(cursor, EVERYTHING, limit=100_000))


async def test_a_stream_begins_with_what_happens_next(ports: Ports) -> None:
    await write(ports)
    start, batches = await listen(ports, EVERYTHING)
    await write(ports, path="b.md")
    await write(ports, path="c.md")
    found = await heard(batches, 2)
    assert [event.payload["path"] for event in found] == ["b.md", "c.md"]
    assert found == await logged(ports, start)


async def test_a_stream_goes_on_where_another_left_off(ports: Ports) -> None:
    for _ in range(5):
        await write(ports)
    _, batches = await listen(ports, EVERYTHING, "0")
    everything = await heard(batches, 5)
    assert everything == await logged(ports)
    for place, event in enumerate(everything[:-1], 1):
        _, batches = await listen(ports, EVERYTHING, event.cursor)
        assert await heard(batches, 5 - place) == everything[place:]


async def test_a_listener_hears_only_what_it_asked_for(ports: Ports) -> None:
    wanted = {
        "tenant": EventFilter("acme"),
        "scope": EventFilter("acme", scopes=frozenset({ATTIC.scope})),
        "types": EventFilter("acme", types=frozenset({"run.started"})),
    }
    streams_of = {name: (await listen(ports, one))[1] for name, one in wanted.items()}
    later = {name: asyncio.create_task(heard(one, 2)) for name, one in streams_of.items()}
    for _ in range(2):
        await write(ports, STRANGER)
        await write(ports, ATTIC)
        await runs.start(ports, ADA, RunRequest("w"))
    found = {name: await task for name, task in later.items()}
    assert [event.type for event in found["tenant"]] == [WORKSPACE_UPDATED, "run.started"]
    assert {event.scope for event in found["scope"]} == {ATTIC.scope}
    assert [event.type for event in found["types"]] == ["run.started"] * 2
    assert {event.tenant for events in found.values() for event in events} == {"acme"}


@pytest.mark.parametrize("nonsense", ["x", "", "-1", "1 ", "9" * 40, "1;2", "\x00"])
async def test_what_is_no_cursor_is_refused_before_anything_is_streamed(
    ports: Ports, nonsense: str
) -> None:
    run = await runs.start(ports, ADA, RunRequest("w"))
    for asked in (listen(ports, EVERYTHING, nonsense), listen_to_run(ports, ADA, run, nonsense)):
        with pytest.raises(ValidationError):
            await asked
    with pytest.raises(ValidationError):
        await streams.read_page(ports, EVERYTHING, nonsense)


@pytest.mark.parametrize("room", [4, 64, 4096])
async def test_none_is_missed_or_doubled_while_many_write_and_listeners_come_and_go(
    ports: Ports, room: int
) -> None:
    """Rings of several sizes, so that listeners read from the table, the ring, and both."""
    chance = random.Random(room)
    writers, each, listeners = 4, 40, 12
    total = writers * each

    async def author(number: int) -> None:
        for _ in range(each):
            await write(ports, path=f"{number}.md")

    async def follower() -> list[Event]:
        found: list[Event] = []
        since = "0"
        while len(found) < total:
            _, batches = await listen(ports, EVERYTHING, since)
            found += await heard(batches, min(chance.randint(1, 60), total - len(found)))
            since = found[-1].cursor
        return found

    async with asyncio.timeout(60), shared_broadcaster(ports.events, room):
        following = [asyncio.create_task(follower()) for _ in range(listeners)]
        await asyncio.gather(*map(author, range(writers)))
        stories = await asyncio.gather(*following)
    truth = await logged(ports)
    assert len(truth) == total
    for story in stories:
        assert [event.cursor for event in story] == [event.cursor for event in truth]


async def test_a_slow_listener_that_falls_behind_the_ring_goes_back_to_the_table(
    ports: Ports,
) -> None:
    async with shared_broadcaster(ports.events, 4) as broadcaster:
        slow = EventSubscriber(broadcaster, EVERYTHING, await ports.events.latest_cursor())
        found: list[Event] = []
        for burst in (1, 1, 50, 1):
            for _ in range(burst):
                await write(ports)
                await broadcaster.catch_up()
            expected = len(found) + burst
            while len(found) < expected:
                found += await slow.next()
        assert found == await logged(ports)


class Counting:
    """A log that counts how often it is asked."""

    def __init__(self, events: Any) -> None:
        self._events = events
        self.asked: Counter[str] = Counter()

    def __getattr__(self, name: str) -> Any:
        async def asked(*args: Any, **more: Any) -> Any:
            self.asked[name] += 1
            await asyncio.sleep(0)
            return await getattr(self._events, name)(*args, **more)

        return asked


async def test_a_thousand_listeners_cost_the_log_no_more_than_one(ports: Ports) -> None:
    counting = Counting(ports.events)
    crowded = replace(ports, events=counting)
    async with shared_broadcaster(counting) as broadcaster:
        start = await ports.events.latest_cursor()
        await write(ports)
        await broadcaster.catch_up()
        [event] = await logged(ports, start)
        crowd = [EventSubscriber(broadcaster, EVERYTHING, event.cursor) for _ in range(1000)]
        waiting = [asyncio.create_task(listener.next()) for listener in crowd]
        await asyncio.sleep(0)
        counting.asked.clear()
        await write(crowded, path="news.md")
        async with asyncio.timeout(30):
            batches = await asyncio.gather(*waiting)
    assert {batch[0].payload["path"] for batch in batches} == {"news.md"}
    assert counting.asked["read_after"] < 10


async def test_those_who_arrive_together_share_one_reading(ports: Ports) -> None:
    counting = Counting(ports.events)
    async with shared_broadcaster(counting) as broadcaster:
        counting.asked.clear()
        await asyncio.gather(*(broadcaster.catch_up() for _ in range(1000)))
    assert counting.asked["read_after"] < 10


async def test_the_last_listener_switches_off_the_light(ports: Ports) -> None:
    before = asyncio.all_tasks()
    opened = [(await listen(ports, EVERYTHING))[1] for _ in range(3)]
    waiting = [asyncio.create_task(heard(batches, 1)) for batches in opened]
    await write(ports)
    await asyncio.gather(*waiting)
    assert asyncio.all_tasks() == before
    assert ports.events not in streams._BROADCASTERS
    listening = asyncio.Event()

    async def one() -> None:
        async with shared_broadcaster(ports.events) as broadcaster:
            listening.set()
            await EventSubscriber(
                broadcaster, EVERYTHING, await ports.events.latest_cursor()
            ).next()

    task = asyncio.create_task(one())
    await listening.wait()
    task.cancel()
    await asyncio.wait({task})
    assert asyncio.all_tasks() == before
    assert ports.events not in streams._BROADCASTERS


class Flaky:
    """A log whose store is away for a while."""

    def __init__(self, events: Any) -> None:
        self._events = events
        self.away = False
        self.failed = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        if self.away and name in {"read_after", "wait_for_new"}:
            self.failed.set()
            raise OSError("the store is away")
        return getattr(self._events, name)


async def test_listeners_outlive_an_outage_of_the_store(
    ports: Ports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_RETRY_SECONDS", 0.01)
    flaky = Flaky(ports.events)
    async with asyncio.timeout(30), shared_broadcaster(flaky) as broadcaster:
        listener = EventSubscriber(broadcaster, EVERYTHING, await ports.events.latest_cursor())
        await write(ports, path="before.md")
        assert [event.payload["path"] for event in await listener.next()] == ["before.md"]
        flaky.away = True
        next_one = asyncio.create_task(listener.next())
        await flaky.failed.wait()
        await write(ports, path="during.md")
        flaky.away = False
        assert [event.payload["path"] for event in await next_one] == ["during.md"]


async def test_a_ring_knows_what_it_holds_and_forgets_the_oldest() -> None:
    ring = EventRingBuffer(3)
    scope = Scope("acme", ADA.scope.kind, "x")
    told = [Event(f"c{n}", f"ev_{n}", WORKSPACE_UPDATED, "acme", n, {}, scope) for n in range(5)]
    ring.add(told[:2])
    assert ring.read_from(0) == tuple(told[:2])
    assert (
        ring.has_position(0),
        ring.position_after("c1"),
        ring.position_after("c4"),
        ring.position_after(None),
    ) == (
        *(True, 2),
        *(None, None),
    )
    ring.add(told[2:])
    assert [ring.has_position(place) for place in range(6)] == [
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
    assert ring.read_from(3) == tuple(told[3:])


async def kinds(ports: Ports, run: Run, since: str | None = None) -> list[str]:
    _, batches = await listen_to_run(ports, ADA, run, since)
    return [event.type for event in await heard(batches, 1000)]


async def test_the_stream_of_a_run_is_its_whole_log_and_ends_with_it(ports: Ports) -> None:
    run = await runs.start(ports, ADA, RunRequest("w"))
    await runs.start(ports, ADA, RunRequest("another"))
    following = asyncio.create_task(kinds(ports, run))
    await write(ports, run=run.id)
    await write(ports)
    await runs.update(ports, ADA, run.id, status=RunStatus.FAILED)
    assert await following == ["run.started", WORKSPACE_UPDATED, "run.failed"]
    ended = await runs.get(ports, ADA, run.id)
    assert await kinds(ports, ended) == ["run.started", WORKSPACE_UPDATED, "run.failed"]
    assert ports.events not in streams._BROADCASTERS


async def test_the_stream_of_an_ended_run_ends_wherever_it_is_taken_up(ports: Ports) -> None:
    run = await runs.start(ports, ADA, RunRequest(NOOP_WORKFLOW))
    started, completed = await ports.events.read_after(None, EventFilter("acme", run=run.id))
    assert await kinds(ports, run, started.cursor) == ["run.completed"]
    assert await kinds(ports, run, completed.cursor) == []
    await write(ports)
    assert await kinds(ports, run, await ports.events.latest_cursor()) == []


class Forgetful:
    """A log that has outlived its events."""

    def __init__(self, events: Any) -> None:
        self._events = events

    def __getattr__(self, name: str) -> Any:
        return getattr(self._events, name)

    async def read_after(self, *args: Any, **more: Any) -> tuple[Event, ...]:
        return ()


async def test_the_stream_of_a_run_that_is_forgotten_ends_too(ports: Ports) -> None:
    run = await runs.start(ports, ADA, RunRequest(NOOP_WORKFLOW))
    gone = await runs.update(ports, ADA, run.id, keep_snapshot=False)
    assert await kinds(replace(ports, events=Forgetful(ports.events)), gone) == []


async def test_a_page_says_where_to_go_on(ports: Ports) -> None:
    for _ in range(5):
        await write(ports)
    everything = await logged(ports)
    first, cursor = await streams.read_page(ports, EVERYTHING, limit=3)
    rest, last = await streams.read_page(ports, EVERYTHING, cursor, limit=3)
    assert [*first, *rest] == everything
    assert await streams.read_page(ports, EVERYTHING, last) == ((), last)
    assert {event.type for event in everything} <= {*EVENT_TYPES}
