"""REST endpoints that decline an offered pinned file, or merge it into an override."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta

from carrel.actions.overlay import bulk_reviews, pin_declines, pin_merges
from carrel.actions.overlay.pin_declines import DeclinedOffer
from carrel.actions.overlay.pin_merges import MergedOverride
from carrel.core.access import Permission
from carrel.core.errors import (
    Busy,
    Conflict,
    Forbidden,
    NotFound,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.identifiers import Digest, Path
from carrel.core.overlay.review_records import MAX_REASON_LENGTH
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Sha256
from carrel.server.rest.files.pin_models import (
    BulkOutcomeModel,
    OfferedSha256,
    PinModel,
    outcome_to_model,
    parse_offer,
    pin_to_model,
)
from carrel.server.rest.files.pins import rebuild_review

_TAG: Final = "Pins"
_REFUSALS: Final = (ValidationError, Forbidden, NotFound, WorkspaceConflict, Busy)


class DeclinePinBody(RequestModel, frozen=True):
    sha256: OfferedSha256
    reason: Annotated[
        str, Meta(min_length=1, max_length=MAX_REASON_LENGTH, description="Stored in the history.")
    ]


class MergeProposalModel(ResponseModel, frozen=True):
    """Merge of an override with the offered content."""

    sha256: Sha256
    """Digest of the offered content."""
    if_match: str
    """ETag of the override that was merged."""
    content: str
    """With the marks of a conflict where both changed the same lines."""
    conflicts: Annotated[int, Meta(ge=0)]


class MergePinBody(RequestModel, frozen=True):
    sha256: Sha256
    """Digest of the offered content; refused if it is no longer the latest."""
    content: str
    """Merged text, without marks of a conflict."""
    if_match: Annotated[str, Meta(min_length=1, max_length=200)]
    """ETag of the override that was merged; refused if it has changed."""


class BulkDeclineModel(ResponseModel, frozen=True):
    """Results of a bulk decline."""

    review_id: str | None
    """Null if no agent was offered the content."""
    declined: int
    failed: int
    results: list[BulkOutcomeModel]


@endpoint(
    "POST",
    "/v1/agents/{id}/pins/{path...}/decline",
    permission=Permission.TENANT_ADMIN,
    body=DeclinePinBody,
    responses={200: PinModel},
    refusals=_REFUSALS,
    id="pins_decline",
    tag=_TAG,
    idempotent=True,
    rebuild=rebuild_review,
)
async def decline(request: Request[DeclinePinBody]) -> Response:
    """Decline a pinned update for one agent.

    It is no longer offered; the next one is. Accepting it later takes the decline back.
    """
    name, path, body = request.params["id"], Path(request.params["path"]), request.body
    declined = DeclinedOffer(parse_offer(body.sha256), body.reason)
    pin = await pin_declines.decline(
        request.ports, request.actor, name, path, declined, request.idempotency_key
    )
    return Response.json(pin_to_model(pin))


@endpoint(
    "GET",
    "/v1/agents/{id}/pins/{path...}/merge",
    permission=Permission.TENANT_ADMIN,
    responses={200: MergeProposalModel},
    refusals=(ValidationError, Forbidden, NotFound, Conflict),
    id="pins_propose_merge",
    tag=_TAG,
)
async def propose_merge(request: Request) -> Response:
    """Merge a pinned update into an agent's override, to be edited before it is saved.

    The base is the pinned content. Nothing is stored.
    """
    proposal = await pin_merges.propose_merge(
        request.ports, request.actor, request.params["id"], Path(request.params["path"])
    )
    return Response.json(
        MergeProposalModel(
            sha256=proposal.offered.removeprefix("sha256:"),
            if_match=proposal.etag,
            content=proposal.merged.text,
            conflicts=proposal.merged.conflicts,
        )
    )


@endpoint(
    "POST",
    "/v1/agents/{id}/pins/{path...}/merge",
    permission=Permission.TENANT_ADMIN,
    body=MergePinBody,
    responses={200: PinModel},
    refusals=(*_REFUSALS, Conflict, WorkspaceTooLarge),
    id="pins_merge",
    tag=_TAG,
    idempotent=True,
    rebuild=rebuild_review,
)
async def merge(request: Request[MergePinBody]) -> Response:
    """Save a merged text as the agent's override, and move the pin to the reviewed content."""
    name, path, body = request.params["id"], Path(request.params["path"]), request.body
    merged = MergedOverride(Digest(f"sha256:{body.sha256}"), body.content, body.if_match)
    pin = await pin_merges.merge(
        request.ports, request.actor, name, path, merged, request.idempotency_key
    )
    return Response.json(pin_to_model(pin))


@endpoint(
    "POST",
    "/v1/templates/{id}/pins/{path...}/decline",
    permission=Permission.TENANT_ADMIN,
    body=DeclinePinBody,
    responses={200: BulkDeclineModel},
    refusals=_REFUSALS,
    id="pins_decline_for_all",
    tag=_TAG,
    idempotent=True,
)
async def decline_for_all(request: Request[DeclinePinBody]) -> Response:
    """Decline a pinned update for every agent of a template that is offered it."""
    return await _decline_for_all(request, request.params["id"])


@endpoint(
    "POST",
    "/v1/defaults/pins/{path...}/decline",
    permission=Permission.TENANT_ADMIN,
    body=DeclinePinBody,
    responses={200: BulkDeclineModel},
    refusals=_REFUSALS,
    id="pins_decline_default_for_all",
    tag=_TAG,
    idempotent=True,
)
async def decline_default_for_all(request: Request[DeclinePinBody]) -> Response:
    """Decline a pinned update for every agent that is offered it from the defaults."""
    return await _decline_for_all(request, None)


async def _decline_for_all(request: Request[Any], template: str | None) -> Response:
    path, offered = Path(request.params["path"]), parse_offer(request.body.sha256)
    review = await bulk_reviews.decline_for_all(
        request.ports, request.actor, template, path, offered, request.body.reason
    )
    results = [outcome_to_model(outcome) for outcome in review.outcomes]
    declined = sum(outcome.success for outcome in results)
    return Response.json(
        BulkDeclineModel(
            review_id=review.id,
            declined=declined,
            failed=len(results) - declined,
            results=results,
        )
    )


ENDPOINTS: Final = (decline, propose_merge, merge, decline_for_all, decline_default_for_all)
