"""Models of pinned files and their reviews in the REST API."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from carrel.actions.overlay.pin_details import PinDetail
from carrel.actions.overlay.pin_review_session import BulkOutcome
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Digest, Scope, ScopeKind
from carrel.core.overlay.pins import PinStatus
from carrel.core.overlay.review_records import FollowerPart
from carrel.core.store.blob import Blob
from carrel.ports import CorruptContent
from carrel.server.http.endpoint import RequestModel, ResponseModel
from carrel.server.rest.files.file_models import PositiveInt, Rfc3339, Sha256, rfc3339


class PinModel(ResponseModel, frozen=True):
    """State of one pinned file of an agent."""

    path: str
    pinned_sha256: Sha256 | None
    latest_sha256: Sha256 | None
    update_available: bool
    """Whether a change awaits review: a newer content or, without `latestSha256`, the removal."""
    overridden: bool
    version: Annotated[int, Meta(ge=0)]
    served_sha256: Sha256 | None
    """Digest of what the agent is served: its override, else the pinned content."""
    declined: bool
    """Whether the offered change was declined."""


class PinDetailModel(PinModel, frozen=True):
    """A pin with both contents and the origin of the update."""

    pinned_content: str | None
    latest_content: str | None
    served_content: str | None
    pinned_tokens: Annotated[int, Meta(ge=0)] | None
    """Token count of the pinned content."""
    latest_tokens: Annotated[int, Meta(ge=0)] | None
    served_tokens: Annotated[int, Meta(ge=0)] | None
    latest_source: Literal["template", "defaults"] | None
    """Layer that offers the latest content."""
    latest_version: PositiveInt | None
    latest_author: str | None
    latest_reason: str | None
    latest_at: Rfc3339 | None
    error: str | msgspec.UnsetType = msgspec.UNSET
    """Why one of the contents could not be read."""


class PinListModel(ResponseModel, frozen=True):
    items: list[PinDetailModel]
    next: str | None = None


OfferedSha256 = Annotated[
    Sha256 | None,
    Meta(
        description="Digest of the reviewed content, refused if it is no longer the latest; null"
        " for the removal of a file that no layer below has."
    ),
]


class AcceptPinBody(RequestModel, frozen=True):
    sha256: OfferedSha256


class FollowerPartModel(RequestModel, frozen=True):
    """Chosen part of the agents that inherit a file; exactly one field.

    A number or a share is the same choice each time, and a larger one contains it.
    """

    count: PositiveInt | None = None
    share: (
        Annotated[float, Meta(gt=0, le=100, description="Percentage, rounded up to an agent.")]
        | None
    ) = None
    tag: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    agent_ids: (
        Annotated[
            tuple[Annotated[str, Meta(max_length=200)], ...],
            Meta(min_length=1, max_length=10_000, description="Ids or slugs."),
        ]
        | None
    ) = None

    def to_part(self) -> FollowerPart:
        """Raises ValidationError unless exactly one field is set."""
        part = FollowerPart(self.count, self.share, self.tag, self.agent_ids)
        if sum(value is not None for value in msgspec.structs.astuple(part)) != 1:
            raise ValidationError("part needs exactly one of count, share, tag and agentIds")
        return part


class AcceptPartBody(RequestModel, frozen=True):
    sha256: OfferedSha256
    part: FollowerPartModel | None = None
    """Accept for these first; all without it."""


class RollBackPinBody(RequestModel, frozen=True):
    version: PositiveInt | None = None
    """Version of the agent's own history; defaults to the previously reviewed one."""


class BulkOutcomeModel(ResponseModel, frozen=True):
    """Result for one agent."""

    agent_id: str
    success: bool
    changed: bool
    error: str | None


class BulkAcceptModel(ResponseModel, frozen=True):
    """Results of a bulk accept."""

    accepted: int
    failed: int
    results: list[BulkOutcomeModel]
    review_id: str | None
    """Review to roll back; null if no agent was changed."""
    waiting: list[str]
    """Ids of the agents that were not chosen and are still offered the content."""


class RollBackAllBody(RequestModel, frozen=True):
    sha256: Sha256
    """Digest that was accepted for all; agents whose pin has moved since are not changed."""


class BulkRollBackModel(ResponseModel, frozen=True):
    """Results of a bulk roll back."""

    rolled_back: int
    failed: int
    results: list[BulkOutcomeModel]
    review_id: str | None
    """Review of the roll back; null if no agent was changed."""


def pin_to_model(pin: PinStatus) -> PinModel:
    return PinModel(
        path=pin.path.text,
        pinned_sha256=_hex_digest(pin.pinned),
        latest_sha256=_hex_digest(pin.latest),
        update_available=pin.update_available,
        overridden=pin.overridden,
        version=pin.version,
        served_sha256=_hex_digest(pin.served),
        declined=pin.is_declined,
    )


def detail_to_model(detail: PinDetail) -> PinDetailModel:
    status, latest_version = detail.status, detail.latest_version
    latest_scope, head = status.pin.latest_from, status.pin.latest_head
    return PinDetailModel(
        **msgspec.structs.asdict(pin_to_model(status.pin)),
        pinned_content=_text(status.pinned),
        latest_content=_text(status.latest),
        served_content=_text(status.served),
        pinned_tokens=detail.pinned_tokens,
        latest_tokens=detail.latest_tokens,
        served_tokens=detail.served_tokens,
        latest_source=_source_name(latest_scope),
        latest_version=head.version if head else None,
        latest_author=latest_version.author if latest_version else None,
        latest_reason=latest_version.reason if latest_version else None,
        latest_at=rfc3339(head.at) if head else None,
        error=_problem(status.pinned)
        or _problem(status.latest)
        or _problem(status.served)
        or msgspec.UNSET,
    )


def _source_name(scope: Scope | None) -> Literal["template", "defaults"] | None:
    if scope is None:
        return None
    return "template" if scope.kind is ScopeKind.TEMPLATE else "defaults"


def _hex_digest(blob: Blob | None) -> str | None:
    return blob.digest.removeprefix("sha256:") if blob else None


def _text(content: bytes | CorruptContent | None) -> str | None:
    """Content as text, with undecodable bytes replaced."""
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else None


def _problem(content: bytes | CorruptContent | None) -> str | None:
    return str(content) if isinstance(content, CorruptContent) else None


def parse_offer(sha256: str | None) -> Digest | None:
    return None if sha256 is None else Digest(f"sha256:{sha256}")


def outcome_to_model(result: BulkOutcome) -> BulkOutcomeModel:
    problem = result.problem
    return BulkOutcomeModel(
        agent_id=result.agent,
        success=problem is None,
        changed=result.changed,
        error=str(problem) if problem else None,
    )
