"""Contract of EventLog: every event once, in an order that never changes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.commits import (
    ACME,
    AGENT,
    FOREIGN_AGENT,
    GLOBEX,
    NOW,
    RULES,
    SOUL,
    TEMPLATE,
    commit,
    list_events,
    new_run,
    put_text,
    start_run,
    try_write,
    write,
)
from tests.support.contract_stores import Ports

from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.runs import RunStatus
from carrel.core.store.commit import Expect, Write
from carrel.core.store.entry import Entry
from carrel.core.store.event import RUN_STARTED, WORKSPACE_UPDATED, Event, EventFilter

pytestmark = pytest.mark.anyio


async def read_pages(
    ports: Ports, cursor: str | None = None, event_filter: EventFilter | None = None, limit: int = 7
) -> list[Event]:
    """All events after a cursor, read page by page."""
    read: list[Event] = []
    while page := await ports.events.read_after(cursor, event_filter, limit=limit):
        assert len(page) <= limit
        read.extend(page)
        cursor = page[-1].cursor
    return read


async def drain_wakeups(ports: Ports) -> None:
    """Wait until no wake-up is pending; a store may wake a waiter more than once."""
    async with asyncio.timeout(30):
        while await ports.events.wait_for_new(0.3):
            pass


async def test_an_empty_log_has_a_latest_cursor_and_no_events(ports: Ports) -> None:
    assert await ports.events.read_after(None) == ()
    assert await ports.events.read_after(await ports.events.latest_cursor()) == ()


async def test_every_write_emits_an_event_without_content(ports: Ports) -> None:
    await put_text(ports, "kind", at=NOW)
    await put_text(ports, None, at=NOW + 1)

    put, deleted = await ports.events.read_after(None)

    assert put == Event(
        *(put.cursor, put.id, WORKSPACE_UPDATED, ACME, NOW),
        {"path": "SOUL.md", "version": 1},
        AGENT,
    )
    assert deleted.payload == {"path": "SOUL.md", "version": 2}
    assert deleted.at == NOW + 1
    assert put.id != deleted.id


async def test_a_commit_emits_an_event_for_each_write_in_order(ports: Ports) -> None:
    names = ["c.md", "a.md", "b.md"]
    writes = [await write(ports, "text", path=Path(name)) for name in names]
    shared = await write(ports, "text", TEMPLATE)

    await ports.trees.commit([commit(*writes, shared)])

    events = await ports.events.read_after(None)
    assert [event.payload["path"] for event in events] == [*names, "SOUL.md"]
    assert [event.scope for event in events] == [AGENT, AGENT, AGENT, TEMPLATE]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("run", [None, "run-1"])
async def test_a_commit_of_many_files_emits_an_event_for_each_in_order(
    ports: Ports, run: str | None, together: bool
) -> None:
    await start_run(ports, "run-1", AGENT)
    begun = await ports.events.latest_cursor()
    names = [f'{"ü" * (n % 3)}"{n}".md' for n in range(20)]
    writes = [await write(ports, "text", path=Path(name)) for name in names]
    foreign = await write(ports, "text", FOREIGN_AGENT)

    commits = [commit(*writes, run=run, at=NOW), commit(foreign)]
    for batch in [commits] if together else [[separate] for separate in commits]:
        await ports.trees.commit(batch)

    events = await ports.events.read_after(begun)
    assert [event.payload for event in events[:20]] == [
        {"path": name, "version": 1} for name in names
    ]
    assert {(event.type, event.tenant, event.scope, event.at) for event in events[:20]} == {
        (WORKSPACE_UPDATED, ACME, AGENT, NOW)
    }
    assert [(event.tenant, event.scope) for event in events[20:]] == [(GLOBEX, FOREIGN_AGENT)]
    logged = [event for event in await list_events(ports, run="run-1") if event.payload.get("path")]
    assert [event.payload["path"] for event in logged] == (names if run else [])


async def test_a_refused_commit_emits_no_event(ports: Ports) -> None:
    await try_write(ports, "kind", expects=(Expect(AGENT, SOUL, 3),))

    assert await ports.events.read_after(None) == ()


async def test_the_log_can_be_read_after_any_cursor(ports: Ports) -> None:
    for n in range(10):
        await put_text(ports, f"text {n}")

    events = await ports.events.read_after(None)

    assert [event.payload["version"] for event in events] == list(range(1, 11))
    for position, event in enumerate(events, 1):
        assert await ports.events.read_after(event.cursor) == events[position:]
    assert await ports.events.read_after(None, limit=4) == events[:4]
    assert tuple(await read_pages(ports, limit=3)) == events


async def test_the_latest_cursor_is_between_existing_and_later_events(
    ports: Ports,
) -> None:
    await put_text(ports, "before")
    end = await ports.events.latest_cursor()
    assert await ports.events.read_after(end) == ()

    await put_text(ports, "after")

    assert [event.payload["version"] for event in await ports.events.read_after(end)] == [2]


async def test_an_invalid_cursor_is_refused(ports: Ports) -> None:
    await put_text(ports, "text")

    for text in ("", "x", "-1", "1 ", " 1", "1.2.3", "٣", "1e3", "0x1", "None", "9" * 400, "1\n"):
        for event_filter in (None, EventFilter(ACME)):
            with pytest.raises(ValidationError):
                await ports.events.read_after(text, event_filter)


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["started", "one", "two", "shared", "ended"]),
    ({"tenant": GLOBEX}, ["foreign"]),
    ({"tenant": "no-tenant"}, []),
    ({"scopes": frozenset({AGENT})}, ["started", "one", "two", "ended"]),
    ({"scopes": frozenset({AGENT, TEMPLATE})}, ["started", "one", "two", "shared", "ended"]),
    ({"scopes": frozenset({Scope(ACME, ScopeKind.AGENT, "no-agent")})}, []),
    ({"scopes": frozenset({FOREIGN_AGENT})}, []),
    ({"run": "run_1"}, ["started", "two", "ended"]),
    ({"run": "run_2"}, []),
    ({"tenant": GLOBEX, "run": "run_1"}, []),
    ({"types": frozenset({WORKSPACE_UPDATED})}, ["one", "two", "shared"]),
    ({"types": frozenset({RUN_STARTED, "run.completed"})}, ["started", "ended"]),
    ({"types": frozenset({"unknown.type"})}, []),
    ({"types": frozenset({WORKSPACE_UPDATED}), "run": "run_1"}, ["two"]),
    ({"types": frozenset({WORKSPACE_UPDATED}), "scopes": frozenset({TEMPLATE})}, ["shared"]),
    (
        {"run": "run_1", "types": frozenset({WORKSPACE_UPDATED}), "scopes": frozenset({TEMPLATE})},
        [],
    ),
]


async def test_a_filter_returns_exactly_the_matching_events(ports: Ports) -> None:
    started = await start_run(ports, "run_1")
    await put_text(ports, "one")
    await put_text(ports, "two", run="run_1")
    await put_text(ports, "foreign", FOREIGN_AGENT)
    await put_text(ports, "shared", TEMPLATE)
    await ports.runs.update(replace(started, status=RunStatus.COMPLETED, ended_at=NOW), started)
    events = await ports.events.read_after(None)
    labels = ["started", "one", "two", "foreign", "shared", "ended"]
    names = {event.cursor: name for event, name in zip(events, labels, strict=True)}

    for fields, expected in FILTERS:
        event_filter = EventFilter(**{"tenant": ACME, **fields})
        assert [names[event.cursor] for event in await list_events(ports, **fields)] == expected
        assert [
            names[event.cursor] for event in await read_pages(ports, None, event_filter, 1)
        ] == expected
        assert [names[event.cursor] for event in events if event_filter.matches(event)] == expected


async def test_each_run_numbers_its_own_events_without_gaps(ports: Ports) -> None:
    await ports.runs.start([(new_run("run_1"), [AGENT]), (new_run("run_2"), [AGENT])])

    async def writer(name: str, path: Path) -> None:
        for n in range(10):
            both = [await write(ports, f"{n}", scope, path) for scope in (AGENT, TEMPLATE)]
            await ports.trees.commit([commit(*both, run=name)])

    await asyncio.gather(
        *[writer(f"run_{1 + n % 2}", Path(f"{n}.md")) for n in range(4)],
        *[put_text(ports, f"outside a run {n}") for n in range(10)],
    )

    for name in ("run_1", "run_2"):
        events = await list_events(ports, run=name)
        assert [event.sequence for event in events] == list(range(1, 42))


async def test_a_write_for_a_missing_run_has_no_sequence_number(
    ports: Ports,
) -> None:
    await ports.runs.start([(new_run("run_1", FOREIGN_AGENT), [FOREIGN_AGENT])])

    await put_text(ports, "text", run="run_1")
    await put_text(ports, "text", path=RULES, run="run_9")

    assert [(event.run, event.sequence) for event in await list_events(ports)] == [
        ("run_1", None),
        ("run_9", None),
    ]
    theirs = await list_events(ports, tenant=GLOBEX)
    assert [(event.type, event.sequence) for event in theirs] == [(RUN_STARTED, 1)]


async def test_no_event_is_missed_while_many_writers_commit(ports: Ports) -> None:
    async def writer(n: int) -> None:
        for turn in range(12):
            scopes = [AGENT, TEMPLATE][: 1 + turn % 2]
            writes = [await write(ports, "text", scope, Path(f"{n}.md")) for scope in scopes]
            await ports.trees.commit([commit(*writes)])

    async def reader(writing: asyncio.Future[Any]) -> list[Event]:
        read: list[Event] = []
        finished = False
        while not finished:
            finished = writing.done()
            read += await read_pages(ports, read[-1].cursor if read else None)
            await asyncio.sleep(0)
        return read

    async def listener(writing: asyncio.Future[Any]) -> list[Event]:
        read: list[Event] = []
        cursor = await ports.events.latest_cursor()
        while not writing.done() or await ports.events.read_after(cursor):
            read += await read_pages(ports, cursor)
            cursor = read[-1].cursor if read else cursor
            await asyncio.sleep(0)
        return read

    writing = asyncio.ensure_future(asyncio.gather(*[writer(n) for n in range(8)]))
    read, received = await asyncio.gather(reader(writing), listener(writing))
    await writing

    events = await read_pages(ports, limit=500)
    assert [event.cursor for event in read] == [event.cursor for event in events]
    assert received == events[len(events) - len(received) :]
    listed = [(event.scope, event.payload["path"], event.payload["version"]) for event in events]
    expected = [(AGENT, f"{n}.md", turn) for n in range(8) for turn in range(1, 13)]
    expected += [(TEMPLATE, f"{n}.md", turn) for n in range(8) for turn in range(1, 7)]
    assert len(listed) == len(set(listed))
    assert set(listed) == set(expected)
    assert len({event.id for event in events}) == len(events)


async def test_waiters_are_woken_by_a_write(ports: Ports) -> None:
    waiters = [asyncio.create_task(ports.events.wait_for_new(60)) for _ in range(3)]

    async with asyncio.timeout(30):
        while not all(waiter.done() for waiter in waiters):
            await put_text(ports, "wake up")
            await asyncio.wait(waiters, timeout=0.1)

    assert [waiter.result() for waiter in waiters] == [True, True, True]


async def test_waiters_are_woken_by_a_write_of_another_process(ports: Ports) -> None:
    async with ports.twin() as other:
        await drain_wakeups(ports)
        waiters = [asyncio.create_task(ports.events.wait_for_new(30)) for _ in range(3)]
        while not any(waiter.done() for waiter in waiters):
            blobs = await other.blobs.put([b"wake up"])
            await other.trees.commit([commit(Write(AGENT, SOUL, Entry(blobs[0])))])
            await asyncio.wait(waiters, timeout=0.5, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait(waiters)

        assert [waiter.result() for waiter in waiters] == [True, True, True]
        versions = [event.payload["version"] for event in await ports.events.read_after(None)]
        assert versions == list(range(1, len(versions) + 1))


async def test_a_wait_without_events_returns_false_at_its_timeout(ports: Ports) -> None:
    await drain_wakeups(ports)
    assert await ports.events.wait_for_new(0.01) is False


async def test_cancelling_a_waiter_leaves_the_others_waiting(ports: Ports) -> None:
    await drain_wakeups(ports)
    cancelled, patient = (asyncio.create_task(ports.events.wait_for_new(60)) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.wait([cancelled])

    async with asyncio.timeout(30):
        while not patient.done():
            await put_text(ports, "wake up")
            await asyncio.wait([patient], timeout=0.1)

    assert (cancelled.cancelled(), patient.result()) == (True, True)
