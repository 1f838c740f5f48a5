"""Approvals over HTTP: what waits for somebody's yes, the answer, and what became of it."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.approvals import approvals
from carrel.actions.approvals.approvals import LONGEST_REASON
from carrel.core.access import Permission
from carrel.core.approvals import Approval, ApprovalStatus, ToolResult
from carrel.core.errors import Busy, Conflict, Expired, Forbidden, NotFound, ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Id, PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import When, rfc3339

_TAG: Final = "Approvals"
_AT: Final = "/v1/approvals"
_LONGEST_WAIT: Final = 25
"""Seconds: less than clients usually have patience for."""


class ApprovalsQuery(PageQuery, frozen=True):
    status: ApprovalStatus | None = None
    agent: Annotated[Id, Meta(description="Only those of this agent, by id or slug.")] | None = None


class WaitQuery(RequestModel, frozen=True):
    wait: Annotated[
        int,
        Meta(
            ge=0,
            le=_LONGEST_WAIT,
            description="Seconds to wait for the end of it, if it is not over yet.",
        ),
    ] = 0


class ApprovalDecision(RequestModel, frozen=True):
    approved: bool
    reason: Annotated[str, Meta(max_length=LONGEST_REASON, description="The model sees it.")] = ""


class CallResult(ResponseModel, frozen=True):
    content: str
    is_error: bool
    structured: Any | UnsetType = UNSET


class ApprovalModel(ResponseModel, frozen=True):
    """A call that was asked about."""

    id: str
    agent_id: str
    tool: str
    input: dict[str, Any]
    """The arguments, with secrets replaced by their names; what runs are those that were given."""
    input_hash: str
    status: ApprovalStatus
    workspace_id: str | None
    sandbox_id: str | None
    scope: Audience
    session_id: str | None
    run_id: str | None
    call_id: str | None
    requested_by: str
    requested_at: When
    expires_at: When
    answered_by: str | None
    answered_at: When | None
    reason: str
    """What was said with the answer, or why it was cancelled."""
    started_at: When | None
    finished_at: When | None
    result: CallResult | None
    """What the model is told, once nothing more becomes of it."""


class ApprovalPage(ResponseModel, frozen=True):
    items: list[ApprovalModel]
    next: str | None = None


def approval_shown(approval: Approval) -> ApprovalModel:
    return ApprovalModel(
        id=approval.id,
        agent_id=approval.agent,
        tool=approval.tool,
        input=dict(approval.shown),
        input_hash=approval.digest,
        status=approval.status,
        workspace_id=approval.workspace,
        sandbox_id=approval.sandbox,
        scope=approval.mode,
        session_id=approval.session,
        run_id=approval.run,
        call_id=approval.call,
        requested_by=approval.asker.name,
        requested_at=rfc3339(approval.requested),
        expires_at=rfc3339(approval.expires),
        answered_by=approval.answered_by,
        answered_at=_when(approval.answered),
        reason=approval.reason,
        started_at=_when(approval.started),
        finished_at=_when(approval.ended),
        result=_result(approval.told),
    )


def _when(at: TimestampMs | None) -> str | None:
    return None if at is None else rfc3339(at)


def _result(told: ToolResult | None) -> CallResult | None:
    if told is None:
        return None
    structured = UNSET if told.structured is None else told.structured
    return CallResult(content=told.content, is_error=told.is_error, structured=structured)


@endpoint(
    "GET",
    _AT,
    query=ApprovalsQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: ApprovalPage},
    refusals=(ValidationError, NotFound, Forbidden),
    id="approvals_list",
    tag=_TAG,
)
async def listing(call: Request[None, ApprovalsQuery]) -> Response:
    """List approvals, the oldest first: with `status=requested` those that wait for an answer."""
    asked = call.query
    found = await approvals.listing(
        call.ports,
        call.actor,
        agent=asked.agent,
        status=asked.status,
        cursor=asked.cursor,
        limit=asked.limit,
    )
    shown = [approval_shown(one) for one in found.items]
    return Response.json(ApprovalPage(items=shown, next=found.next))


@endpoint(
    "GET",
    _AT + "/{id}",
    query=WaitQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: ApprovalModel},
    refusals=(ValidationError, NotFound),
    id="approvals_get",
    tag=_TAG,
)
async def get(call: Request[None, WaitQuery]) -> Response:
    """Look at one, at once or when it is over; then it has a result, also where it never ran."""
    found = await approvals.wait_until_closed(
        call.ports, call.actor, call.params["id"], float(call.query.wait)
    )
    return Response.json(approval_shown(found))


@endpoint(
    "POST",
    _AT + "/{id}",
    body=ApprovalDecision,
    permission=Permission.WORKSPACE_WRITE,
    responses={200: ApprovalModel},
    refusals=(ValidationError, NotFound, Forbidden, Conflict, Expired, Busy),
    id="approvals_answer",
    tag=_TAG,
)
async def answer(call: Request[ApprovalDecision]) -> Response:
    """Answer one: an owner or admin may, and the person whom the agent works for or belongs to.

    What is approved runs at once, by the rights of whoever asked. The same answer again changes
    nothing; another is refused, and one that comes too late.
    """
    said = call.body
    found = await approvals.answer(
        call.ports, call.actor, call.params["id"], said.approved, said.reason
    )
    return Response.json(approval_shown(found))


ENDPOINTS: Final = (listing, get, answer)
