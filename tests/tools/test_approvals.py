"""Calls that need approval: requested once, answered once, run once or never."""

from __future__ import annotations

import asyncio
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
from carrel.actions.runs.run_request import RunRequest
from carrel.actions.sessions import sessions
from carrel.actions.sessions.new_entries import NewEntry
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
from carrel.core.store.commit import Commit
from carrel.core.store.event import APPROVALS, EventFilter
from carrel.core.store.record import RecordChange, RecordType
from carrel.ports.approvals import DAY_MS

pytestmark = pytest.mark.anyio


async def test_a_call_waits_for_approval_and_then_runs_with_its_arguments(
    tenant: ApprovalTenant,
) -> None:
    async with run_approval_workers(tenant.ports):
        reply = await tenant.bash("rm -r old")
        approval = reply.approval
        assert approval is not None
        assert approval.id in reply.content
        assert (approval.status, approval.redacted_arguments, approval.sandbox) == (
            ApprovalStatus.REQUESTED,
            {"command": "rm -r old"},
            SANDBOX,
        )
        assert tenant.shell.ran == []
        answered = await tenant.answer(approval, reason="fine")
        assert (answered.status, answered.answered_by, answered.reason) == (
            ApprovalStatus.APPROVED,
            tenant.ada.name,
            "fine",
        )
        done = await tenant.wait_until_closed(approval)
    assert done.status is ApprovalStatus.FINISHED
    assert done.model_result is not None
    assert (done.model_result.content, done.model_result.is_error) == ("ran rm -r old", False)
    assert tenant.shell.ran == ["rm -r old"]


async def test_an_approved_call_runs_with_the_requesters_permissions(
    tenant: ApprovalTenant,
) -> None:
    async with run_approval_workers(tenant.ports):
        approval = await tenant.request_approval()
        await tenant.answer(approval)
        await tenant.wait_until_closed(approval)
    assert tenant.shell.by == [tenant.kate]


async def test_request_answer_and_result_are_in_the_audit(
    tenant: ApprovalTenant,
) -> None:
    async with run_approval_workers(tenant.ports):
        approval = await tenant.request_approval()
        await tenant.answer(approval)
        await tenant.wait_until_closed(approval)
    entries = (await audit.list_audit_entries(tenant.ports, tenant.ada)).items
    mine = [
        (d.author, d.reason) for d in reversed(entries) if f"approval/{approval.id}" in d.subjects
    ]
    assert mine == [
        (tenant.kate.name, "request approval to run bash"),
        (tenant.ada.name, "approve a call of bash"),
        ("carrel", "run a call of bash"),
        ("carrel", "finish a call of bash"),
    ]


async def test_approval_events_are_in_the_tenants_log_and_the_runs_log(
    tenant: ApprovalTenant,
) -> None:
    run = await runs.start(tenant.ports, tenant.ada, RunRequest(agent="kate"))
    async with run_approval_workers(tenant.ports):
        approval = await tenant.request_approval("echo canary", run=run.id, by=tenant.ada)
        await tenant.answer(approval, reason="canary")
        await tenant.wait_until_closed(approval)
        denied = await tenant.request_approval("echo canary")
        await tenant.answer(denied, False)
    event_filter = EventFilter(tenant.ada.tenant, types=frozenset(APPROVALS))
    events = await tenant.ports.events.read_after(None, event_filter)
    statuses = [(event.type, event.payload["status"]) for event in events]
    assert statuses == [
        ("approval.requested", "requested"),
        ("approval.answered", "approved"),
        ("approval.finished", "finished"),
        ("approval.requested", "requested"),
        ("approval.answered", "denied"),
    ]
    assert "canary" not in str(events)
    log = await tenant.ports.events.read_after(None, EventFilter(tenant.ada.tenant, run=run.id))
    assert [event.type for event in log] == [
        "run.started",
        "approval.requested",
        "approval.answered",
        "approval.finished",
    ]
    assert [event.sequence for event in log] == [1, 2, 3, 4]


async def test_a_denied_call_never_runs_and_the_reply_carries_the_reason(
    tenant: ApprovalTenant,
) -> None:
    async with run_approval_workers(tenant.ports):
        approval = await tenant.request_approval(call="c1")
        await tenant.answer(approval, False, reason="not on Fridays")
        with pytest.raises(Conflict):
            await tenant.answer(approval, True)
        reply = await tenant.bash(call="c1")
        await tenant.run_two_other_calls()
    assert (reply.content, reply.is_error) == ("Error: denied by a person: not on Fridays", True)
    assert tenant.shell.ran == []


async def test_an_expired_approval_never_runs(tenant: ApprovalTenant) -> None:
    late, unanswered = await tenant.request_approval("late"), await tenant.request_approval("seen")
    advance_clock(tenant.ports, DAY_MS)
    with pytest.raises(Expired):
        await tenant.answer(late)
    assert (await tenant.get(late)).status is ApprovalStatus.EXPIRED
    async with run_approval_workers(tenant.ports):
        assert (await tenant.wait_until_closed(unanswered)).status is ApprovalStatus.EXPIRED
        await tenant.run_two_other_calls()
    with pytest.raises(Expired):
        await tenant.answer(unanswered, False)
    assert tenant.shell.ran == []


async def test_a_new_user_message_cancels_a_waiting_approval(tenant: ApprovalTenant) -> None:
    talk = await sessions.start(tenant.ports, tenant.kate, "kate")
    other = await sessions.start(tenant.ports, tenant.kate, "kate")
    async with run_approval_workers(tenant.ports):
        approval = await tenant.request_approval(session=talk.id, call="c1")
        stays = await tenant.request_approval(session=other.id)
        note = [NewEntry("assistant", "I asked")]
        await sessions.append(tenant.ports, tenant.kate, "kate", talk.id, note)
        assert (await tenant.get(approval)).status is ApprovalStatus.REQUESTED
        await sessions.append(
            tenant.ports, tenant.kate, "kate", talk.id, [NewEntry("user", "wait")]
        )
        assert (await tenant.get(approval)).status is ApprovalStatus.CANCELLED
        assert (await tenant.get(stays)).status is ApprovalStatus.REQUESTED
        with pytest.raises(Conflict):
            await tenant.answer(approval)
        reply = await tenant.bash(session=talk.id, call="c1")
        await tenant.run_two_other_calls()
    assert (reply.content, reply.is_error) == ("not run: superseded", True)
    assert tenant.shell.ran == []


async def test_a_new_user_message_cancels_an_approved_call_that_has_not_started(
    tenant: ApprovalTenant,
) -> None:
    talk = await sessions.start(tenant.ports, tenant.kate, "kate")
    approval = await tenant.request_approval(session=talk.id)
    await tenant.answer(approval)
    await sessions.append(tenant.ports, tenant.kate, "kate", talk.id, [NewEntry("user", "wait")])
    async with run_approval_workers(tenant.ports):
        done = await tenant.wait_until_closed(approval)
    assert (done.status, done.reason, tenant.shell.ran) == (
        ApprovalStatus.CANCELLED,
        "superseded",
        [],
    )


async def test_a_repeated_call_id_requests_approval_once_and_runs_once(
    tenant: ApprovalTenant,
) -> None:
    requested, refused = await race(*(tenant.request_approval("ls", call="c1") for _ in range(8)))
    assert not refused
    assert len({approval.id for approval in requested}) == 1
    with pytest.raises(Conflict, match="used for a different call"):
        await tenant.bash("ls -a", call="c1")
    assert (await tenant.request_approval("ls", call="c2")).id != requested[0].id
    async with run_approval_workers(tenant.ports):
        await tenant.answer(requested[0])
        await tenant.wait_until_closed(requested[0])
    replies = [await tenant.bash("ls", call="c1") for _ in range(3)]
    assert {(reply.content, reply.approval) for reply in replies} == {("ran ls", None)}
    assert tenant.shell.ran == ["ls"]


async def test_a_repeated_call_id_without_approval_runs_once(tenant: ApprovalTenant) -> None:
    await store_sandbox(tenant.ports, tenant.ada.tenant, "bypass")
    replies, refused = await race(*(tenant.bash("ls", call="c1") for _ in range(8)))
    assert {type(reason) for reason in refused} <= {IdempotencyInFlight}
    assert {reply.content for reply in replies} == {"ran ls"}
    assert (await tenant.bash("ls", call="c1")).content == "ran ls"
    with pytest.raises(Conflict, match="used for a different call"):
        await tenant.bash("ls -a", call="c1")
    assert (await tenant.bash("json", call="c2")).structured == {"n": 1}
    assert (await tenant.bash("json", call="c2")).structured == {"n": 1}
    assert tenant.shell.ran == ["ls", "json"]
    await tenant.bash("ls")
    await tenant.bash("ls")
    assert tenant.shell.ran[2:] == ["ls", "ls"]


@pytest.mark.parametrize("call", ["", "x" * 201, "a\nb", "\x00", "\ud800"])
async def test_an_invalid_call_id_is_refused(tenant: ApprovalTenant, call: str) -> None:
    with pytest.raises(ValidationError):
        await tenant.bash("ls", call=call)


async def test_an_invalid_call_requests_no_approval(tenant: ApprovalTenant) -> None:
    for reply, expected in [
        (await tenant.bash(" "), "Error: command must not be empty"),
        (await tenant.bash("ls", colour="red"), "Error: the arguments of bash are invalid"),
    ]:
        assert reply.is_error
        assert reply.approval is None
        assert reply.content.startswith(expected)
    await store_record(tenant.ports, tenant.ada.tenant, RecordType.WORKSPACE, SHARED, {})
    attached = [{"name": "docs", "workspaceId": SHARED, "sandbox": None}]
    both = [*attached, {"name": "code", "workspaceId": SHARED}]
    await agents.patch(
        tenant.ports, tenant.ada, "kate", {"config": {**SANDBOX_CONFIG, "workspaces": both}}
    )
    assert (await tenant.bash("ls")).content == "Error: workspace is read-only"
    assert (await tenant.bash("ls", workspace="x")).content == "Error: unknown workspace x"
    assert (await tenant.bash("ls", workspace="code")).approval is not None
    assert len(await list_waiting(tenant)) == 1


async def list_waiting(tenant: ApprovalTenant) -> tuple[Approval, ...]:
    page = await approvals.list_approvals(tenant.ports, tenant.ada, status=ApprovalStatus.REQUESTED)
    return page.items


async def test_only_authorized_people_may_answer_and_never_the_agent(
    tenant: ApprovalTenant,
) -> None:
    approval = await tenant.request_approval()
    _, member = await add_person(tenant.ports, tenant.ada, "bob")
    person, human = await add_person(tenant.ports, tenant.ada, "eve")
    owner_id, owner = await add_person(tenant.ports, tenant.ada, "tom")
    facts = {"human_pair_id": person.id, "owner_id": owner_id.id}
    await agents.patch(tenant.ports, tenant.ada, "kate", facts)
    reader = replace(tenant.ada, permissions=frozenset({Permission.WORKSPACE_READ}))
    for actor, refusal in ((tenant.kate, Forbidden), (member, NotFound), (reader, Forbidden)):
        for yes in (True, False):
            with pytest.raises(refusal):
                await tenant.answer(approval, yes, by=actor)
    assert (await tenant.answer(approval, False, by=human)).status is ApprovalStatus.DENIED
    assert (
        await tenant.answer(await tenant.request_approval(), False, by=owner)
    ).status is ApprovalStatus.DENIED


async def test_approvals_of_another_tenant_agent_or_workspace_are_not_found(
    tenant: ApprovalTenant,
) -> None:
    approval = await tenant.request_approval()
    await agents.create(tenant.ports, tenant.ada, agents.NewAgent("marco", "Marco"))
    other = await create_approval_tenant(tenant.ports, tenant.shell, "globex")
    marco = replace(tenant.kate, agent=(await agents.get(tenant.ports, tenant.ada, "marco")).id)
    for actor in (other.ada, other.kate, marco, replace(tenant.ada, workspace="other")):
        with pytest.raises(NotFound):
            await approvals.get(tenant.ports, actor, approval.id)
        with pytest.raises(NotFound):
            await tenant.answer(approval, by=actor)
    assert (await approvals.list_approvals(tenant.ports, other.ada)).items == ()
    assert (await approvals.list_approvals(tenant.ports, marco)).items == ()
    assert (await approvals.list_approvals(tenant.ports, tenant.kate)).items == (
        await tenant.get(approval),
    )
    with pytest.raises(NotFound):
        await approvals.answer(tenant.ports, tenant.ada, "apr_nothing", True)


async def test_approvals_are_listed_by_status_and_agent_in_pages(tenant: ApprovalTenant) -> None:
    requested = [await tenant.request_approval(f"n {n}") for n in range(5)]
    await tenant.answer(requested[1], False)
    page = await approvals.list_approvals(
        tenant.ports, tenant.ada, status=ApprovalStatus.REQUESTED, limit=3
    )
    assert [approval.id for approval in page.items] == [requested[n].id for n in (0, 2, 3)]
    assert page.next is not None
    rest = await approvals.list_approvals(
        tenant.ports, tenant.ada, agent="kate", status=ApprovalStatus.REQUESTED, cursor=page.next
    )
    assert [approval.id for approval in rest.items] == [requested[4].id]
    with pytest.raises(ValidationError):
        await approvals.list_approvals(tenant.ports, tenant.ada, cursor="agt_1")


async def test_the_record_is_redacted_and_the_call_runs_with_the_original_arguments(
    tenant: ApprovalTenant,
) -> None:
    await secrets.put(tenant.ports, tenant.ada, "TOKEN", "zanzibar-zanzibar")
    async with run_approval_workers(tenant.ports):
        approval = await tenant.request_approval("echo zanzibar-zanzibar", call="c1")
        [record] = await tenant.ports.records.get(
            tenant.ada.tenant, RecordType.APPROVAL, [approval.id]
        )
        assert record is not None
        assert "zanzibar" not in str(record.body)
        await tenant.answer(approval, reason="for zanzibar-zanzibar")
        done = await tenant.wait_until_closed(approval)
    assert "zanzibar" not in str(done)
    assert done.sealed == ""
    assert tenant.shell.ran == ["echo zanzibar-zanzibar"]


async def test_a_repeated_call_joins_the_open_approval(tenant: ApprovalTenant) -> None:
    first = await tenant.request_approval("ls")
    assert (await tenant.request_approval("ls")).id == first.id
    others = [
        await tenant.request_approval("ls -l"),
        await tenant.request_approval("ls", by=tenant.ada),
        await tenant.request_approval("ls", call="c1"),
        await tenant.request_approval("ls", call="c2"),
        await tenant.request_approval("ls", scope="shared"),
    ]
    assert len({approval.id for approval in (first, *others)}) == 6


async def test_a_call_repeated_after_the_end_asks_again(tenant: ApprovalTenant) -> None:
    denied = await tenant.request_approval("ls")
    await tenant.answer(denied, False)
    expired = await tenant.request_approval("ls")
    advance_clock(tenant.ports, DAY_MS + 1)
    fresh = await tenant.request_approval("ls")
    assert len({denied.id, expired.id, fresh.id}) == 3
    assert (await tenant.get(expired)).status is ApprovalStatus.EXPIRED
    assert (await tenant.get(fresh)).status is ApprovalStatus.REQUESTED


async def test_calls_repeated_at_once_make_one_approval(tenant: ApprovalTenant) -> None:
    requests = await asyncio.gather(*(tenant.request_approval("ls") for _ in range(6)))
    assert len({approval.id for approval in requests}) == 1


async def test_only_a_change_of_its_config_makes_a_sandbox_another(tenant: ApprovalTenant) -> None:
    async with run_approval_workers(tenant.ports):
        approval = await tenant.request_approval("ls")
        same = {"config": {"permissionMode": "ask"}, "description": "for the team"}
        change = RecordChange(tenant.ada.tenant, RecordType.SANDBOX, SANDBOX, same)
        await tenant.ports.trees.commit(
            [Commit((), "ada", "describe", tenant.ports.clock.now(), changes=(change,))]
        )
        await tenant.answer(approval)
        assert (await tenant.wait_until_closed(approval)).status is ApprovalStatus.FINISHED
