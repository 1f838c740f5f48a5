"""Approval of tool calls through MCP elicitation.

If the client can show a form and its user may answer approvals, the user is asked; the answer
counts like one given elsewhere. Agents and services are not asked, since an agent would approve its
own call; they receive the id of the pending approval.

The form shows the whole call. A call that is too long for a form is shown by its digest and a link,
and is approved only where the link leads.
"""

from __future__ import annotations

from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from carrel.actions.approvals import approvals
from carrel.actions.approvals.transitions import load_shown_arguments
from carrel.core.approvals import Approval, ApprovalStatus, call_fingerprint, format_arguments
from carrel.core.errors import NotFound, ValidationError
from carrel.server.mcp.request_context import McpRequest
from carrel.tools.approval_reply import reply_from_approval
from carrel.tools.tool import ToolContext, ToolReply

APPROVED_CALL_TIMEOUT: Final = 300.0
"""Seconds an approved call may take."""
MAX_FORM_CHARS: Final = 8000
"""Maximum characters of a call in a form."""
_REQUEST_KEY: Final = "approval"
_REASON: Final[dict[str, Any]] = {
    "type": "string",
    "title": "Reason",
    "description": "Shown to the agent.",
    "maxLength": approvals.MAX_REASON_LENGTH,
}
_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "approved": {
            "type": "boolean",
            "title": "Approve this call?",
            "description": "If approved, the call runs once, as shown.",
            "default": False,
        },
        "reason": _REASON,
    },
    "required": ["approved"],
}
_DENIAL_FORM: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "denied": {
            "type": "boolean",
            "title": "Deny this call?",
            "description": "Otherwise the call keeps waiting for an answer at the link.",
            "default": False,
        },
        "reason": _REASON,
    },
}


async def ask_client(
    request: McpRequest,
    context: ToolContext,
    ctx: ServerRequestContext[Any, Any],
    approval: Approval,
) -> ToolReply | types.InputRequiredResult | None:
    """Ask the user, or return a form request; None if this client cannot be asked."""
    if approval.status is not ApprovalStatus.REQUESTED or not await _can_elicit(
        request, ctx, approval
    ):
        return None
    text = format_arguments(await load_shown_arguments(request.ports, approval))
    form = types.ElicitRequestFormParams(
        message=_message(request, context, approval, text),
        requested_schema=_DENIAL_FORM if len(text) > MAX_FORM_CHARS else _FORM,
    )
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        input_requests: dict[str, Any] = {_REQUEST_KEY: types.ElicitRequest(params=form)}
        return types.InputRequiredResult(input_requests=input_requests, request_state=approval.id)
    if not ctx.session.can_send_request:
        return None
    result = await ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
    return await _apply_answer(request, approval, result)


async def handle_elicitation_result(
    request: McpRequest, context: ToolContext, params: types.CallToolRequestParams
) -> ToolReply:
    """Apply the form that was sent with a repeated call.

    Raises Forbidden, NotFound if the approval is not of this call and caller or is hidden from the
    audience, and ValidationError if the form approves a call that it did not show.
    """
    id = params.request_state or ""
    approval = await approvals.get(request.ports, request.actor, id)
    same_call = approval.digest == call_fingerprint(params.name, params.arguments or {})
    same_caller = approval.agent == context.agent.id and approval.asker.name == request.actor.name
    if not (same_call and same_caller and approval.is_visible_to(context.audience)):
        raise NotFound(f"no such approval of this call: {id}")
    result = (params.input_responses or {}).get(_REQUEST_KEY)
    if not isinstance(result, types.ElicitResult):
        return reply_from_approval(approval)
    return await _apply_answer(request, approval, result)


async def _can_elicit(
    request: McpRequest, ctx: ServerRequestContext[Any, Any], approval: Approval
) -> bool:
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        return False
    if capabilities.elicitation.form is None and capabilities.elicitation.url is not None:
        return False
    return await approvals.can_answer(request.ports, request.actor, approval)


async def _apply_answer(
    request: McpRequest, approval: Approval, result: types.ElicitResult
) -> ToolReply:
    """Submitting or declining the form is a decision; closing it is none."""
    content = result.content or {}
    approved = result.action == "accept" and content.get("approved") is True
    text = format_arguments(await load_shown_arguments(request.ports, approval))
    if len(text) > MAX_FORM_CHARS:
        if approved:
            link = _where_to_answer(request, approval)
            raise ValidationError(f"the form did not show the whole call; approve it at {link}")
        if result.action == "accept" and content.get("denied") is not True:
            return reply_from_approval(approval)
    if result.action == "cancel":
        return reply_from_approval(approval)
    reason = content.get("reason", "")
    if not isinstance(reason, str):
        raise ValidationError("reason must be a string")
    await approvals.answer(request.ports, request.actor, approval.id, approved, reason)
    return reply_from_approval(
        await approvals.wait_until_closed(
            request.ports, request.actor, approval.id, APPROVED_CALL_TIMEOUT
        )
    )


def _message(request: McpRequest, context: ToolContext, approval: Approval, text: str) -> str:
    heading = f"{context.slug} wants to call {approval.tool}"
    if len(text) <= MAX_FORM_CHARS:
        return f"{heading}:\n{text}"
    return (
        f"{heading} with {len(text):,} characters of arguments, which this form does not show"
        f" (SHA-256 {approval.digest}). Read the whole call and answer it at"
        f" {_where_to_answer(request, approval)}"
    )


def _where_to_answer(request: McpRequest, approval: Approval) -> str:
    if request.public_url:
        return f"{request.public_url}/approvals/{approval.id}"
    return f"a terminal: carrel approvals show {approval.id}"
