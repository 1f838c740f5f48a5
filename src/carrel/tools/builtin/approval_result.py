"""Tool `approval_result`: returns the result of a call that awaited approval."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.approvals import approvals
from carrel.core.errors import NotFound
from carrel.tools.approval_reply import approval_summary, reply_from_approval
from carrel.tools.tool import Tool, ToolArguments, ToolContext, ToolReply

_MAX_WAIT_SECONDS: Final = 25


class ApprovalResultArguments(ToolArguments, frozen=True):
    approval_id: Annotated[
        str, Meta(min_length=1, max_length=128, description="Id from the reply to the call.")
    ]
    wait: Annotated[
        int, Meta(ge=0, le=_MAX_WAIT_SECONDS, description="Seconds to wait for the result.")
    ] = 0


async def _run(context: ToolContext, args: ApprovalResultArguments) -> object:
    approval = await approvals.get(context.ports, context.actor, args.approval_id)
    if approval.agent != context.agent.id or not approval.is_visible_to(context.audience):
        raise NotFound(f"no such approval: {args.approval_id}")
    closed = await approvals.wait_until_closed(
        context.ports, context.actor, approval.id, float(args.wait)
    )
    reply = reply_from_approval(closed)
    if reply.approval is None:
        return reply
    return ToolReply(reply.content, structured={"approval": approval_summary(closed)})


TOOL: Final = Tool(
    "approval_result",
    "Returns the result of a call that was waiting for a person's approval: its output, the "
    "reason of a denial, or that it still waits. Does not run the call again.",
    ApprovalResultArguments,
    _run,
)
