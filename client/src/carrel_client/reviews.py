"""Past reviews of pinned files, bulk declines, and the versions that agents have."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.errors import InvalidResponse, ValidationError
from carrel_client.http_messages import HttpRequest
from carrel_client.models import (
    Model,
    model_from_json,
    model_list_field,
    wire_name,
)
from carrel_client.requests import api_path, drop_none, get_json, send_with_retry


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAcceptOutcome:
    """Outcome of a bulk accept, decline or roll back for one agent."""

    agent: str
    """Id of the agent."""
    success: bool
    changed: bool
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkReview:
    """Result of a review for many agents."""

    id: str | None
    """Id to roll it back; None if no agent was changed."""
    outcomes: tuple[BulkAcceptOutcome, ...]
    waiting: tuple[str, ...] = ()
    """Ids of the agents that were not chosen and are still offered the content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeProposal(Model):
    """Merge of an override with the offered content, to be edited before it is saved."""

    sha256: str
    """Digest of the offered content."""
    if_match: str
    """ETag of the override that was merged."""
    content: str
    conflicts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Review(Model):
    """What a person decided about an offered pinned file."""

    id: str
    decision: str
    """accepted, declined, merged or rolled-back."""
    path: str
    at: datetime
    author: str
    agent: str | None = wire_name("agentId")
    agent_slug: str | None
    template: str | None = wire_name("templateId")
    template_name: str | None
    sha256: str | None
    reason: str
    part: str
    """Which part of the agents was chosen; empty for all."""
    changed: int
    failed: int
    rolls_back: str | None
    rolled_back_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPage(Model):
    items: tuple[Review, ...] = model_list_field(Review)
    total: int
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedVersion(Model):
    """Agents that have the same pinned content."""

    sha256: str | None
    """None for agents that never had the file."""
    agents: int
    overridden: int
    version: int | None
    at: datetime | None
    author: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedVersions(Model):
    total: int
    offered_sha256: str | None
    declined: int
    versions: tuple[PinnedVersion, ...] = model_list_field(PinnedVersion)


class Reviews(Resource[Driver]):
    """Past reviews of pinned files."""

    @operation
    def list(
        self,
        *,
        agent: str | None = None,
        template: str | None = None,
        decision: str | None = None,
        cursor: str = "",
        limit: int = 100,
    ) -> Steps[ReviewPage]:
        """A page of reviews, newest first; ``cursor`` is ``next`` of the page before."""
        filters = {"agentId": agent, "templateId": template, "decision": decision}
        query = {"limit": str(limit), **drop_none(filters)} | ({"cursor": cursor} if cursor else {})
        return model_from_json(ReviewPage, (yield from get_json(api_path("reviews"), query)))

    @operation
    def roll_back(self, review: str) -> Steps[BulkReview]:
        """Return every agent that a review changed to what it was before."""
        request = HttpRequest("POST", api_path("reviews", review, "rollback"))
        return bulk_review_from_json((yield from send_with_retry(request)).json())


def part_to_json(
    count: int | None, share: float | None, tag: str | None, agents: Collection[str] | None
) -> Mapping[str, Any] | None:
    """Raises ValidationError unless at most one is given."""
    if isinstance(agents, str):
        raise ValidationError("agents is a list of ids or slugs")
    agent_ids = None if agents is None else list(agents)
    part = drop_none({"count": count, "share": share, "tag": tag, "agentIds": agent_ids})
    if len(part) > 1:
        raise ValidationError("expected only one of count, share, tag and agents")
    return part or None


def bulk_review_from_json(body: Any) -> BulkReview:
    """Raises InvalidResponse."""
    try:
        return BulkReview(
            id=body.get("reviewId"),
            outcomes=outcomes_from_json(body),
            waiting=tuple(body.get("waiting", ())),
        )
    except AttributeError:
        raise InvalidResponse("the response is not a review") from None


def outcomes_from_json(body: Any) -> tuple[BulkAcceptOutcome, ...]:
    """Raises InvalidResponse."""
    try:
        return tuple(
            BulkAcceptOutcome(
                agent=row["agentId"],
                success=row["success"],
                changed=row["changed"],
                error=row["error"],
            )
            for row in body["results"]
        )
    except (KeyError, TypeError):
        raise InvalidResponse("the response has no outcome for each agent") from None
