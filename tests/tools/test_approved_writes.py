"""An approved write replaces only the version that was there when it was requested."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.tenant_fixture import run_approval_workers
from tests.support.tool_fixture import ToolTenant, create_tool_tenant

from carrel.actions.accounts import secrets
from carrel.actions.approvals import approvals
from carrel.actions.files import files
from carrel.actions.sandbox import workspace_files
from carrel.core.approvals import Approval
from carrel.core.identifiers import Path
from carrel.ports import Ports
from carrel.tools.calls import run_call

pytestmark = pytest.mark.anyio
PLAN = Path("plan.md")


async def request_write(tools: ToolTenant, content: str) -> Approval:
    reply = await run_call(tools.context, "write", {"file_path": "plan.md", "content": content})
    assert reply.approval is not None
    return reply.approval


async def approve(tools: ToolTenant, approval: Approval) -> Any:
    async with run_approval_workers(tools.ports):
        await approvals.answer(tools.ports, tools.owner, approval.id, True)
        closed = await approvals.wait_until_closed(tools.ports, tools.owner, approval.id, 30)
    assert closed.model_result is not None
    return closed.model_result


@pytest.mark.parametrize("before", [None, "first"])
async def test_a_write_lands_on_the_version_it_was_requested_for(
    anywhere: Ports, before: str | None
) -> None:
    tools = await create_tool_tenant(anywhere, mode="ask")
    if before is not None:
        await workspace_files.write(tools.workspace_files(), PLAN, before.encode())
    approval = await request_write(tools, "approved")
    assert approval.expected_version == (0 if before is None else 1)
    assert (await approve(tools, approval)).content == "Wrote plan.md (8 bytes)"
    assert (await tools.files())["plan.md"] == b"approved"


async def test_a_write_to_a_changed_file_is_refused_with_both_texts(anywhere: Ports) -> None:
    tools = await create_tool_tenant(anywhere, mode="ask")
    await workspace_files.write(tools.workspace_files(), PLAN, b"first")
    approval = await request_write(tools, "approved")
    await workspace_files.write(tools.workspace_files(), PLAN, b"second")
    result = await approve(tools, approval)
    assert result.is_error
    assert result.content == (
        "Error: plan.md changed since the call was requested; nothing was written.\n"
        "--- when requested: version 1\nfirst\n--- now: version 2\nsecond"
    )
    assert result.structured["current"] == {"version": 2, "text": "second", "note": ""}
    assert (await tools.files())["plan.md"] == b"second"


async def test_a_result_with_a_secret_is_redacted_whole(anywhere: Ports) -> None:
    tools = await create_tool_tenant(anywhere, mode="ask")
    for text in (b'quoted "open"-sesame', b"open-sesame"):
        await workspace_files.write(tools.workspace_files(), PLAN, text)
        approval = await request_write(tools, "approved")
        await workspace_files.write(tools.workspace_files(), PLAN, b"second " + text)
        await secrets.put(tools.ports, tools.owner, "till", text.decode())
        result = await approve(tools, approval)
        assert "sesame" not in str(result)
        requested = {"version": approval.expected_version, "text": "[REDACTED:till]", "note": ""}
        assert result.structured["requested"] == requested


async def test_creation_and_deletion_count_as_changes(anywhere: Ports) -> None:
    tools = await create_tool_tenant(anywhere, mode="ask")
    created = await request_write(tools, "approved")
    await workspace_files.write(tools.workspace_files(), PLAN, b"by another")
    result = await approve(tools, created)
    assert "--- when requested: no file\n--- now: version 1\nby another" in result.content
    deleted = await request_write(tools, "approved")
    await files.delete(tools.ports, (tools.scope(),), PLAN, tools.owner)
    result = await approve(tools, deleted)
    assert "--- when requested: version 1\nby another\n--- now: no file" in result.content
    assert await tools.files() == {}


async def test_a_repeated_write_joins_only_while_the_file_is_the_same(anywhere: Ports) -> None:
    tools = await create_tool_tenant(anywhere, mode="ask")
    first = await request_write(tools, "approved")
    assert (await request_write(tools, "approved")).id == first.id
    await workspace_files.write(tools.workspace_files(), PLAN, b"by another")
    assert (await request_write(tools, "approved")).id != first.id
