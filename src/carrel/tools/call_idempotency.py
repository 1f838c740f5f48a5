"""Calls that are done once, however often they are sent: by the id that their caller gives them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from carrel.actions.approvals.approvals import ApprovalRequest
from carrel.core import errors
from carrel.core.approvals import ToolResult, call_name, fingerprint
from carrel.core.store.idempotency import Claimed, Completed, KeyMismatch, StoredResponse
from carrel.core.store.tree import IdempotencyKey
from carrel.tools.tool import ToolContext, ToolReply

_CONTEXT: Final = "call"
_NEVER: Final = 0
"""Since when a claim that came to nothing may be taken over: what may have been done is not."""
_decode: Final = msgspec.json.Decoder(ToolResult).decode


async def run_call_once(
    context: ToolContext, question: ApprovalRequest, work: Callable[[], Awaitable[ToolReply]]
) -> ToolReply:
    """Do it, or say what came of it when it was done, for a day.

    Raises Taken where a call of that id was another, InFlight where it is under way or was cut off.
    """
    ports, tenant = context.ports, context.agent.tenant
    name = call_name(question.agent, question.session, question.run, question.call or "")
    key = IdempotencyKey(tenant, "call", name)
    mark = fingerprint(question.tool, question.arguments)
    match await ports.idempotency.claim(key, mark, ports.clock.now(), _NEVER):
        case Claimed():
            reply = await work()
            kept = msgspec.json.encode(ToolResult(reply.content, reply.is_error, reply.structured))
            await ports.idempotency.complete(
                key, StoredResponse(200, ports.vault.seal(kept, _CONTEXT))
            )
            return reply
        case Completed(receipt):
            found = _decode(ports.vault.open(receipt.sealed, _CONTEXT))
            return ToolReply(found.content, found.is_error, found.structured)
        case KeyMismatch():
            raise errors.Conflict("a call of that id was another one", callId=question.call)
        case _:
            raise errors.IdempotencyInFlight(
                "a call of that id is under way, or was cut off while it was"
            )
