"""REST endpoints for pinned files and their review."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from carrel.actions.overlay import pin_details, pin_reviews
from carrel.actions.overlay.pin_details import PinDetail
from carrel.actions.overlay.pin_review_session import BulkOutcome
from carrel.core.access import Permission
from carrel.core.errors import Busy, Forbidden, NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.overlay.pins import PinStatus
from carrel.core.store.blob import Blob
from carrel.ports import CorruptContent
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import PositiveInt, Rfc3339, Sha256, rfc3339

_TAG: Final = "Pins"


class PinModel(ResponseModel, frozen=True):
    """State of one pinned file of an agent."""

    path: str
    pinned_sha256: Sha256 | None
    latest_sha256: Sha256 | None
    update_available: bool
    overridden: bool
    version: Annotated[int, Meta(ge=0)]


class PinDetailModel(PinModel, frozen=True):
    """A pin with both contents and the origin of the update."""

    pinned_content: str | None
    latest_content: str | None
    pinned_tokens: Annotated[int, Meta(ge=0)] | None
    """Token count of the pinned content."""
    latest_tokens: Annotated[int, Meta(ge=0)] | None
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


class AcceptPinBody(RequestModel, frozen=True):
    sha256: Sha256
    """Digest of the reviewed content; refused if it is no longer the latest."""


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


class RollBackAllBody(RequestModel, frozen=True):
    sha256: Sha256
    """Digest that was accepted for all; agents whose pin has moved since are not changed."""


class BulkRollBackModel(ResponseModel, frozen=True):
    """Results of a bulk roll back."""

    rolled_back: int
    failed: int
    results: list[BulkOutcomeModel]


def pin_to_model(pin: PinStatus) -> PinModel:
    return PinModel(
        path=pin.path.text,
        pinned_sha256=_hex_digest(pin.pinned),
        latest_sha256=_hex_digest(pin.latest),
        update_available=pin.update_available,
        overridden=pin.overridden,
        version=pin.version,
    )


def _detail_to_model(detail: PinDetail) -> PinDetailModel:
    status, latest_version = detail.status, detail.latest_version
    latest_scope, head = status.pin.latest_from, status.pin.latest_head
    return PinDetailModel(
        **msgspec.structs.asdict(pin_to_model(status.pin)),
        pinned_content=_text(status.pinned),
        latest_content=_text(status.latest),
        pinned_tokens=detail.pinned_tokens,
        latest_tokens=detail.latest_tokens,
        latest_source=_source_name(latest_scope),
        latest_version=head.version if head else None,
        latest_author=latest_version.author if latest_version else None,
        latest_reason=latest_version.reason if latest_version else None,
        latest_at=rfc3339(head.at) if head else None,
        error=_problem(status.pinned) or _problem(status.latest) or msgspec.UNSET,
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


def _outcome_to_model(result: BulkOutcome) -> BulkOutcomeModel:
    problem = result.problem
    return BulkOutcomeModel(
        agent_id=result.agent,
        success=problem is None,
        changed=result.changed,
        error=str(problem) if problem else None,
    )


@endpoint(
    "GET",
    "/v1/agents/{id}/pins",
    permission=Permission.WORKSPACE_READ,
    responses={200: PinListModel},
    refusals=(NotFound,),
    id="pins_list",
    tag=_TAG,
)
async def list_pins(request: Request) -> Response:
    """List an agent's pinned files with reviewed and latest content."""
    statuses = await pin_reviews.load_reviews(request.ports, request.actor, request.params["id"])
    items = [
        _detail_to_model(detail)
        for detail in await pin_details.load_pin_details(request.ports, statuses)
    ]
    return Response.json(PinListModel(items=items))


async def _rebuild_review(request: Request[Any], versions: tuple[int, ...]) -> Response:
    """Respond with the pin after the committed review."""
    name, path = request.params["id"], Path(request.params["path"])
    pin = await pin_reviews.load_reviewed(request.ports, request.actor, name, path, versions[0])
    return Response.json(pin_to_model(pin))


@endpoint(
    "POST",
    "/v1/agents/{id}/pins/{path...}/accept",
    permission=Permission.TENANT_ADMIN,
    body=AcceptPinBody,
    responses={200: PinModel},
    refusals=(ValidationError, Forbidden, NotFound, WorkspaceConflict, Busy),
    id="pins_accept",
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_review,
)
async def accept(request: Request[AcceptPinBody]) -> Response:
    """Accept a pinned update for one agent.

    The pin moves to the reviewed content, and an override is removed.
    """
    path, reviewed = Path(request.params["path"]), Digest(f"sha256:{request.body.sha256}")
    name, idempotency_key = request.params["id"], request.idempotency_key
    pin = await pin_reviews.accept(
        request.ports, request.actor, name, path, reviewed, idempotency_key
    )
    return Response.json(pin_to_model(pin))


@endpoint(
    "POST",
    "/v1/agents/{id}/pins/{path...}/rollback",
    permission=Permission.TENANT_ADMIN,
    body=RollBackPinBody,
    responses={200: PinModel},
    refusals=(ValidationError, Forbidden, NotFound, Busy),
    id="pins_roll_back",
    tag=_TAG,
    idempotent=True,
    rebuild=_rebuild_review,
)
async def roll_back(request: Request[RollBackPinBody]) -> Response:
    """Roll a pin back to the previously reviewed content."""
    name, path = request.params["id"], Path(request.params["path"])
    version, idempotency_key = request.body.version, request.idempotency_key
    pin = await pin_reviews.roll_back(
        request.ports, request.actor, name, path, version, idempotency_key
    )
    return Response.json(pin_to_model(pin))


@endpoint(
    "POST",
    "/v1/templates/{id}/pins/{path...}/accept",
    permission=Permission.TENANT_ADMIN,
    body=AcceptPinBody,
    responses={200: BulkAcceptModel},
    refusals=(ValidationError, Forbidden, NotFound, Busy),
    id="pins_accept_for_all",
    tag=_TAG,
    idempotent=True,
)
async def accept_for_all(request: Request[AcceptPinBody]) -> Response:
    """Accept a pinned update for every agent of a template.

    Returns one result per agent.
    """
    return await _accept_for_all(request, request.params["id"])


@endpoint(
    "POST",
    "/v1/defaults/pins/{path...}/accept",
    permission=Permission.TENANT_ADMIN,
    body=AcceptPinBody,
    responses={200: BulkAcceptModel},
    refusals=(ValidationError, Forbidden, NotFound, Busy),
    id="pins_accept_default_for_all",
    tag=_TAG,
    idempotent=True,
)
async def accept_default_for_all(request: Request[AcceptPinBody]) -> Response:
    """Accept a pinned update for every agent that inherits it from the defaults.

    Returns one result per agent.
    """
    return await _accept_for_all(request, None)


async def _accept_for_all(request: Request[AcceptPinBody], template: str | None) -> Response:
    path, reviewed = Path(request.params["path"]), Digest(f"sha256:{request.body.sha256}")
    outcomes = await pin_reviews.accept_for_all(
        request.ports, request.actor, template, path, reviewed
    )
    results = [_outcome_to_model(outcome) for outcome in outcomes]
    accepted = sum(outcome.success for outcome in results)
    return Response.json(
        BulkAcceptModel(accepted=accepted, failed=len(results) - accepted, results=results)
    )


@endpoint(
    "POST",
    "/v1/templates/{id}/pins/{path...}/rollback",
    permission=Permission.TENANT_ADMIN,
    body=RollBackAllBody,
    responses={200: BulkRollBackModel},
    refusals=(ValidationError, Forbidden, NotFound, Busy),
    id="pins_roll_back_for_all",
    tag=_TAG,
    idempotent=True,
)
async def roll_back_for_all(request: Request[RollBackAllBody]) -> Response:
    """Roll back what was accepted for every agent of a template.

    Returns one result per agent that accepted; one whose pin has moved since is not changed.
    """
    return await _roll_back_for_all(request, request.params["id"])


@endpoint(
    "POST",
    "/v1/defaults/pins/{path...}/rollback",
    permission=Permission.TENANT_ADMIN,
    body=RollBackAllBody,
    responses={200: BulkRollBackModel},
    refusals=(ValidationError, Forbidden, NotFound, Busy),
    id="pins_roll_back_default_for_all",
    tag=_TAG,
    idempotent=True,
)
async def roll_back_default_for_all(request: Request[RollBackAllBody]) -> Response:
    """Roll back what was accepted for every agent that inherits from the defaults.

    Returns one result per agent that accepted; one whose pin has moved since is not changed.
    """
    return await _roll_back_for_all(request, None)


async def _roll_back_for_all(request: Request[RollBackAllBody], template: str | None) -> Response:
    path, accepted = Path(request.params["path"]), Digest(f"sha256:{request.body.sha256}")
    outcomes = await pin_reviews.roll_back_for_all(
        request.ports, request.actor, template, path, accepted
    )
    results = [_outcome_to_model(outcome) for outcome in outcomes]
    rolled_back = sum(outcome.success for outcome in results)
    return Response.json(
        BulkRollBackModel(
            rolled_back=rolled_back, failed=len(results) - rolled_back, results=results
        )
    )


ENDPOINTS: Final = (
    *(list_pins, accept, roll_back, accept_for_all, accept_default_for_all),
    *(roll_back_for_all, roll_back_default_for_all),
)
