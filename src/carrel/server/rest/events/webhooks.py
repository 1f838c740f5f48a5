"""Webhooks over HTTP, with the log of what was delivered."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.actions.events import webhooks
from carrel.actions.events.webhooks import LONGEST_URL
from carrel.actions.events.webhooks import WebhookPatch as Patch
from carrel.core.access import Permission
from carrel.core.errors import Busy, Forbidden, NotFound, ValidationError
from carrel.core.store.record import Record
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import PageQuery
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import When, rfc3339

_TAG: Final = "Webhooks"
Url = Annotated[str, Meta(max_length=LONGEST_URL, description="http or https.")]
Types = Annotated[list[str], Meta(min_length=1, max_length=20, description="Types, or `*`.")]
Secret = Annotated[str, Meta(max_length=128, description="`whsec_` and base64; made if absent.")]


class NewWebhook(RequestModel, frozen=True):
    url: Url
    events: Types
    secret: Secret | None = None


class WebhookPatch(RequestModel, frozen=True):
    url: Url | None = None
    events: Types | None = None
    active: bool | None = None


class Webhook(ResponseModel, frozen=True):
    id: str
    url: str
    events: list[str]
    active: bool
    created_at: When
    updated_at: When
    secret: str | msgspec.UnsetType = msgspec.UNSET


class Webhooks(ResponseModel, frozen=True):
    items: list[Webhook]
    next: str | None


class AttemptModel(ResponseModel, frozen=True):
    at: When
    status: int | None
    problem: str
    milliseconds: int


class DeliveryModel(ResponseModel, frozen=True):
    id: str
    type: str
    state: DeliveryState
    created_at: When
    due_at: When
    tries: int
    payload: dict[str, Any]
    """What is posted."""
    attempts: list[AttemptModel]


class Deliveries(ResponseModel, frozen=True):
    items: list[DeliveryModel]
    next: str | None


def shown(record: Record, secret: str | None = None) -> Webhook:
    return Webhook(
        id=record.id,
        url=record.body["url"],
        events=record.body["events"],
        active=record.body["active"],
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
        secret=msgspec.UNSET if secret is None else secret,
    )


def delivered(delivery: Delivery, attempts: tuple[DeliveryAttempt, ...] = ()) -> DeliveryModel:
    return DeliveryModel(
        id=delivery.id,
        type=delivery.type,
        state=delivery.state,
        created_at=rfc3339(delivery.created),
        due_at=rfc3339(delivery.due),
        tries=delivery.tries,
        payload=msgspec.json.decode(delivery.body),
        attempts=[_tried(attempt) for attempt in attempts],
    )


def _tried(attempt: DeliveryAttempt) -> AttemptModel:
    posted = attempt.posted
    return AttemptModel(
        at=rfc3339(attempt.at),
        status=posted.status,
        problem=posted.problem,
        milliseconds=posted.took,
    )


@endpoint(
    "POST",
    "/v1/webhooks",
    body=NewWebhook,
    permission=Permission.TENANT_ADMIN,
    responses={201: Webhook},
    refusals=(ValidationError, Forbidden, Busy),
    idempotent=True,
    tag=_TAG,
)
async def create(call: Request[NewWebhook]) -> Response:
    """Tell an address what happens; its secret is shown this once."""
    asked = call.body
    made = await webhooks.create(
        call.ports, call.actor, asked.url, asked.events, secret=asked.secret, receipt=call.receipt
    )
    return Response.json(shown(made.webhook, made.secret), 201)


@endpoint(
    "GET",
    "/v1/webhooks",
    query=PageQuery,
    permission=Permission.TENANT_ADMIN,
    responses={200: Webhooks},
    refusals=(ValidationError, Forbidden),
    tag=_TAG,
)
async def listing(call: Request[None, PageQuery]) -> Response:
    """List the webhooks of the tenant."""
    query = call.query
    found = await webhooks.listing(call.ports, call.actor, cursor=query.cursor, limit=query.limit)
    return Response.json(Webhooks(items=[shown(each) for each in found.items], next=found.next))


@endpoint(
    "GET",
    "/v1/webhooks/{id}",
    permission=Permission.TENANT_ADMIN,
    responses={200: Webhook},
    refusals=(NotFound, Forbidden),
    tag=_TAG,
)
async def get(call: Request) -> Response:
    """Show a webhook, without its secret."""
    return Response.json(shown(await webhooks.get(call.ports, call.actor, call.params["id"])))


async def _changed(call: Request[WebhookPatch], versions: tuple[int, ...]) -> Response:
    return Response.json(shown(await webhooks.get(call.ports, call.actor, call.params["id"])))


@endpoint(
    "PATCH",
    "/v1/webhooks/{id}",
    body=WebhookPatch,
    permission=Permission.TENANT_ADMIN,
    responses={200: Webhook},
    refusals=(ValidationError, NotFound, Forbidden, Busy),
    idempotent=True,
    rebuild=_changed,
    tag=_TAG,
)
async def patch(call: Request[WebhookPatch]) -> Response:
    """Change a webhook's address or events, or switch it off and on."""
    wanted = Patch(call.body.url, call.body.events, call.body.active)
    found = await webhooks.change(call.ports, call.actor, call.params["id"], wanted, call.receipt)
    return Response.json(shown(found))


async def _deleted(call: Request, versions: tuple[int, ...]) -> Response:
    return Response.empty(204)


@endpoint(
    "DELETE",
    "/v1/webhooks/{id}",
    permission=Permission.TENANT_ADMIN,
    responses={204: None},
    refusals=(NotFound, Forbidden, Busy),
    idempotent=True,
    rebuild=_deleted,
    tag=_TAG,
)
async def delete(call: Request) -> Response:
    """Stop telling an address."""
    await webhooks.delete(call.ports, call.actor, call.params["id"], call.receipt)
    return Response.empty(204)


@endpoint(
    "GET",
    "/v1/webhooks/{id}/deliveries",
    query=PageQuery,
    permission=Permission.TENANT_ADMIN,
    responses={200: Deliveries},
    refusals=(ValidationError, NotFound, Forbidden),
    tag=_TAG,
)
async def deliveries(call: Request[None, PageQuery]) -> Response:
    """List what was posted or will be, newest first, with every attempt."""
    query = call.query
    found = await webhooks.deliveries(
        call.ports, call.actor, call.params["id"], cursor=query.cursor, limit=query.limit
    )
    items = [delivered(*each) for each in found.items]
    return Response.json(Deliveries(items=items, next=found.next))


@endpoint(
    "POST",
    "/v1/webhooks/{id}/deliveries/{delivery}/replay",
    permission=Permission.TENANT_ADMIN,
    responses={202: DeliveryModel},
    refusals=(NotFound, Forbidden),
    idempotent=True,
    tag=_TAG,
)
async def replay(call: Request) -> Response:
    """Post a delivery once more."""
    params = call.params
    again = await webhooks.replay(call.ports, call.actor, params["id"], params["delivery"])
    return Response.json(delivered(again), 202)


ENDPOINTS: Final = (create, listing, get, patch, delete, deliveries, replay)
