"""REST endpoints for tool call approvals."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from carrel.actions.approvals import approvals
from carrel.actions.approvals.approvals import MAX_REASON_LENGTH
from carrel.actions.approvals.transitions import load_shown_arguments
from carrel.core.access import Permission
from carrel.core.approvals import Approval, ApprovalStatus, ToolResult
from carrel.core.errors import Busy, Conflict, Expired, Forbidden, NotFound, ValidationError
from carrel.core.identifiers import TimestampMs
from carrel.core.runs import Audience
from carrel.ports import Ports
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import Id, PageQuery, Total
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

_TAG: Final = "Approvals"
_PATH: Final = "/v1/approvals"
_MAX_WAIT_SECONDS: Final = 25
"""Below the usual timeout of HTTP clients."""


class ApprovalListQuery(PageQuery, frozen=True):
    status: ApprovalStatus | None = None
    agent: (
        Annotated[Id, Meta(description="Only approvals of this agent, by id or slug.")] | None
    ) = None


class ApprovalWaitQuery(RequestModel, frozen=True):
    wait: Annotated[
        int,
        Meta(
            ge=0,
            le=_MAX_WAIT_SECONDS,
            description="Seconds to wait until the approval is closed.",
        ),
    ] = 0


class ApprovalDecisionBody(RequestModel, frozen=True):
    approved: bool
    reason: Annotated[
        str, Meta(max_length=MAX_REASON_LENGTH, description="Shown to the model.")
    ] = ""


class ToolResultModel(ResponseModel, frozen=True):
    """Result of a tool call."""

    content: str
    is_error: bool
    structured: Any | UnsetType = UNSET


class ApprovalModel(ResponseModel, frozen=True):
    """A tool call that requires approval."""

    id: str
    agent_id: str
    tool: str
    input: dict[str, Any]
    """Arguments with secrets replaced by names; the call runs with the originals."""
    input_hash: str
    status: ApprovalStatus
    workspace_id: str | None
    sandbox_id: str | None
    expected_version: int | None
    """Version of the file that an approved write may replace; 0 if there was none."""
    scope: Audience
    session_id: str | None
    run_id: str | None
    call_id: str | None
    requested_by: str
    requested_at: Rfc3339
    expires_at: Rfc3339
    answered_by: str | None
    answered_at: Rfc3339 | None
    reason: str
    """Reason of the decision or cancellation."""
    started_at: Rfc3339 | None
    finished_at: Rfc3339 | None
    result: ToolResultModel | None
    """Result for the model, once the approval is closed."""


class ApprovalPageModel(ResponseModel, frozen=True):
    items: list[ApprovalModel]
    next: str | None = None
    total: Total = None


async def approval_to_model(ports: Ports, approval: Approval) -> ApprovalModel:
    return ApprovalModel(
        id=approval.id,
        agent_id=approval.agent,
        tool=approval.tool,
        input=dict(await load_shown_arguments(ports, approval)),
        input_hash=approval.digest,
        status=approval.status,
        workspace_id=approval.workspace,
        sandbox_id=approval.sandbox,
        expected_version=approval.expected_version,
        scope=approval.mode,
        session_id=approval.session,
        run_id=approval.run,
        call_id=approval.call,
        requested_by=approval.asker.name,
        requested_at=rfc3339(approval.requested),
        expires_at=rfc3339(approval.expires),
        answered_by=approval.answered_by,
        answered_at=_optional_rfc3339(approval.answered),
        reason=approval.reason,
        started_at=_optional_rfc3339(approval.started),
        finished_at=_optional_rfc3339(approval.ended),
        result=_result_to_model(approval.model_result),
    )


def _optional_rfc3339(at: TimestampMs | None) -> str | None:
    return None if at is None else rfc3339(at)


def _result_to_model(result: ToolResult | None) -> ToolResultModel | None:
    if result is None:
        return None
    structured = UNSET if result.structured is None else result.structured
    return ToolResultModel(content=result.content, is_error=result.is_error, structured=structured)


@endpoint(
    "GET",
    _PATH,
    query=ApprovalListQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: ApprovalPageModel},
    refusals=(ValidationError, NotFound, Forbidden),
    id="approvals_list",
    tag=_TAG,
)
async def list_approvals(request: Request[None, ApprovalListQuery]) -> Response:
    """List approvals, oldest first; `status=requested` selects pending ones."""
    query = request.query
    page = await approvals.list_approvals(
        request.ports,
        request.actor,
        agent=query.agent,
        status=query.status,
        cursor=query.cursor,
        limit=query.limit,
    )
    items = [await approval_to_model(request.ports, approval) for approval in page.items]
    return Response.json(ApprovalPageModel(items=items, next=page.next, total=page.total))


@endpoint(
    "GET",
    _PATH + "/{id}",
    query=ApprovalWaitQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: ApprovalModel},
    refusals=(ValidationError, NotFound),
    id="approvals_get",
    tag=_TAG,
)
async def get(request: Request[None, ApprovalWaitQuery]) -> Response:
    """Get an approval, optionally waiting until it is closed.

    A closed approval has a result, even if the call never ran.
    """
    approval = await approvals.wait_until_closed(
        request.ports, request.actor, request.params["id"], float(request.query.wait)
    )
    return Response.json(await approval_to_model(request.ports, approval))


@endpoint(
    "POST",
    _PATH + "/{id}",
    body=ApprovalDecisionBody,
    permission=Permission.WORKSPACE_WRITE,
    responses={200: ApprovalModel},
    refusals=(ValidationError, NotFound, Forbidden, Conflict, Expired, Busy),
    id="approvals_answer",
    tag=_TAG,
    idempotent=True,
)
async def answer(request: Request[ApprovalDecisionBody]) -> Response:
    """Approve or deny a tool call.

    Allowed for owners and admins, and for the person the agent is paired with or owned by. An
    approved call runs at once with the permissions of the requester. Repeating the same decision
    has no effect; a different or late decision is refused.
    """
    decision = request.body
    approval = await approvals.answer(
        request.ports, request.actor, request.params["id"], decision.approved, decision.reason
    )
    return Response.json(await approval_to_model(request.ports, approval))


ENDPOINTS: Final = (list_approvals, get, answer)
