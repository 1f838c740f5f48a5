"""Runs a tool call once per call id and replays its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from carrel.actions.approvals.approvals import ApprovalRequest
from carrel.actions.idempotency import IdempotentOperation, ResultCodec, call_key, run_once
from carrel.core.approvals import ToolResult, call_fingerprint, scoped_call_name
from carrel.core.errors import Conflict, IdempotencyInFlight
from carrel.tools.tool import ToolContext, ToolReply

_decode: Final = msgspec.json.Decoder(ToolResult).decode


async def run_call_once(
    context: ToolContext,
    approval_request: ApprovalRequest,
    run_tool: Callable[[], Awaitable[ToolReply]],
) -> ToolReply:
    """Run the tool, or return the result stored under the call id within 24 hours.

    Raises Conflict if the id was used for a different call, IdempotencyInFlight if the call is
    running or was interrupted.
    """
    name = scoped_call_name(
        approval_request.agent,
        approval_request.session,
        approval_request.run,
        approval_request.call or "",
        approval_request.mode,
    )
    sessions = (approval_request.session, context.run.session if context.run else None)
    operation = IdempotentOperation(
        key=call_key(context.agent.tenant, approval_request.agent, sessions, name),
        fingerprint=call_fingerprint(approval_request.tool, approval_request.arguments),
        codec=_CODEC,
        mismatch=Conflict(
            "this call id was used for a different call", callId=approval_request.call
        ),
        in_progress=IdempotencyInFlight("the call with this id is running or was interrupted"),
        lease_ms=None,
        polls=False,
    )
    return await run_once(context.ports, operation, run_tool)


def _encode_reply(reply: ToolReply) -> tuple[int, bytes]:
    result = ToolResult(reply.content, reply.is_error, reply.structured)
    return 200, msgspec.json.encode(result)


def _decode_reply(_: int, content: bytes) -> ToolReply:
    result = _decode(content)
    return ToolReply(result.content, result.is_error, result.structured)


_CODEC: Final = ResultCodec(_encode_reply, _decode_reply)
