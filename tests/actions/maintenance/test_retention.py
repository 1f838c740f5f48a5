"""Approvals that are over and jobs that have ended are forgotten in time, and no others are."""

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
from carrel.core.store.record import RecordType
from carrel.core.store.tree import Applied, Commit

pytestmark = pytest.mark.anyio
OLD, NOW = 1_000, 9_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def shop(tmp_path: File) -> AsyncIterator[ToolTenant]:
    async with open_ports(tmp_path) as opened:
        runner = PersistentUnsandboxedProvider()
        yield await create_tool_tenant(opened, runner=runner, persistent=True)
        await runner.close()


async def kept(shop: ToolTenant, id: str, status: ApprovalStatus, ended: int | None) -> None:
    approval = Approval(
        id=id,
        tenant=shop.owner.tenant,
        agent=shop.agent.id,
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
    commit = Commit((), "ada", "ask", shop.ports.clock.now(), changes=(change,))
    [outcome] = await shop.ports.trees.commit([commit])
    assert isinstance(outcome, Applied)


async def ids(shop: ToolTenant, record_type: RecordType) -> set[str]:
    return {one.id for one in await shop.ports.records.list(shop.owner.tenant, record_type)}


async def test_approvals_that_were_over_long_ago_are_forgotten(shop: ToolTenant) -> None:
    over = (
        ApprovalStatus.FINISHED,
        ApprovalStatus.DENIED,
        ApprovalStatus.EXPIRED,
        ApprovalStatus.CANCELLED,
    )
    for status in ApprovalStatus:
        await kept(shop, f"apr_old_{status}", status, OLD if status in over else None)
        await kept(shop, f"apr_new_{status}", status, NOW if status in over else None)
    assert await transitions.delete_closed(shop.ports, NOW) == len(over)
    left = await ids(shop, RecordType.APPROVAL)
    assert left == {
        *(f"apr_new_{status}" for status in ApprovalStatus),
        *(f"apr_old_{status}" for status in ApprovalStatus if status not in over),
    }
    assert await transitions.delete_closed(shop.ports, NOW) == 0
    await kept(shop, "apr_old_denied", ApprovalStatus.DENIED, NOW)  # its names are free again


async def test_jobs_that_began_long_ago_are_forgotten_once_they_have_ended(
    shop: ToolTenant,
) -> None:
    async def begun(command: str) -> str:
        said: Any = await shop.call("bash", command=command, background=True)
        return str(said).rpartition(" ")[2]

    done, busy = await begun("true"), await begun("exec sleep 600")
    runner = shop.runner
    assert isinstance(runner, PersistentUnsandboxedProvider)
    await next(process for (_, id), process in runner.processes.items() if id == done).wait()
    assert await jobs.delete_ended(shop.ports, OLD) == 0
    assert await jobs.delete_ended(shop.ports, shop.ports.clock.now() + 1) == 1
    assert await ids(shop, RecordType.JOB) == {busy}
    assert {id for _, id in runner.processes} == {busy}
