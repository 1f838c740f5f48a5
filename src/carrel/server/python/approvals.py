"""What waits for somebody's yes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel.actions.approvals import approvals
from carrel.core import approvals as core
from carrel.core.approvals import ApprovalStatus
from carrel.server.python.caller import Resource, one_of, when
from carrel.tools.approved_calls import resume
from carrel.tools.calls import reply_from_approval
from carrel.tools.tool import ToolReply


@dataclass(frozen=True, slots=True)
class Approval:
    """A call of an agent that somebody was asked about."""

    id: str
    agent: str
    tool: str
    input: Mapping[str, Any]
    """The arguments, without secrets."""
    status: str
    reason: str
    workspace: str | None
    sandbox: str | None
    requested_at: datetime
    expires_at: datetime
    result: ToolReply | None
    """What the model is told, once nothing more becomes of it."""


def _approval(one: core.Approval) -> Approval:
    return Approval(
        one.id,
        one.agent,
        one.tool,
        one.shown,
        one.status.value,
        one.reason,
        one.workspace,
        one.sandbox,
        when(one.requested),
        when(one.expires),
        reply_from_approval(one) if one.lasts else None,
    )


class Approvals(Resource):
    """Calls of agents that somebody was asked about."""

    async def list(
        self, *, status: str | None = None, agent: str | None = None
    ) -> tuple[Approval, ...]:
        """All of them, the oldest first; with ``requested`` those that wait for an answer."""
        chosen = None if status is None else one_of(ApprovalStatus, status, "status")
        found: list[Approval] = []
        cursor: str | None = ""
        while cursor is not None:
            page = await approvals.listing(
                self._ports, self._actor, agent=agent, status=chosen, cursor=cursor, limit=500
            )
            found += map(_approval, page.items)
            cursor = page.next
        return tuple(found)

    async def get(self, id: str, *, wait: int = 0) -> Approval:
        """One of them, with its result once it is over: for that it waits some seconds."""
        return _approval(await approvals.wait_until_closed(self._ports, self._actor, id, wait))

    async def answer(self, id: str, approved: bool, reason: str = "") -> Approval:
        """Say yes or no, the reason of which the model sees. The same answer again is fine.

        What is approved is run here before this returns, since there may be no server that would.
        Raises Taken where the answer was another, Gone where it is too late.
        """
        said = await approvals.answer(self._ports, self._actor, id, approved, reason)
        if said.status is ApprovalStatus.APPROVED:
            await resume(self._ports, said.tenant, said.id)
        return _approval(await approvals.get(self._ports, self._actor, id))
