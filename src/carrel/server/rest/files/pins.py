"""Pinned files and their review, over HTTP."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from carrel.actions.overlay import pin_details, pins
from carrel.actions.overlay.pin_details import PinDetail
from carrel.actions.overlay.reviews import BulkAcceptOutcome
from carrel.core.access import Permission
from carrel.core.errors import Busy, Forbidden, NotFound, ValidationError, WorkspaceConflict
from carrel.core.identifiers import Digest, Path, Scope, ScopeKind
from carrel.core.overlay.pins import PinStatus as Pin
from carrel.core.store.tree import Blob
from carrel.ports import CorruptContent
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Number, Sha256, When, rfc3339

_TAG: Final = "Pins"


class PinModel(ResponseModel, frozen=True):
    """Where an agent stands with one pinned file."""

    path: str
    pinned_sha256: Sha256 | None
    latest_sha256: Sha256 | None
    update_available: bool
    overridden: bool
    version: Annotated[int, Meta(ge=0)]


class PinStatus(PinModel, frozen=True):
    pinned_content: str | None
    latest_content: str | None
    pinned_tokens: Annotated[int, Meta(ge=0)] | None
    """How long that text is for a model."""
    latest_tokens: Annotated[int, Meta(ge=0)] | None
    latest_source: Literal["template", "defaults"] | None
    """The layer that offers the latest, with the version of it there."""
    latest_version: Number | None
    latest_author: str | None
    latest_reason: str | None
    latest_at: When | None
    error: str | msgspec.UnsetType = msgspec.UNSET
    """Why one of the contents could not be had."""


class Pins(ResponseModel, frozen=True):
    items: list[PinStatus]
    next: str | None = None


class Accept(RequestModel, frozen=True):
    sha256: Sha256
    """Of what was reviewed: it is refused if that is not the latest any more."""


class RollBack(RequestModel, frozen=True):
    version: Number | None = None
    """Of the agent's own history; by default what was reviewed before."""


class Outcome(ResponseModel, frozen=True):
    agent_id: str
    success: bool
    changed: bool
    error: str | None


class Outcomes(ResponseModel, frozen=True):
    accepted: int
    failed: int
    results: list[Outcome]


def pin_shown(pin: Pin) -> PinModel:
    return PinModel(
        path=pin.path.text,
        pinned_sha256=_hex(pin.pinned),
        latest_sha256=_hex(pin.latest),
        update_available=pin.update_available,
        overridden=pin.overridden,
        version=pin.version,
    )


def _status(detail: PinDetail) -> PinStatus:
    status, told = detail.status, detail.told
    where, head = status.pin.latest_from, status.pin.latest_head
    return PinStatus(
        **msgspec.structs.asdict(pin_shown(status.pin)),
        pinned_content=_text(status.pinned),
        latest_content=_text(status.latest),
        pinned_tokens=detail.pinned_tokens,
        latest_tokens=detail.latest_tokens,
        latest_source=_source(where),
        latest_version=head.version if head else None,
        latest_author=told.by if told else None,
        latest_reason=told.why if told else None,
        latest_at=rfc3339(head.at) if head else None,
        error=_problem(status.pinned) or _problem(status.latest) or msgspec.UNSET,
    )


def _source(where: Scope | None) -> Literal["template", "defaults"] | None:
    if where is None:
        return None
    return "template" if where.kind is ScopeKind.TEMPLATE else "defaults"


def _hex(blob: Blob | None) -> str | None:
    return blob.digest.removeprefix("sha256:") if blob else None


def _text(content: bytes | CorruptContent | None) -> str | None:
    """A review is of text; what is none cannot be shown, and its digest tells it apart."""
    return content.decode("utf-8", "replace") if isinstance(content, bytes) else None


def _problem(content: bytes | CorruptContent | None) -> str | None:
    return str(content) if isinstance(content, CorruptContent) else None


def _outcome(result: BulkAcceptOutcome) -> Outcome:
    problem = result.problem
    return Outcome(
        agent_id=result.agent,
        success=problem is None,
        changed=result.changed,
        error=str(problem) if problem else None,
    )


@endpoint(
    "GET",
    "/v1/agents/{id}/pins",
    permission=Permission.WORKSPACE_READ,
    responses={200: Pins},
    refusals=(NotFound,),
    id="pins_list",
    tag=_TAG,
)
async def listing(call: Request) -> Response:
    """Every pinned file of an agent: what was reviewed, what is offered now, both texts."""
    found = await pins.status(call.ports, call.actor, call.params["id"])
    items = [_status(one) for one in await pin_details.load_pin_details(call.ports, found)]
    return Response.json(Pins(items=items))


@endpoint(
    "POST",
    "/v1/agents/{id}/pins/{path...}/accept",
    permission=Permission.TENANT_ADMIN,
    body=Accept,
    responses={200: PinModel},
    refusals=(ValidationError, Forbidden, NotFound, WorkspaceConflict, Busy),
    id="pins_accept",
    tag=_TAG,
    idempotent=True,
)
async def accept(call: Request[Accept]) -> Response:
    """Accept what was reviewed: the pin moves there, and an override goes."""
    path, reviewed = Path(call.params["path"]), Digest(f"sha256:{call.body.sha256}")
    name, receipt = call.params["id"], call.receipt
    pin = await pins.accept(call.ports, call.actor, name, path, reviewed, receipt)
    return Response.json(pin_shown(pin))


@endpoint(
    "POST",
    "/v1/agents/{id}/pins/{path...}/rollback",
    permission=Permission.TENANT_ADMIN,
    body=RollBack,
    responses={200: PinModel},
    refusals=(ValidationError, Forbidden, NotFound, Busy),
    id="pins_roll_back",
    tag=_TAG,
    idempotent=True,
)
async def roll_back(call: Request[RollBack]) -> Response:
    """Go back to what was reviewed before."""
    name, path = call.params["id"], Path(call.params["path"])
    version, receipt = call.body.version, call.receipt
    pin = await pins.roll_back(call.ports, call.actor, name, path, version, receipt)
    return Response.json(pin_shown(pin))


@endpoint(
    "POST",
    "/v1/templates/{id}/pins/{path...}/accept",
    permission=Permission.TENANT_ADMIN,
    body=Accept,
    responses={200: Outcomes},
    refusals=(ValidationError, Forbidden, NotFound, Busy),
    id="pins_accept_for_all",
    tag=_TAG,
)
async def accept_for_all(call: Request[Accept]) -> Response:
    """Accept what was reviewed for every agent that follows a template, one outcome each."""
    path, reviewed = Path(call.params["path"]), Digest(f"sha256:{call.body.sha256}")
    found = await pins.accept_for_all(call.ports, call.actor, call.params["id"], path, reviewed)
    results = [_outcome(one) for one in found]
    accepted = sum(one.success for one in results)
    return Response.json(
        Outcomes(accepted=accepted, failed=len(results) - accepted, results=results)
    )


ENDPOINTS: Final = (listing, accept, roll_back, accept_for_all)
