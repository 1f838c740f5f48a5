"""A tenant with an agent whose commands need approval."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from tests.support.shell_commands import SANDBOX_CONFIG, Shell, store_sandbox
from tests.support.tenants import create_tenant

from carrel.actions.accounts import credentials, keys
from carrel.actions.accounts.keys import KeySpec
from carrel.actions.agents import agents
from carrel.actions.agents.agents import NewAgent
from carrel.actions.approvals import approvals
from carrel.core.access import Actor, CredentialKind
from carrel.core.approvals import Approval
from carrel.core.store.record import Record
from carrel.ports import Ports
from carrel.tools.approved_calls import run_approvals
from carrel.tools.calls import open_tool_context, run_call
from carrel.tools.tool import ToolReply


@dataclass
class ApprovalTenant:
    ports: Ports
    ada: Actor
    """The owner."""
    kate: Actor
    """The agent itself, by its key."""
    agent: Record
    shell: Shell

    async def bash(self, command: str = "ls", **more: Any) -> ToolReply:
        """The reply to the agent's call."""
        call_scope = {n: more.pop(n) for n in ("session", "run", "scope") if n in more}
        context = await open_tool_context(
            self.ports, more.pop("by", self.kate), self.agent.id, **call_scope
        )
        call_id = more.pop("call", None)
        return await run_call(context, "bash", {"command": command, **more}, call_id)

    async def request_approval(self, command: str = "ls", **more: Any) -> Approval:
        reply = await self.bash(command, **more)
        assert reply.approval is not None, reply
        return reply.approval

    async def answer(self, approval: Approval, yes: bool = True, **more: Any) -> Approval:
        author = more.pop("by", self.ada)
        return await approvals.answer(self.ports, author, approval.id, yes, **more)

    async def get(self, approval: Approval) -> Approval:
        return await approvals.get(self.ports, self.ada, approval.id)

    async def wait_until_closed(self, approval: Approval) -> Approval:
        async with asyncio.timeout(30):
            closed = await approvals.wait_until_closed(self.ports, self.ada, approval.id, 30)
        assert closed.is_final, closed
        return closed

    async def run_two_other_calls(self) -> None:
        """Run two other approved calls, so that the worker has scanned everything twice."""
        for _ in range(2):
            other = await self.request_approval("other")
            await self.answer(other)
            await self.wait_until_closed(other)
        assert self.shell.ran[-2:] == ["other", "other"]
        del self.shell.ran[-2:], self.shell.by[-2:]


async def create_approval_tenant(ports: Ports, shell: Shell, slug: str = "acme") -> ApprovalTenant:
    _, ada = await create_tenant(ports, slug)
    await store_sandbox(ports, ada.tenant)
    agent = await agents.create(ports, ada, NewAgent("kate", "Kate", config=SANDBOX_CONFIG))
    created = await keys.create(ports, ada, KeySpec("kate's", CredentialKind.AGENT, agent=agent.id))
    kate = await credentials.authenticate(ports, created.token)
    return ApprovalTenant(ports, ada, kate, agent, shell)


@asynccontextmanager
async def run_approval_workers(*stores: Ports) -> AsyncIterator[None]:
    """Run approved calls in the background, one worker for each store."""
    stop = asyncio.Event()
    tasks = [asyncio.create_task(run_approvals(ports, stop)) for ports in stores]
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(*tasks)
