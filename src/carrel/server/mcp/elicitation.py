"""Asking whoever is at the client whether a call may run.

A person who may answer approvals is asked where the client can show a form, and their answer counts
as if they had given it elsewhere. Nobody else is: with the key of an agent it would be the agent
that said yes to itself, and a service is no person. They are told which approval is waited for.
"""

from __future__ import annotations

import json
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from carrel.actions.approvals import approvals
from carrel.core.approvals import Approval, ApprovalStatus, fingerprint
from carrel.core.errors import NotFound, ValidationError
from carrel.server.mcp.request_context import McpRequest
from carrel.tools.calls import reply_from_approval
from carrel.tools.tool import ToolContext, ToolReply

APPROVED_CALL_TIMEOUT: Final = 300.0
"""Seconds that a call which was approved has to come to its end."""
_KEY: Final = "approval"
_LONGEST: Final = 2000
"""Characters of the arguments that are shown; the approval itself has all of them."""
_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "approved": {
            "type": "boolean",
            "title": "Let it run?",
            "description": "Yes runs it once, just as it is shown.",
            "default": False,
        },
        "reason": {
            "type": "string",
            "title": "Reason",
            "description": "The agent sees it.",
            "maxLength": approvals.LONGEST_REASON,
        },
    },
    "required": ["approved"],
}


async def ask_client(
    visit: McpRequest, context: ToolContext, ctx: ServerRequestContext[Any, Any], waits: Approval
) -> ToolReply | types.InputRequiredResult | None:
    """What came of asking, or a form to be filled in; None where nobody can be asked here."""
    if waits.status is not ApprovalStatus.REQUESTED or not await _may_be_asked(visit, ctx, waits):
        return None
    form = types.ElicitRequestFormParams(message=_message(context, waits), requested_schema=_FORM)
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        wanted: dict[str, Any] = {_KEY: types.ElicitRequest(params=form)}
        return types.InputRequiredResult(input_requests=wanted, request_state=waits.id)
    if not ctx.session.can_send_request:
        return None
    said = await ctx.session.elicit_form(form.message, _FORM, ctx.request_id)
    return await _apply_answer(visit, waits, said)


async def handle_elicitation_result(
    visit: McpRequest, context: ToolContext, params: types.CallToolRequestParams
) -> ToolReply:
    """What came of a call that was asked about, by the form that is sent with it.

    Raises Missing where it is not what was asked about, whoever's it is, and Forbidden.
    """
    id = params.request_state or ""
    waits = await approvals.get(visit.ports, visit.actor, id)
    same = waits.digest == fingerprint(params.name, params.arguments or {})
    mine = waits.agent == context.agent.id and waits.asker.name == visit.actor.name
    if not (same and mine):
        raise NotFound(f"there is no approval {id} of this call")
    said = (params.input_responses or {}).get(_KEY)
    if not isinstance(said, types.ElicitResult):
        return reply_from_approval(waits)
    return await _apply_answer(visit, waits, said)


async def _may_be_asked(
    visit: McpRequest, ctx: ServerRequestContext[Any, Any], waits: Approval
) -> bool:
    able = ctx.session.client_capabilities
    if able is None or able.elicitation is None:
        return False
    if able.elicitation.form is None and able.elicitation.url is not None:
        return False
    return await approvals.may_answer(visit.ports, visit.actor, waits)


async def _apply_answer(visit: McpRequest, waits: Approval, said: types.ElicitResult) -> ToolReply:
    """A form that was sent is an answer, and so is to decline; who only closed it gave none."""
    if said.action == "cancel":
        return reply_from_approval(waits)
    given = said.content or {}
    approved = said.action == "accept" and given.get("approved") is True
    reason = given.get("reason", "")
    if not isinstance(reason, str):
        raise ValidationError("reason is a text")
    await approvals.answer(visit.ports, visit.actor, waits.id, approved, reason)
    return reply_from_approval(
        await approvals.wait_until_closed(visit.ports, visit.actor, waits.id, APPROVED_CALL_TIMEOUT)
    )


def _message(context: ToolContext, waits: Approval) -> str:
    told = json.dumps(waits.shown, ensure_ascii=False, indent=1)
    shown = told if len(told) <= _LONGEST else f"{told[:_LONGEST]}… (cut)"
    return f"{context.slug} wants to call {waits.tool}:\n{shown}"
