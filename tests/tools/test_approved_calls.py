"""An approved call runs once, and never after its conditions changed."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from tests.support.shell_commands import (
    SANDBOX,
    SANDBOX_CONFIG,
    SHARED,
    Command,
    check_approval,
    replace_bash_tool,
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

from carrel.actions.accounts import keys
from carrel.actions.agents import agents
from carrel.core.access import Role
from carrel.core.approvals import ApprovalStatus
from carrel.core.errors import Conflict, NotFound
from carrel.core.store.record import RecordType
from carrel.tools import approved_calls
from carrel.tools.approved_calls import close_if_abandoned
from carrel.tools.tool import ApprovalCheck, ToolContext

pytestmark = pytest.mark.anyio


async def delete_sandbox(tenant: ApprovalTenant) -> None:
    await store_sandbox(tenant.ports, tenant.ada.tenant, None)


async def change_sandbox(tenant: ApprovalTenant) -> None:
    await store_sandbox(tenant.ports, tenant.ada.tenant, "ask", internet=True)


async def switch_sandbox(tenant: ApprovalTenant) -> None:
    other = "sb_" + "1" * 24
    await store_record(
        tenant.ports, tenant.ada.tenant, RecordType.SANDBOX, other, {"permissionMode": "ask"}
    )
    await agents.patch(tenant.ports, tenant.ada, "kate", {"config": {"sandbox": other}})


async def attach_workspace(tenant: ApprovalTenant) -> None:
    await store_record(tenant.ports, tenant.ada.tenant, RecordType.WORKSPACE, SHARED, {})
    attached = [{"name": "docs", "workspaceId": SHARED}]
    await agents.patch(
        tenant.ports, tenant.ada, "kate", {"config": {**SANDBOX_CONFIG, "workspaces": attached}}
    )


async def disallow_tool(tenant: ApprovalTenant) -> None:
    await agents.patch(
        tenant.ports, tenant.ada, "kate", {"config": {**SANDBOX_CONFIG, "allowedTools": ["no"]}}
    )


async def revoke_key(tenant: ApprovalTenant) -> None:
    await keys.revoke(tenant.ports, tenant.ada, tenant.kate.key)


CHANGES = [
    (delete_sandbox, f"Referenced sandbox not found: {SANDBOX}"),
    (change_sandbox, f"sandbox {SANDBOX} changed since the approval was requested"),
    (switch_sandbox, f"not {SANDBOX}"),
    (attach_workspace, f"workspace {SHARED}"),
    (disallow_tool, "this agent has no tool 'bash'"),
    (revoke_key, "the credential that requested the call no longer exists"),
]


@pytest.mark.parametrize(
    ("change", "expected"), CHANGES, ids=lambda value: getattr(value, "__name__", "")
)
async def test_an_approved_call_never_runs_after_its_conditions_changed(
    tenant: ApprovalTenant, change: Any, expected: str
) -> None:
    approval = await tenant.request_approval()
    await change(tenant)
    async with run_approval_workers(tenant.ports):
        await tenant.answer(approval)
        done = await tenant.wait_until_closed(approval)
    assert done.status is ApprovalStatus.CANCELLED
    assert expected in done.reason
    assert done.model_result is not None
    assert done.model_result.content == f"not run: {done.reason}"
    assert tenant.shell.ran == []


async def test_approvals_are_deleted_with_their_agent(tenant: ApprovalTenant) -> None:
    approval = await tenant.request_approval()
    await agents.delete(tenant.ports, tenant.ada, "kate")
    async with run_approval_workers(tenant.ports):
        with pytest.raises(NotFound, match="no such approval"):
            await tenant.answer(approval)
    assert tenant.shell.ran == []


async def test_a_change_between_the_last_check_and_the_start_cancels_the_call(
    tenant: ApprovalTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = 0

    async def changing(context: ToolContext, arguments: Command) -> ApprovalCheck:
        nonlocal checks
        check, checks = await check_approval(context, arguments), checks + 1
        if checks == 2:
            await change_sandbox(tenant)
        return check

    tenant.shell = replace_bash_tool(monkeypatch, changing)
    approval = await tenant.request_approval()
    async with run_approval_workers(tenant.ports):
        await tenant.answer(approval)
        done = await tenant.wait_until_closed(approval)
    assert (done.status, checks, tenant.shell.ran) == (ApprovalStatus.CANCELLED, 3, [])
    assert "changed since the approval was requested" in done.reason


async def test_of_concurrent_answers_exactly_one_counts(tenant: ApprovalTenant) -> None:
    admins = [
        (await add_person(tenant.ports, tenant.ada, f"boss-{n}", Role.ADMIN))[1] for n in range(4)
    ]
    async with run_approval_workers(tenant.ports, tenant.ports, tenant.ports):
        for turn in range(4):
            approval = await tenant.request_approval(f"turn {turn}")
            answers = [(admin, n % 2 == 0) for n, admin in enumerate(admins * 3)]
            accepted, refused = await race(
                *(tenant.answer(approval, yes, by=admin) for admin, yes in answers)
            )
            assert {type(reason) for reason in refused} <= {Conflict}
            assert len({answered.answered_by for answered in accepted}) == 1
            assert {answered.answer for answered in accepted} == {accepted[0].answer}
            assert len(accepted) == 6
            done = await tenant.wait_until_closed(approval)
            assert done.status is (
                ApprovalStatus.FINISHED if accepted[0].answer else ApprovalStatus.DENIED
            )
            assert tenant.shell.ran.count(f"turn {turn}") == (1 if accepted[0].answer else 0)


async def test_of_many_processes_exactly_one_runs_a_call(tenant: ApprovalTenant) -> None:
    requested = [await tenant.request_approval(f"n {n}") for n in range(6)]
    for approval in requested:
        await tenant.answer(approval)
    async with run_approval_workers(*[tenant.ports] * 4):
        for approval in requested:
            assert (await tenant.wait_until_closed(approval)).status is ApprovalStatus.FINISHED
    assert sorted(tenant.shell.ran) == [f"n {n}" for n in range(6)]


async def test_a_call_started_by_a_dead_process_is_not_restarted(tenant: ApprovalTenant) -> None:
    approval = await tenant.request_approval("hold")
    await tenant.answer(approval)
    ports, dead = tenant.ports, DeadSwitch()
    zombie = replace(ports, trees=dead.port(ports.trees), records=dead.port(ports.records))
    async with run_approval_workers(zombie):
        await tenant.shell.blocked.wait()
        dead.set()
        assert (await tenant.get(approval)).status is ApprovalStatus.RUNNING
        async with run_approval_workers(ports):
            await tenant.run_two_other_calls()
            assert (await tenant.get(approval)).status is ApprovalStatus.RUNNING
        advance_clock(ports, ports.approvals.lease_ms + 1)
        async with run_approval_workers(ports):
            done = await tenant.wait_until_closed(approval)
            await tenant.run_two_other_calls()
        tenant.shell.resume.set()
    assert done.model_result is not None
    assert (done.status, done.model_result.is_error) == (ApprovalStatus.FINISHED, True)
    assert "interrupted" in done.model_result.content
    assert await tenant.get(approval) == done
    assert tenant.shell.ran == ["hold"]


async def test_a_tenant_with_many_approved_calls_does_not_delay_another_tenant(
    tenant: ApprovalTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approved_calls, "MAX_CONCURRENT_CALLS", 1)
    calls = [await tenant.request_approval(f"hold {n}") for n in range(2)]
    other = await create_approval_tenant(tenant.ports, tenant.shell, "other")
    approval = await other.request_approval("other")
    for waiting in calls:
        await tenant.answer(waiting)
    async with run_approval_workers(tenant.ports):
        await tenant.shell.blocked.wait()
        await other.answer(approval)
        assert (await other.wait_until_closed(approval)).status is ApprovalStatus.FINISHED
        assert len(tenant.shell.ran) == 2
        tenant.shell.resume.set()
        for waiting in calls:
            assert (await tenant.wait_until_closed(waiting)).status is ApprovalStatus.FINISHED


class DeadSwitch:
    """Switch after which every wrapped port raises ConnectionError."""

    def __init__(self) -> None:
        self._dead = False

    def set(self) -> None:
        self._dead = True

    def port(self, port: Any) -> Any:
        outer = self

        class Port:
            def __getattr__(self, name: str) -> Any:
                if outer._dead:
                    raise ConnectionError("dead")
                return getattr(port, name)

        return Port()


async def test_a_long_call_renews_its_lease(tenant: ApprovalTenant) -> None:
    quick = replace(tenant.ports, approvals=replace(tenant.ports.approvals, lease_ms=60))
    approval = await tenant.request_approval("hold")
    await tenant.answer(approval)
    async with run_approval_workers(quick):
        renewals = set[int | None]()
        async with asyncio.timeout(30):
            while len(renewals) < 4:
                renewals.update(await tenant.ports.records.last_used([approval.id]))
                await asyncio.sleep(0.01)
        tenant.shell.resume.set()
        done = await tenant.wait_until_closed(approval)
    assert done.model_result is not None
    assert done.model_result.content == "ran hold"


async def test_a_process_never_abandons_its_own_running_call(tenant: ApprovalTenant) -> None:
    approval = await tenant.request_approval("hold")
    await tenant.answer(approval)
    async with run_approval_workers(tenant.ports):
        await tenant.shell.blocked.wait()
        advance_clock(tenant.ports, tenant.ports.approvals.lease_ms + 1)
        await tenant.run_two_other_calls()
        assert (await tenant.get(approval)).status is ApprovalStatus.RUNNING
        tenant.shell.resume.set()
        done = await tenant.wait_until_closed(approval)
    assert done.model_result is not None
    assert done.model_result.content == "ran hold"


async def test_a_stopping_process_reports_its_unfinished_call_as_interrupted(
    tenant: ApprovalTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approved_calls, "_SHUTDOWN_SECONDS", 0.01)
    approval = await tenant.request_approval("hold")
    await tenant.answer(approval)
    async with run_approval_workers(tenant.ports):
        await tenant.shell.blocked.wait()
    done = await tenant.get(approval)
    assert done.status is ApprovalStatus.FINISHED
    assert done.model_result is not None
    assert "interrupted" in done.model_result.content


async def test_a_renewed_lease_keeps_a_call_from_being_closed_as_abandoned(
    tenant: ApprovalTenant,
) -> None:
    approval = await tenant.request_approval("hold")
    await tenant.answer(approval)
    async with run_approval_workers(tenant.ports):
        await tenant.shell.blocked.wait()
        [record] = await tenant.ports.records.get(
            tenant.ada.tenant, RecordType.APPROVAL, [approval.id]
        )
        assert record is not None
        advance_clock(tenant.ports, tenant.ports.approvals.lease_ms)
        await tenant.ports.records.mark_used({approval.id: tenant.ports.clock.now()})
        advance_clock(tenant.ports, tenant.ports.approvals.lease_ms // 2)
        await close_if_abandoned(tenant.ports, record)
        assert (await tenant.get(approval)).status is ApprovalStatus.RUNNING
        advance_clock(tenant.ports, tenant.ports.approvals.lease_ms)
        await close_if_abandoned(tenant.ports, record)
        assert (await tenant.get(approval)).status is ApprovalStatus.FINISHED
        tenant.shell.resume.set()
    result = (await tenant.get(approval)).model_result
    assert result is not None
    assert "interrupted" in result.content


@pytest.mark.parametrize(
    ("command", "content"),
    [
        ("refuse", "Error: nothing of that name"),
        ("break", "Error: internal error; the call is not run again"),
    ],
)
async def test_a_failed_call_reports_its_error_and_is_not_retried(
    tenant: ApprovalTenant, command: str, content: str
) -> None:
    async with run_approval_workers(tenant.ports):
        approval = await tenant.request_approval(command)
        await tenant.answer(approval)
        done = await tenant.wait_until_closed(approval)
        await tenant.run_two_other_calls()
    assert done.model_result is not None
    assert (done.model_result.content, done.model_result.is_error) == (content, True)
    assert tenant.shell.ran == [command]
