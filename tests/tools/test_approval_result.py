"""Tool ``approval_result``: what became of a call that waited for approval."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.tenant_fixture import ApprovalTenant, run_approval_workers

from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.tools.calls import available_tools, open_tool_context, run_call
from carrel.tools.tool import ToolReply

pytestmark = pytest.mark.anyio


async def result(tenant: ApprovalTenant, id: str, **more: Any) -> ToolReply:
    agent, scope = more.pop("agent", tenant.agent.id), more.pop("scope", None)
    context = await open_tool_context(tenant.ports, more.pop("by", tenant.kate), agent, scope=scope)
    return await run_call(context, "approval_result", {"approval_id": id, **more})


async def test_the_result_is_the_calls_own(tenant: ApprovalTenant) -> None:
    waiting, denied = await tenant.request_approval("ls"), await tenant.request_approval("rm")
    reply = await result(tenant, waiting.id)
    summary = {"id": waiting.id, "status": "requested", "tool": "bash"}
    assert (reply.is_error, reply.approval, reply.structured) == (
        False,
        None,
        {"approval": summary},
    )
    assert "waiting for a person" in reply.content
    await tenant.answer(denied, False, reason="never")
    assert (await result(tenant, denied.id)).content == "Error: denied by a person: never"
    async with run_approval_workers(tenant.ports):
        await tenant.answer(waiting)
        done = await result(tenant, waiting.id, wait=25)
    assert (done.content, done.is_error) == ("ran ls", False)
    assert tenant.shell.ran == ["ls"]


async def test_other_agents_and_shared_sessions_learn_nothing(tenant: ApprovalTenant) -> None:
    config = {"sandbox": "sb_" + "0" * 24}
    await agents.create(tenant.ports, tenant.ada, NewAgent("marco", "Marco", config=config))
    approval, shared = (
        await tenant.request_approval("ls"),
        await tenant.request_approval("ls", scope="shared"),
    )
    refused = [
        await result(tenant, approval.id, by=tenant.ada, agent="marco"),
        await result(tenant, approval.id, scope="shared"),
        await result(tenant, "apr_none"),
    ]
    assert [(reply.is_error, "no such" in reply.content) for reply in refused] == [(True, True)] * 3
    assert not (await result(tenant, shared.id, scope="shared")).is_error


async def test_only_agents_whose_calls_may_need_approval_have_it(tenant: ApprovalTenant) -> None:
    plain = await agents.create(tenant.ports, tenant.ada, NewAgent("plain", "Plain"))
    for agent, expected in ((tenant.agent, True), (plain, False)):
        context = await open_tool_context(tenant.ports, tenant.ada, agent.id)
        names = [tool.name for tool in available_tools(context)]
        assert ("approval_result" in names) is expected
