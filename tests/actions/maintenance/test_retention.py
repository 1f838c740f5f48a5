"""Closed approvals and ended jobs are deleted after their retention time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path as File
from typing import Any

import pytest
from msgspec.structs import replace
from tests.support.stores import open_ports
from tests.support.tool_fixture import ToolTenant, create_tool_tenant
from tests.support.unsandboxed_provider import PersistentUnsandboxedProvider

from carrel.actions.approvals import transitions
from carrel.actions.sandbox import jobs
from carrel.core.access import CredentialKind
from carrel.core.approvals import Approval, ApprovalStatus, Requester, approval_change
from carrel.core.runs import Audience
from carrel.core.store.commit import Applied, Commit
from carrel.core.store.record import RecordType

pytestmark = pytest.mark.anyio
OLD, NOW = 1_000, 9_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def fixture(tmp_path: File) -> AsyncIterator[ToolTenant]:
    async with open_ports(tmp_path) as opened:
        runner = PersistentUnsandboxedProvider()
        yield await create_tool_tenant(opened, runner=runner, persistent=True)
        await runner.close()


async def store_approval(
    fixture: ToolTenant, id: str, status: ApprovalStatus, ended: int | None
) -> None:
    approval = Approval(
        id=id,
        tenant=fixture.owner.tenant,
        agent=fixture.agent.id,
        tool="bash",
        asker=Requester("ada", CredentialKind.PERSON, ()),
        redacted_arguments={},
        sealed="",
        digest="",
        requested=OLD,
        expires=OLD,
        mode=Audience.MAIN,
        call=id,
    )
    change = approval_change(replace(approval, status=status, ended=ended), 0)
    commit = Commit((), "ada", "ask", fixture.ports.clock.now(), changes=(change,))
    [outcome] = await fixture.ports.trees.commit([commit])
    assert isinstance(outcome, Applied)


async def ids(fixture: ToolTenant, record_type: RecordType) -> set[str]:
    return {
        record.id for record in await fixture.ports.records.list(fixture.owner.tenant, record_type)
    }


async def test_approvals_closed_long_ago_are_deleted(fixture: ToolTenant) -> None:
    closed = (
        ApprovalStatus.FINISHED,
        ApprovalStatus.DENIED,
        ApprovalStatus.EXPIRED,
        ApprovalStatus.CANCELLED,
    )
    for status in ApprovalStatus:
        await store_approval(
            fixture, f"apr_old_{status}", status, OLD if status in closed else None
        )
        await store_approval(
            fixture, f"apr_new_{status}", status, NOW if status in closed else None
        )
    assert await transitions.delete_closed(fixture.ports, NOW) == len(closed)
    remaining = await ids(fixture, RecordType.APPROVAL)
    assert remaining == {
        *(f"apr_new_{status}" for status in ApprovalStatus),
        *(f"apr_old_{status}" for status in ApprovalStatus if status not in closed),
    }
    assert await transitions.delete_closed(fixture.ports, NOW) == 0
    await store_approval(
        fixture, "apr_old_denied", ApprovalStatus.DENIED, NOW
    )  # its unique keys are free again


async def test_old_jobs_are_deleted_once_they_have_ended(fixture: ToolTenant) -> None:
    async def start_job(command: str) -> str:
        response: Any = await fixture.call("bash", command=command, background=True)
        return str(response).rpartition(" ")[2]

    done, running = await start_job("true"), await start_job("exec sleep 600")
    runner = fixture.runner
    assert isinstance(runner, PersistentUnsandboxedProvider)
    await next(process for (_, id), process in runner.processes.items() if id == done).wait()
    assert await jobs.delete_ended(fixture.ports, OLD) == 0
    assert await jobs.delete_ended(fixture.ports, fixture.ports.clock.now() + 1) == 1
    assert await ids(fixture, RecordType.JOB) == {running}
    assert {id for _, id in runner.processes} == {running}
