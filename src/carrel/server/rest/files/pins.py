"""REST endpoints for pinned files and their review."""

from __future__ import annotations

from typing import Any, Final

from carrel.actions.overlay import bulk_reviews, pin_details, pin_reviews
from carrel.core.access import Permission
from carrel.core.errors import Busy, Forbidden, NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Digest, Path
from carrel.server.http.endpoint import Request, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.pin_models import (
    AcceptPartBody,
    AcceptPinBody,
    BulkAcceptModel,
    BulkRollBackModel,
    PinListModel,
    PinModel,
    RollBackAllBody,
    RollBackPinBody,
    detail_to_model,
    outcome_to_model,
    parse_offer,
    pin_to_model,
)

_TAG: Final = "Pins"


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
        detail_to_model(detail)
        for detail in await pin_details.load_pin_details(request.ports, statuses)
    ]
    return Response.json(PinListModel(items=items))


async def rebuild_review(request: Request[Any], versions: tuple[int, ...]) -> Response:
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
    rebuild=rebuild_review,
)
async def accept(request: Request[AcceptPinBody]) -> Response:
    """Accept a pinned update for one agent.

    The pin moves to the reviewed content, and an override is removed.
    """
    path, reviewed = Path(request.params["path"]), parse_offer(request.body.sha256)
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
    rebuild=rebuild_review,
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
    body=AcceptPartBody,
    responses={200: BulkAcceptModel},
    refusals=(ValidationError, Forbidden, NotFound, Busy),
    id="pins_accept_for_all",
    tag=_TAG,
    idempotent=True,
)
async def accept_for_all(request: Request[AcceptPartBody]) -> Response:
    """Accept a pinned update for every agent of a template.

    Returns one result per agent.
    """
    return await _accept_for_all(request, request.params["id"])


@endpoint(
    "POST",
    "/v1/defaults/pins/{path...}/accept",
    permission=Permission.TENANT_ADMIN,
    body=AcceptPartBody,
    responses={200: BulkAcceptModel},
    refusals=(ValidationError, Forbidden, NotFound, Busy),
    id="pins_accept_default_for_all",
    tag=_TAG,
    idempotent=True,
)
async def accept_default_for_all(request: Request[AcceptPartBody]) -> Response:
    """Accept a pinned update for every agent that inherits it from the defaults.

    Returns one result per agent.
    """
    return await _accept_for_all(request, None)


async def _accept_for_all(request: Request[AcceptPartBody], template: str | None) -> Response:
    path, reviewed = Path(request.params["path"]), parse_offer(request.body.sha256)
    part = request.body.part.to_part() if request.body.part else None
    review = await bulk_reviews.accept_part(
        request.ports, request.actor, template, path, reviewed, part
    )
    results = [outcome_to_model(outcome) for outcome in review.outcomes]
    accepted = sum(outcome.success for outcome in results)
    return Response.json(
        BulkAcceptModel(
            accepted=accepted,
            failed=len(results) - accepted,
            results=results,
            review_id=review.id,
            waiting=list(review.waiting),
        )
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
    review = await bulk_reviews.roll_back_all(
        request.ports, request.actor, template, path, accepted
    )
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


ENDPOINTS: Final = (
    *(list_pins, accept, roll_back, accept_for_all, accept_default_for_all),
    *(roll_back_for_all, roll_back_default_for_all),
)
