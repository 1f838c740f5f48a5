"""Runs a tool call once per call id and replays its result."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from carrel.actions.approvals.approvals import ApprovalRequest
from carrel.core import errors
from carrel.core.approvals import ToolResult, call_fingerprint, scoped_call_name
from carrel.core.store.idempotency import Claimed, Completed, KeyMismatch, StoredResponse
from carrel.core.store.tree import IdempotencyKey
from carrel.tools.tool import ToolContext, ToolReply

_VAULT_CONTEXT: Final = "call"
_NO_TAKEOVER: Final = 0
"""Claims are never taken over, since an unfinished call may have had effects."""
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
    ports, tenant = context.ports, context.agent.tenant
    name = scoped_call_name(
        approval_request.agent,
        approval_request.session,
        approval_request.run,
        approval_request.call or "",
    )
    key = IdempotencyKey(tenant, "call", name)
    digest = call_fingerprint(approval_request.tool, approval_request.arguments)
    match await ports.idempotency.claim(key, digest, ports.clock.now(), _NO_TAKEOVER):
        case Claimed():
            reply = await run_tool()
            encoded = msgspec.json.encode(
                ToolResult(reply.content, reply.is_error, reply.structured)
            )
            await ports.idempotency.complete(
                key, StoredResponse(200, ports.vault.seal(encoded, _VAULT_CONTEXT))
            )
            return reply
        case Completed(stored):
            result = _decode(ports.vault.open(stored.sealed, _VAULT_CONTEXT))
            return ToolReply(result.content, result.is_error, result.structured)
        case KeyMismatch():
            raise errors.Conflict(
                "this call id was used for a different call", callId=approval_request.call
            )
        case _:
            raise errors.IdempotencyInFlight("the call with this id is running or was interrupted")
