"""What was approved runs once, whoever else is at it; and never where it is no more what it was."""

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
from tests.support.tenant_fixture import ApprovalTenant, run_approval_workers
from tests.support.tenants import add_person, race

from carrel.actions.accounts import keys
from carrel.actions.agents import agents
from carrel.core.access import Role
from carrel.core.approvals import ApprovalStatus
from carrel.core.errors import Conflict
from carrel.core.store.record import RecordType
from carrel.tools import approved_calls
from carrel.tools.approved_calls import close_if_abandoned
from carrel.tools.tool import ApprovalCheck, ToolContext

pytestmark = pytest.mark.anyio


async def gone_agent(room: ApprovalTenant) -> None:
    await agents.delete(room.ports, room.ada, "kate")


async def gone_sandbox(room: ApprovalTenant) -> None:
    await store_sandbox(room.ports, room.ada.tenant, None)


async def changed_sandbox(room: ApprovalTenant) -> None:
    await store_sandbox(room.ports, room.ada.tenant, "ask", internet=True)


async def other_sandbox(room: ApprovalTenant) -> None:
    other = "sb_" + "1" * 24
    await store_record(
        room.ports, room.ada.tenant, RecordType.SANDBOX, other, {"permissionMode": "ask"}
    )
    await agents.patch(room.ports, room.ada, "kate", {"config": {"sandbox": other}})


async def other_workspace(room: ApprovalTenant) -> None:
    await store_record(room.ports, room.ada.tenant, RecordType.WORKSPACE, SHARED, {})
    attached = [{"name": "docs", "workspaceId": SHARED}]
    await agents.patch(
        room.ports, room.ada, "kate", {"config": {**SANDBOX_CONFIG, "workspaces": attached}}
    )


async def no_tool(room: ApprovalTenant) -> None:
    await agents.patch(
        room.ports, room.ada, "kate", {"config": {**SANDBOX_CONFIG, "allowedTools": ["no"]}}
    )


async def no_key(room: ApprovalTenant) -> None:
    await keys.revoke(room.ports, room.ada, room.kate.key)


CHANGES = [
    (gone_agent, "no such agent: agt_"),
    (gone_sandbox, f"Referenced sandbox not found: {SANDBOX}"),
    (changed_sandbox, f"sandbox {SANDBOX} changed since the approval was requested"),
    (other_sandbox, f"not {SANDBOX}"),
    (other_workspace, f"workspace {SHARED}"),
    (no_tool, "this agent has no tool 'bash'"),
    (no_key, "the credential that requested the call no longer exists"),
]


@pytest.mark.parametrize(("change", "named"), CHANGES, ids=lambda one: getattr(one, "__name__", ""))
async def test_what_it_rests_on_has_changed_and_it_never_runs(
    room: ApprovalTenant, change: Any, named: str
) -> None:
    one = await room.request_approval()
    await change(room)
    async with run_approval_workers(room.ports):
        await room.answer(one)
        done = await room.wait_until_closed(one)
    assert done.status is ApprovalStatus.CANCELLED
    assert named in done.reason
    assert done.model_result is not None
    assert done.model_result.content == f"not run: {done.reason}"
    assert room.shell.ran == []


async def test_a_change_between_the_last_look_and_the_beginning_is_seen(
    room: ApprovalTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    async def changing(context: ToolContext, asked: Command) -> ApprovalCheck:
        nonlocal looks
        seen, looks = await check_approval(context, asked), looks + 1
        if looks == 2:
            await changed_sandbox(room)
        return seen

    room.shell = replace_bash_tool(monkeypatch, changing)
    one = await room.request_approval()
    async with run_approval_workers(room.ports):
        await room.answer(one)
        done = await room.wait_until_closed(one)
    assert (done.status, looks, room.shell.ran) == (ApprovalStatus.CANCELLED, 3, [])
    assert "changed since the approval was requested" in done.reason


async def test_of_many_who_answer_at_once_one_is_heard(room: ApprovalTenant) -> None:
    bosses = [
        (await add_person(room.ports, room.ada, f"boss-{n}", Role.ADMIN))[1] for n in range(4)
    ]
    async with run_approval_workers(room.ports, room.ports, room.ports):
        for turn in range(4):
            one = await room.request_approval(f"turn {turn}")
            answers = [(boss, n % 2 == 0) for n, boss in enumerate(bosses * 3)]
            heard, refused = await race(*(room.answer(one, yes, by=boss) for boss, yes in answers))
            assert {type(reason) for reason in refused} <= {Conflict}
            assert len({said.answered_by for said in heard}) == 1
            assert {said.answer for said in heard} == {heard[0].answer}
            assert len(heard) == 6
            done = await room.wait_until_closed(one)
            assert done.status is (
                ApprovalStatus.FINISHED if heard[0].answer else ApprovalStatus.DENIED
            )
            assert room.shell.ran.count(f"turn {turn}") == (1 if heard[0].answer else 0)


async def test_of_many_processes_one_runs_it(room: ApprovalTenant) -> None:
    ones = [await room.request_approval(f"n {n}") for n in range(6)]
    for one in ones:
        await room.answer(one)
    async with run_approval_workers(*[room.ports] * 4):
        for one in ones:
            assert (await room.wait_until_closed(one)).status is ApprovalStatus.FINISHED
    assert sorted(room.shell.ran) == [f"n {n}" for n in range(6)]


async def test_what_was_begun_by_a_process_that_died_is_not_begun_again(
    room: ApprovalTenant,
) -> None:
    one = await room.request_approval("hold")
    await room.answer(one)
    ports, dead = room.ports, Dead()
    zombie = replace(ports, trees=dead.port(ports.trees), records=dead.port(ports.records))
    async with run_approval_workers(zombie):
        await room.shell.blocked.wait()
        dead.set()
        assert (await room.get(one)).status is ApprovalStatus.RUNNING
        async with run_approval_workers(ports):
            await room.run_two_other_calls()
            assert (await room.get(one)).status is ApprovalStatus.RUNNING
        advance_clock(ports, ports.approvals.lease_ms + 1)
        async with run_approval_workers(ports):
            done = await room.wait_until_closed(one)
            await room.run_two_other_calls()
        room.shell.resume.set()
    assert done.model_result is not None
    assert (done.status, done.model_result.is_error) == (ApprovalStatus.FINISHED, True)
    assert "interrupted" in done.model_result.content
    assert await room.get(one) == done
    assert room.shell.ran == ["hold"]


class Dead:
    """Makes ports that nothing comes through any more, once it is set."""

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


async def test_a_long_call_shows_signs_of_life(room: ApprovalTenant) -> None:
    quick = replace(room.ports, approvals=replace(room.ports.approvals, lease_ms=60))
    one = await room.request_approval("hold")
    await room.answer(one)
    async with run_approval_workers(quick):
        seen = set[int | None]()
        async with asyncio.timeout(30):
            while len(seen) < 4:
                seen.update(await room.ports.records.last_used([one.id]))
                await asyncio.sleep(0.01)
        room.shell.resume.set()
        done = await room.wait_until_closed(one)
    assert done.model_result is not None
    assert done.model_result.content == "ran hold"


async def test_a_process_never_gives_up_what_it_runs_itself(room: ApprovalTenant) -> None:
    one = await room.request_approval("hold")
    await room.answer(one)
    async with run_approval_workers(room.ports):
        await room.shell.blocked.wait()
        advance_clock(room.ports, room.ports.approvals.lease_ms + 1)
        await room.run_two_other_calls()
        assert (await room.get(one)).status is ApprovalStatus.RUNNING
        room.shell.resume.set()
        done = await room.wait_until_closed(one)
    assert done.model_result is not None
    assert done.model_result.content == "ran hold"


async def test_a_process_that_is_told_to_stop_says_what_it_leaves_unfinished(
    room: ApprovalTenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approved_calls, "_SHUTDOWN_SECONDS", 0.01)
    one = await room.request_approval("hold")
    await room.answer(one)
    async with run_approval_workers(room.ports):
        await room.shell.blocked.wait()
    done = await room.get(one)
    assert done.status is ApprovalStatus.FINISHED
    assert done.model_result is not None
    assert "interrupted" in done.model_result.content


async def test_a_sign_of_life_keeps_others_from_giving_a_call_up(room: ApprovalTenant) -> None:
    one = await room.request_approval("hold")
    await room.answer(one)
    async with run_approval_workers(room.ports):
        await room.shell.blocked.wait()
        [record] = await room.ports.records.get(room.ada.tenant, RecordType.APPROVAL, [one.id])
        assert record is not None
        advance_clock(room.ports, room.ports.approvals.lease_ms)
        await room.ports.records.mark_used({one.id: room.ports.clock.now()})
        advance_clock(room.ports, room.ports.approvals.lease_ms // 2)
        await close_if_abandoned(room.ports, record)
        assert (await room.get(one)).status is ApprovalStatus.RUNNING
        advance_clock(room.ports, room.ports.approvals.lease_ms)
        await close_if_abandoned(room.ports, record)
        assert (await room.get(one)).status is ApprovalStatus.FINISHED
        room.shell.resume.set()
    told = (await room.get(one)).model_result
    assert told is not None
    assert "interrupted" in told.content


@pytest.mark.parametrize(
    ("command", "content"),
    [
        ("refuse", "Error: nothing of that name"),
        ("break", "Error: internal error; the call is not run again"),
    ],
)
async def test_what_goes_wrong_is_told_and_not_tried_again(
    room: ApprovalTenant, command: str, content: str
) -> None:
    async with run_approval_workers(room.ports):
        one = await room.request_approval(command)
        await room.answer(one)
        done = await room.wait_until_closed(one)
        await room.run_two_other_calls()
    assert done.model_result is not None
    assert (done.model_result.content, done.model_result.is_error) == (content, True)
    assert room.shell.ran == [command]
