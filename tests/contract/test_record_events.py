"""Events carried by a commit: emitted with it or not at all."""

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
from carrel.core.store.commit import Expect, ExpectationFailed
from carrel.core.store.event import (
    APPROVAL_ANSWERED,
    APPROVAL_REQUESTED,
    RECORD_CHANGED,
    WORKSPACE_UPDATED,
    Event,
    EventDraft,
)
from carrel.core.store.record import KeyReference, RecordChange, RecordType

pytestmark = pytest.mark.anyio


def approval_requested(id: str = "apr_1", tenant: str = ACME) -> EventDraft:
    return EventDraft(tenant, APPROVAL_REQUESTED, {"approvalId": id, "why": "é"})


def change(expected: int | None = 0) -> RecordChange:
    return RecordChange(ACME, RecordType.APPROVAL, "apr_1", {"status": "requested"}, expected)


async def test_an_event_is_emitted_with_its_record_change(ports: Ports) -> None:
    await ports.trees.commit([commit(changes=(change(),), events=(approval_requested(),), at=NOW)])

    [event] = await ports.events.read_after(None)

    assert event == Event(
        *(event.cursor, event.id, APPROVAL_REQUESTED, ACME, NOW),
        {"approvalId": "apr_1", "why": "é"},
    )
    [entry] = await ports.records.audit(ACME)
    assert entry.subjects == ("approval/apr_1",)


async def test_an_audit_entry_names_the_key_of_its_author(ports: Ports) -> None:
    laptop = KeyReference("key_1", 'Ada\'s "laptop" 机')
    events = (approval_requested(),)
    await ports.trees.commit([commit(changes=(change(),), events=events, key=laptop)])
    subjects = ("agent/marco",)
    review = commit(await write(ports, "reviewed"), audit_subjects=subjects, key=laptop)
    await ports.trees.commit([review])
    await ports.trees.commit([commit(changes=(change(expected=1),), audit_subjects=subjects)])
    entries = await ports.records.audit(ACME)
    assert [entry.key for entry in entries] == [None, laptop, laptop]
    assert entries[0].subjects == ("approval/apr_1", "agent/marco")


async def test_the_audit_entry_of_a_commit_is_found(ports: Ports) -> None:
    laptop = KeyReference("key_1", "laptop")
    review = commit(await write(ports, "reviewed"), audit_subjects=("agent/marco",), key=laptop)
    await ports.trees.commit([review])
    key = (review.at, review.author, review.reason)
    others = [(key[0] + 1, *key[1:]), (key[0], "x", key[2]), (*key[:2], "x")]

    rows = await ports.records.find_audit_entries(ACME, [others[0], key, *others[1:]])

    assert [entry and entry.key for entry in rows] == [None, laptop, None, None]
    assert await ports.records.find_audit_entries("globex", [key]) == (None,)


async def test_an_event_without_other_changes_is_emitted_and_not_audited(ports: Ports) -> None:
    await ports.trees.commit(
        [
            commit(
                events=(
                    approval_requested("a"),
                    approval_requested("b"),
                    approval_requested("c", GLOBEX),
                )
            )
        ]
    )

    assert [event.payload["approvalId"] for event in await ports.events.read_after(None)] == [
        "a",
        "b",
        "c",
    ]
    assert [event.payload["approvalId"] for event in await list_events(ports, tenant=GLOBEX)] == [
        "c"
    ]
    assert await ports.records.audit(ACME) == ()
    assert await ports.records.revision() == 0


async def test_a_refused_commit_emits_no_event(ports: Ports) -> None:
    stale, unmet = (
        commit(changes=(change(7),), events=(approval_requested(),)),
        Expect(AGENT, RULES, 3),
    )
    outcomes = await ports.trees.commit(
        [stale, commit(expects=(unmet,), events=(approval_requested(),))]
    )

    assert [type(outcome) for outcome in outcomes] == [ExpectationFailed, ExpectationFailed]
    assert await ports.events.read_after(None) == ()


async def test_changes_of_listed_record_types_emit_an_event(ports: Ports) -> None:
    record_types = (
        RecordType.AGENT,
        RecordType.SECRET,
        RecordType.KEY,
        RecordType.MEMORY,
        RecordType.PERSON,
    )
    created = tuple(
        RecordChange(ACME, record_type, f"{record_type}_1", {"content": ""}, 0)
        for record_type in record_types
    )
    deleted = RecordChange(ACME, RecordType.AGENT, "agent_1", None, 1)
    await ports.trees.commit([commit(changes=created, events=(approval_requested(),), at=NOW)])
    await ports.trees.commit([commit(changes=(deleted,), at=NOW)])

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


async def test_carried_events_follow_their_commits_writes_and_precede_the_next_commit(
    ports: Ports,
) -> None:
    first = commit(
        await write(ports, "one"), events=(approval_requested("a"), approval_requested("b"))
    )
    second = commit(
        await write(ports, "two"), changes=(change(),), events=(approval_requested("c"),)
    )
    await ports.trees.commit([first, second, commit(await write(ports, "three"))])

    events = await ports.events.read_after(None)

    listed = [event.payload.get("approvalId", event.payload.get("version")) for event in events]
    assert listed == [1, "a", "b", 2, "c", 3]
    assert [event.scope for event in events] == [AGENT, None, None, AGENT, None, AGENT]


async def test_a_carried_event_is_numbered_in_its_run(ports: Ports) -> None:
    await ports.runs.start(
        [(new_run("run_1"), [AGENT]), (new_run("run_2", FOREIGN_AGENT), [FOREIGN_AGENT])]
    )

    async def writer(n: int) -> None:
        for turn in range(5):
            new_file = await write(ports, f"{turn}", path=Path(f"{n}.md"))
            first = commit(new_file, events=(approval_requested(f"{n}"),), run="run_1")
            await ports.trees.commit(
                [first, commit(events=(approval_requested("x"),), run="run_1")]
            )

    await asyncio.gather(*[writer(n) for n in range(4)])
    foreign = commit(events=(EventDraft(ACME, APPROVAL_ANSWERED, {}),), run="run_2")
    await ports.trees.commit([foreign])

    events = await list_events(ports, run="run_1")
    assert [event.sequence for event in events] == list(range(1, 62))
    assert {event.type for event in events[1:]} == {WORKSPACE_UPDATED, APPROVAL_REQUESTED}
    [unnumbered] = await list_events(ports, run="run_2")
    assert (unnumbered.type, unnumbered.sequence) == (APPROVAL_ANSWERED, None)
