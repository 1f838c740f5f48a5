"""Calls that wait for somebody's yes: asked about once, answered once, run once or never."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.shell_commands import (
    SANDBOX,
    SANDBOX_CONFIG,
    SHARED,
    store_record,
    store_sandbox,
)
from tests.support.stores import advance_clock
from tests.support.tenant_fixture import (
    ApprovalTenant,
    create_approval_tenant,
    run_approval_workers,
)
from tests.support.tenants import add_person, race

from carrel.actions.accounts import audit, secrets
from carrel.actions.agents import agents
from carrel.actions.approvals import approvals
from carrel.actions.runs import runs
from carrel.actions.sessions import sessions
from carrel.actions.sessions.sessions import NewEntry
from carrel.core.access import Permission
from carrel.core.approvals import Approval, ApprovalStatus
from carrel.core.errors import (
    Conflict,
    Expired,
    Forbidden,
    IdempotencyInFlight,
    NotFound,
    ValidationError,
)
from carrel.core.store.event import APPROVALS, EventFilter
from carrel.core.store.record import RecordType
from carrel.ports.approvals import DAY_MS

pytestmark = pytest.mark.anyio


async def test_a_call_waits_for_a_yes_and_then_runs_as_it_was_given(room: ApprovalTenant) -> None:
    async with run_approval_workers(room.ports):
        reply = await room.bash("rm -r old")
        one = reply.approval
        assert one is not None
        assert one.id in reply.content
        assert (one.status, one.redacted_arguments, one.sandbox) == (
            ApprovalStatus.REQUESTED,
            {"command": "rm -r old"},
            SANDBOX,
        )
        assert room.shell.ran == []
        said = await room.answer(one, reason="fine")
        assert (said.status, said.answered_by, said.reason) == (
            ApprovalStatus.APPROVED,
            room.ada.name,
            "fine",
        )
        done = await room.wait_until_closed(one)
    assert done.status is ApprovalStatus.FINISHED
    assert done.model_result is not None
    assert (done.model_result.content, done.model_result.is_error) == ("ran rm -r old", False)
    assert room.shell.ran == ["rm -r old"]


async def test_it_runs_by_the_rights_of_whoever_asked(room: ApprovalTenant) -> None:
    async with run_approval_workers(room.ports):
        one = await room.request_approval()
        await room.answer(one)
        await room.wait_until_closed(one)
    assert room.shell.by == [room.kate]


async def test_who_asked_what_who_answered_and_what_came_of_it_stands_in_the_audit(
    room: ApprovalTenant,
) -> None:
    async with run_approval_workers(room.ports):
        one = await room.request_approval()
        await room.answer(one)
        await room.wait_until_closed(one)
    entries = (await audit.list_audit_entries(room.ports, room.ada)).items
    mine = [(d.author, d.reason) for d in reversed(entries) if f"approval/{one.id}" in d.subjects]
    assert mine == [
        (room.kate.name, "request approval to run bash"),
        (room.ada.name, "approve a call of bash"),
        ("carrel", "run a call of bash"),
        ("carrel", "finish a call of bash"),
    ]


async def test_events_tell_of_it_in_the_log_of_its_run_too(room: ApprovalTenant) -> None:
    run = await runs.start(room.ports, room.ada, runs.RunRequest(agent="kate"))
    async with run_approval_workers(room.ports):
        one = await room.request_approval("echo canary", run=run.id, by=room.ada)
        await room.answer(one, reason="canary")
        await room.wait_until_closed(one)
        no = await room.request_approval("echo canary")
        await room.answer(no, False)
    wanted = EventFilter(room.ada.tenant, types=frozenset(APPROVALS))
    told = await room.ports.events.read_after(None, wanted)
    about = [(event.type, event.payload["status"]) for event in told]
    assert about == [
        ("approval.requested", "requested"),
        ("approval.answered", "approved"),
        ("approval.finished", "finished"),
        ("approval.requested", "requested"),
        ("approval.answered", "denied"),
    ]
    assert "canary" not in str(told)
    log = await room.ports.events.read_after(None, EventFilter(room.ada.tenant, run=run.id))
    assert [event.type for event in log] == ["run.started", *APPROVALS]
    assert [event.sequence for event in log] == [1, 2, 3, 4]


async def test_what_is_denied_never_runs_and_the_model_is_told_why(room: ApprovalTenant) -> None:
    async with run_approval_workers(room.ports):
        one = await room.request_approval(call="c1")
        await room.answer(one, False, reason="not on Fridays")
        with pytest.raises(Conflict):
            await room.answer(one, True)
        told = await room.bash(call="c1")
        await room.run_two_other_calls()
    assert (told.content, told.is_error) == ("Error: denied by a person: not on Fridays", True)
    assert room.shell.ran == []


async def test_what_nobody_answers_in_time_never_runs(room: ApprovalTenant) -> None:
    late, seen = await room.request_approval("late"), await room.request_approval("seen")
    advance_clock(room.ports, DAY_MS)
    with pytest.raises(Expired):
        await room.answer(late)
    assert (await room.get(late)).status is ApprovalStatus.EXPIRED
    async with run_approval_workers(room.ports):
        assert (await room.wait_until_closed(seen)).status is ApprovalStatus.EXPIRED
        await room.run_two_other_calls()
    with pytest.raises(Expired):
        await room.answer(seen, False)
    assert room.shell.ran == []


async def test_a_person_who_says_something_else_makes_it_void(room: ApprovalTenant) -> None:
    talk = await sessions.start(room.ports, room.kate, "kate")
    other = await sessions.start(room.ports, room.kate, "kate")
    async with run_approval_workers(room.ports):
        one = await room.request_approval(session=talk.id, call="c1")
        stays = await room.request_approval(session=other.id)
        note = [NewEntry("assistant", "I asked")]
        await sessions.append(room.ports, room.kate, "kate", talk.id, note)
        assert (await room.get(one)).status is ApprovalStatus.REQUESTED
        await sessions.append(room.ports, room.kate, "kate", talk.id, [NewEntry("user", "wait")])
        assert (await room.get(one)).status is ApprovalStatus.CANCELLED
        assert (await room.get(stays)).status is ApprovalStatus.REQUESTED
        with pytest.raises(Conflict):
            await room.answer(one)
        told = await room.bash(session=talk.id, call="c1")
        await room.run_two_other_calls()
    assert (told.content, told.is_error) == ("not run: superseded", True)
    assert room.shell.ran == []


async def test_so_it_does_where_the_yes_came_a_moment_before(room: ApprovalTenant) -> None:
    talk = await sessions.start(room.ports, room.kate, "kate")
    one = await room.request_approval(session=talk.id)
    await room.answer(one)
    await sessions.append(room.ports, room.kate, "kate", talk.id, [NewEntry("user", "wait")])
    async with run_approval_workers(room.ports):
        done = await room.wait_until_closed(one)
    assert (done.status, done.reason, room.shell.ran) == (
        ApprovalStatus.CANCELLED,
        "superseded",
        [],
    )


async def test_the_same_call_is_asked_about_and_done_once(room: ApprovalTenant) -> None:
    asked, refused = await race(*(room.request_approval("ls", call="c1") for _ in range(8)))
    assert not refused
    assert len({one.id for one in asked}) == 1
    with pytest.raises(Conflict, match="used for a different call"):
        await room.bash("ls -a", call="c1")
    assert (await room.request_approval("ls", call="c2")).id != asked[0].id
    async with run_approval_workers(room.ports):
        await room.answer(asked[0])
        await room.wait_until_closed(asked[0])
    told = [await room.bash("ls", call="c1") for _ in range(3)]
    assert {(one.content, one.approval) for one in told} == {("ran ls", None)}
    assert room.shell.ran == ["ls"]


async def test_a_call_that_nobody_is_asked_about_is_done_once_too(room: ApprovalTenant) -> None:
    await store_sandbox(room.ports, room.ada.tenant, "bypass")
    told, refused = await race(*(room.bash("ls", call="c1") for _ in range(8)))
    assert {type(reason) for reason in refused} <= {IdempotencyInFlight}
    assert {one.content for one in told} == {"ran ls"}
    assert (await room.bash("ls", call="c1")).content == "ran ls"
    with pytest.raises(Conflict, match="used for a different call"):
        await room.bash("ls -a", call="c1")
    assert (await room.bash("json", call="c2")).structured == {"n": 1}
    assert (await room.bash("json", call="c2")).structured == {"n": 1}
    assert room.shell.ran == ["ls", "json"]
    await room.bash("ls")
    await room.bash("ls")
    assert room.shell.ran[2:] == ["ls", "ls"]


@pytest.mark.parametrize("call", ["", "x" * 201, "a\nb", "\x00", "\ud800"])
async def test_what_is_no_id_of_a_call_is_refused(room: ApprovalTenant, call: str) -> None:
    with pytest.raises(ValidationError):
        await room.bash("ls", call=call)


async def test_nobody_is_asked_about_what_cannot_be_done(room: ApprovalTenant) -> None:
    for told, expected in [
        (await room.bash(" "), "Error: command must not be empty"),
        (await room.bash("ls", colour="red"), "Error: the arguments of bash are invalid"),
    ]:
        assert told.is_error
        assert told.approval is None
        assert told.content.startswith(expected)
    await store_record(room.ports, room.ada.tenant, RecordType.WORKSPACE, SHARED, {})
    attached = [{"name": "docs", "workspaceId": SHARED, "sandbox": None}]
    both = [*attached, {"name": "code", "workspaceId": SHARED}]
    await agents.patch(
        room.ports, room.ada, "kate", {"config": {**SANDBOX_CONFIG, "workspaces": both}}
    )
    assert (await room.bash("ls")).content == "Error: workspace is read-only"
    assert (await room.bash("ls", workspace="x")).content == "Error: unknown workspace x"
    assert (await room.bash("ls", workspace="code")).approval is not None
    assert len(await waiting(room)) == 1


async def waiting(room: ApprovalTenant) -> tuple[Approval, ...]:
    page = await approvals.list_approvals(room.ports, room.ada, status=ApprovalStatus.REQUESTED)
    return page.items


async def test_only_some_people_may_answer_and_never_the_agent(room: ApprovalTenant) -> None:
    one = await room.request_approval()
    _, member = await add_person(room.ports, room.ada, "bob")
    person, human = await add_person(room.ports, room.ada, "eve")
    owner_id, owner = await add_person(room.ports, room.ada, "tom")
    facts = {"humanPairId": person.id, "ownerId": owner_id.id}
    await agents.patch(room.ports, room.ada, "kate", facts)
    reader = replace(room.ada, permissions=frozenset({Permission.WORKSPACE_READ}))
    for who in (room.kate, member, reader):
        for yes in (True, False):
            with pytest.raises(Forbidden):
                await room.answer(one, yes, by=who)
    assert (await room.answer(one, False, by=human)).status is ApprovalStatus.DENIED
    assert (
        await room.answer(await room.request_approval(), False, by=owner)
    ).status is ApprovalStatus.DENIED


async def test_nobody_sees_or_answers_those_of_others(room: ApprovalTenant) -> None:
    one = await room.request_approval()
    await agents.create(room.ports, room.ada, agents.NewAgent("marco", "Marco"))
    other = await create_approval_tenant(room.ports, room.shell, "globex")
    marco = replace(room.kate, agent=(await agents.get(room.ports, room.ada, "marco")).id)
    for who in (other.ada, other.kate, marco, replace(room.ada, workspace="desk")):
        with pytest.raises(NotFound):
            await approvals.get(room.ports, who, one.id)
        with pytest.raises(NotFound):
            await room.answer(one, by=who)
    assert (await approvals.list_approvals(room.ports, other.ada)).items == ()
    assert (await approvals.list_approvals(room.ports, marco)).items == ()
    assert (await approvals.list_approvals(room.ports, room.kate)).items == (await room.get(one),)
    with pytest.raises(NotFound):
        await approvals.answer(room.ports, room.ada, "apr_nothing", True)


async def test_they_are_listed_by_status_and_agent_page_by_page(room: ApprovalTenant) -> None:
    ones = [await room.request_approval(f"n {n}") for n in range(5)]
    await room.answer(ones[1], False)
    page = await approvals.list_approvals(
        room.ports, room.ada, status=ApprovalStatus.REQUESTED, limit=3
    )
    assert [one.id for one in page.items] == [ones[n].id for n in (0, 2, 3)]
    assert page.next is not None
    rest = await approvals.list_approvals(
        room.ports, room.ada, agent="kate", status=ApprovalStatus.REQUESTED, cursor=page.next
    )
    assert [one.id for one in rest.items] == [ones[4].id]
    with pytest.raises(ValidationError):
        await approvals.list_approvals(room.ports, room.ada, cursor="agt_1")


async def test_no_secret_lies_open_and_what_runs_is_what_was_given(room: ApprovalTenant) -> None:
    await secrets.put(room.ports, room.ada, "TOKEN", "zanzibar-zanzibar")
    async with run_approval_workers(room.ports):
        one = await room.request_approval("echo zanzibar-zanzibar", call="c1")
        [record] = await room.ports.records.get(room.ada.tenant, RecordType.APPROVAL, [one.id])
        assert record is not None
        assert "zanzibar" not in str(record.body)
        await room.answer(one, reason="for zanzibar-zanzibar")
        done = await room.wait_until_closed(one)
    assert "zanzibar" not in str(done)
    assert done.sealed == ""
    assert room.shell.ran == ["echo zanzibar-zanzibar"]
