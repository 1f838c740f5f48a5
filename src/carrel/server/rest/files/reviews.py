"""REST endpoints for past reviews of pinned files, and for the versions that agents have."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from carrel.actions.overlay import pinned_versions, review_history, review_undo
from carrel.actions.overlay.pinned_versions import PinnedVersion
from carrel.actions.overlay.review_history import ReviewFilter, ReviewPage
from carrel.core.access import Permission
from carrel.core.errors import Busy, Conflict, Forbidden, NotFound, ValidationError
from carrel.core.identifiers import Path
from carrel.core.overlay.review_records import ReviewDecision, ReviewRecord
from carrel.server.http.endpoint import Request, ResponseModel, endpoint
from carrel.server.http.query_fields import PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import PositiveInt, Rfc3339, Sha256, rfc3339
from carrel.server.rest.files.pin_models import BulkRollBackModel, outcome_to_model

_TAG: Final = "Reviews"
_Count = Annotated[int, Meta(ge=0)]


class ReviewsQuery(PageQuery, frozen=True):
    agent_id: Annotated[str | None, Meta(description="Only of this agent.")] = None
    template_id: Annotated[str | None, Meta(description="Only of this template's agents.")] = None
    decision: Annotated[ReviewDecision | None, Meta(description="Only with this decision.")] = None


class ReviewModel(ResponseModel, frozen=True):
    """What a person decided about an offered pinned file."""

    id: str
    decision: ReviewDecision
    path: str
    at: Rfc3339
    author: str
    agent_id: str | None
    """The one agent; null for a review of many."""
    agent_name: str | None
    agent_slug: str | None
    template_id: str | None
    """Template of these agents; null for those that inherit a default."""
    template_name: str | None
    sha256: Sha256 | None
    """Digest of the reviewed content; null if it was the file's removal."""
    reason: str
    part: str
    """Which part of the agents was criteria; empty for all."""
    changed: _Count
    failed: _Count
    rolls_back: str | None
    """Review that this one rolled back."""
    rolled_back_by: str | None


class ReviewListModel(ResponseModel, frozen=True):
    items: list[ReviewModel]
    next: str | None
    total: _Count


class PinnedVersionModel(ResponseModel, frozen=True):
    """Agents that have the same pinned content."""

    sha256: Sha256 | None
    """Null for agents that never had the file."""
    agents: _Count
    overridden: _Count
    """Those among them that are served an override."""
    version: PositiveInt | None
    """Version of the layer with this content."""
    at: Rfc3339 | None
    author: str | None


class PinnedVersionsModel(ResponseModel, frozen=True):
    total: _Count
    offered_sha256: Sha256 | None
    declined: _Count
    """Agents for which the offered content was declined."""
    versions: list[PinnedVersionModel]


def _hex(digest: str | None) -> str | None:
    return digest.removeprefix("sha256:") if digest else None


def _review_to_model(id: str, review: ReviewRecord, page: ReviewPage) -> ReviewModel:
    agent = page.agents.get(review.agent_id or "")
    return ReviewModel(
        id=id,
        decision=review.decision,
        path=review.path,
        at=rfc3339(review.at),
        author=review.author,
        agent_id=review.agent_id,
        agent_name=agent.name if agent else None,
        agent_slug=agent.slug if agent else None,
        template_id=review.template_id,
        template_name=page.templates.get(review.template_id or ""),
        sha256=_hex(review.sha256),
        reason=review.reason,
        part=review.part,
        changed=review.changed,
        failed=review.failed,
        rolls_back=review.rolls_back,
        rolled_back_by=review.rolled_back_by,
    )


def _version_to_model(item: PinnedVersion) -> PinnedVersionModel:
    version = item.version
    return PinnedVersionModel(
        sha256=_hex(item.sha256),
        agents=item.agents,
        overridden=item.overridden,
        version=version.head.version if version else None,
        at=rfc3339(version.head.at) if version else None,
        author=version.author if version else None,
    )


@endpoint(
    "GET",
    "/v1/reviews",
    permission=Permission.TENANT_ADMIN,
    query=ReviewsQuery,
    responses={200: ReviewListModel},
    refusals=(Forbidden, NotFound),
    id="reviews_list",
    tag=_TAG,
)
async def list_reviews(request: Request[None, ReviewsQuery]) -> Response:
    """List past reviews of pinned files, newest first."""
    query = request.query
    criteria = ReviewFilter(query.agent_id, query.template_id, query.decision)
    page = await review_history.list_reviews(
        request.ports, request.actor, criteria, after=query.cursor, limit=query.limit
    )
    items = [_review_to_model(id, review, page) for id, review in page.reviews]
    return Response.json(ReviewListModel(items=items, next=page.next, total=page.total))


@endpoint(
    "POST",
    "/v1/reviews/{id}/rollback",
    permission=Permission.TENANT_ADMIN,
    responses={200: BulkRollBackModel},
    refusals=(ValidationError, Forbidden, NotFound, Conflict, Busy),
    id="reviews_roll_back",
    tag=_TAG,
    idempotent=True,
)
async def roll_back(request: Request) -> Response:
    """Return every agent that a review changed to what it was before, overrides included.

    Returns one result per agent; one whose file has changed since is not changed.
    """
    review = await review_undo.roll_back_review(request.ports, request.actor, request.params["id"])
    results = [outcome_to_model(outcome) for outcome in review.outcomes]
    rolled_back = sum(outcome.success for outcome in results)
    return Response.json(
        BulkRollBackModel(
            rolled_back=rolled_back,
            failed=len(results) - rolled_back,
            results=results,
            review_id=review.id,
        )
    )


@endpoint(
    "GET",
    "/v1/templates/{id}/pins/{path...}/versions",
    permission=Permission.TENANT_READ,
    responses={200: PinnedVersionsModel},
    refusals=(ValidationError, Forbidden, NotFound),
    id="pins_count_versions",
    tag=_TAG,
)
async def count_versions(request: Request) -> Response:
    """Count which version of a pinned file the agents of a template have.

    Also requires `workspace:read`.
    """
    return await _count_versions(request, request.params["id"])


@endpoint(
    "GET",
    "/v1/defaults/pins/{path...}/versions",
    permission=Permission.TENANT_READ,
    responses={200: PinnedVersionsModel},
    refusals=(ValidationError, Forbidden),
    id="pins_count_default_versions",
    tag=_TAG,
)
async def count_default_versions(request: Request) -> Response:
    """Count which version the agents have that inherit a pinned file from the defaults.

    Also requires `workspace:read`.
    """
    return await _count_versions(request, None)


async def _count_versions(request: Request, template: str | None) -> Response:
    request.actor.require(Permission.WORKSPACE_READ)
    counted = await pinned_versions.count_pinned_versions(
        request.ports, request.actor, template, Path(request.params["path"])
    )
    return Response.json(
        PinnedVersionsModel(
            total=counted.total,
            offered_sha256=_hex(counted.offered),
            declined=counted.declined,
            versions=list(map(_version_to_model, counted.versions)),
        )
    )


ENDPOINTS: Final = (list_reviews, roll_back, count_versions, count_default_versions)
