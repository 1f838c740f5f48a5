"""What every store must do with events that a commit carries: tell them with it or not at all."""

from __future__ import annotations

import asyncio

import pytest
from tests.support.commits import (
    ACME,
    AGENT,
    FOREIGN_AGENT,
    GLOBEX,
    NOW,
    RULES,
    commit,
    list_events,
    new_run,
    write,
)
from tests.support.contract_stores import Ports

from carrel.core.identifiers import Path
from carrel.core.store.event import (
    APPROVAL_ANSWERED,
    APPROVAL_REQUESTED,
    RECORD_CHANGED,
    WORKSPACE_UPDATED,
    Event,
    EventDraft,
)
from carrel.core.store.record import RecordChange, RecordType
from carrel.core.store.tree import Expect, ExpectationFailed

pytestmark = pytest.mark.anyio


def asked(id: str = "apr_1", tenant: str = ACME) -> EventDraft:
    return EventDraft(tenant, APPROVAL_REQUESTED, {"approvalId": id, "why": "é"})


def change(expected: int | None = 0) -> RecordChange:
    return RecordChange(ACME, RecordType.APPROVAL, "apr_1", {"status": "requested"}, expected)


async def test_it_is_told_with_the_record_that_changes(ports: Ports) -> None:
    await ports.trees.commit([commit(changes=(change(),), events=(asked(),), at=NOW)])

    [event] = await ports.events.read_after(None)

    assert event == Event(
        *(event.cursor, event.id, APPROVAL_REQUESTED, ACME, NOW),
        {"approvalId": "apr_1", "why": "é"},
    )
    [entry] = await ports.records.audit(ACME)
    assert entry.subjects == ("approval/apr_1",)


async def test_it_is_told_where_nothing_else_changes_and_stands_in_no_audit(ports: Ports) -> None:
    await ports.trees.commit([commit(events=(asked("a"), asked("b"), asked("c", GLOBEX)))])

    assert [one.payload["approvalId"] for one in await ports.events.read_after(None)] == [
        "a",
        "b",
        "c",
    ]
    assert [one.payload["approvalId"] for one in await list_events(ports, tenant=GLOBEX)] == ["c"]
    assert await ports.records.audit(ACME) == ()
    assert await ports.records.revision() == 0


async def test_what_was_refused_is_not_told(ports: Ports) -> None:
    stale, early = commit(changes=(change(7),), events=(asked(),)), Expect(AGENT, RULES, 3)
    refused = await ports.trees.commit([stale, commit(expects=(early,), events=(asked(),))])

    assert [type(outcome) for outcome in refused] == [ExpectationFailed, ExpectationFailed]
    assert await ports.events.read_after(None) == ()


async def test_a_record_that_people_look_at_is_told_when_it_changes(ports: Ports) -> None:
    record_types = (
        RecordType.AGENT,
        RecordType.SECRET,
        RecordType.KEY,
        RecordType.MEMORY,
        RecordType.PERSON,
    )
    made = tuple(
        RecordChange(ACME, record_type, f"{record_type}_1", {"content": ""}, 0)
        for record_type in record_types
    )
    gone = RecordChange(ACME, RecordType.AGENT, "agent_1", None, 1)
    await ports.trees.commit([commit(changes=made, events=(asked(),), at=NOW)])
    await ports.trees.commit([commit(changes=(gone,), at=NOW)])

    events = await ports.events.read_after(None)

    assert [(event.type, event.payload.get("noun")) for event in events] == [
        (RECORD_CHANGED, "agent"),
        (RECORD_CHANGED, "memory"),
        (RECORD_CHANGED, "person"),
        (APPROVAL_REQUESTED, None),
        (RECORD_CHANGED, "agent"),
    ]
    assert events[0].payload == {"noun": "agent", "id": "agent_1"}
    assert {(event.tenant, event.scope, event.at) for event in events} == {(ACME, None, NOW)}


async def test_it_comes_after_what_its_commit_writes_and_before_the_next_commit(
    ports: Ports,
) -> None:
    first = commit(await write(ports, "one"), events=(asked("a"), asked("b")))
    second = commit(await write(ports, "two"), changes=(change(),), events=(asked("c"),))
    await ports.trees.commit([first, second, commit(await write(ports, "three"))])

    events = await ports.events.read_after(None)

    told = [event.payload.get("approvalId", event.payload.get("version")) for event in events]
    assert told == [1, "a", "b", 2, "c", 3]
    assert [event.scope for event in events] == [AGENT, None, None, AGENT, None, AGENT]


async def test_it_has_its_place_in_the_log_of_its_run(ports: Ports) -> None:
    await ports.runs.start(
        [(new_run("run_1"), [AGENT]), (new_run("run_2", FOREIGN_AGENT), [FOREIGN_AGENT])]
    )

    async def writer(n: int) -> None:
        for turn in range(5):
            wanted = await write(ports, f"{turn}", path=Path(f"{n}.md"))
            one = commit(wanted, events=(asked(f"{n}"),), run="run_1")
            await ports.trees.commit([one, commit(events=(asked("x"),), run="run_1")])

    await asyncio.gather(*[writer(n) for n in range(4)])
    foreign = commit(events=(EventDraft(ACME, APPROVAL_ANSWERED, {}),), run="run_2")
    await ports.trees.commit([foreign])

    events = await list_events(ports, run="run_1")
    assert [event.sequence for event in events] == list(range(1, 62))
    assert {event.type for event in events[1:]} == {WORKSPACE_UPDATED, APPROVAL_REQUESTED}
    [strange] = await list_events(ports, run="run_2")
    assert (strange.type, strange.sequence) == (APPROVAL_ANSWERED, None)
