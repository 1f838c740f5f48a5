"""REST endpoints for webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.actions.events import webhook_tests, webhooks
from carrel.actions.events.webhooks import MAX_URL_LENGTH, WebhookPatch
from carrel.core.access import Actor, Permission
from carrel.core.errors import Busy, Forbidden, NotFound, ValidationError
from carrel.core.store.event import EVENT_SUMMARIES
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, webhook_from_record
from carrel.ports import Ports
from carrel.server.http.endpoint import Request, RequestModel, ResponseModel, endpoint
from carrel.server.http.query_fields import PageQuery, Total
from carrel.server.http.response import Response
from carrel.server.rest.collections import RecordCollection, each_record
from carrel.server.rest.files.file_models import Rfc3339, rfc3339

_TAG: Final = "Webhooks"
Url = Annotated[str, Meta(max_length=MAX_URL_LENGTH, description="http or https URL.")]
EventTypes = Annotated[
    list[str], Meta(min_length=1, max_length=20, description="Event types, or `*`.")
]
WebhookSecret = Annotated[
    str, Meta(max_length=128, description="`whsec_` followed by base64; generated if absent.")
]


class CreateWebhookBody(RequestModel, frozen=True):
    url: Url
    events: EventTypes
    secret: WebhookSecret | None = None


class UpdateWebhookBody(RequestModel, frozen=True):
    url: Url | None = None
    events: EventTypes | None = None
    active: bool | None = None


class WebhookModel(ResponseModel, frozen=True):
    id: str
    url: str
    events: list[str]
    active: bool
    created_at: Rfc3339
    updated_at: Rfc3339
    secret: str | msgspec.UnsetType = msgspec.UNSET


class WebhookPageModel(ResponseModel, frozen=True):
    items: list[WebhookModel]
    next: str | None
    total: Total


class DeliveryAttemptModel(ResponseModel, frozen=True):
    at: Rfc3339
    status: int | None
    problem: str
    milliseconds: int


class DeliveryModel(ResponseModel, frozen=True):
    id: str
    type: str
    state: DeliveryState
    created_at: Rfc3339
    due_at: Rfc3339
    tries: int
    payload: dict[str, Any]
    """Body of the POST request."""
    attempts: list[DeliveryAttemptModel]


class DeliveryPageModel(ResponseModel, frozen=True):
    items: list[DeliveryModel]
    next: str | None
    total: Total


def webhook_to_model(record: Record, secret: str | None = None) -> WebhookModel:
    webhook = webhook_from_record(record)
    return WebhookModel(
        id=record.id,
        url=webhook.url,
        events=webhook.events,
        active=webhook.active,
        created_at=rfc3339(record.created_at),
        updated_at=rfc3339(record.updated_at),
        secret=msgspec.UNSET if secret is None else secret,
    )


def delivery_to_model(
    delivery: Delivery, attempts: tuple[DeliveryAttempt, ...] = ()
) -> DeliveryModel:
    return DeliveryModel(
        id=delivery.id,
        type=delivery.type,
        state=delivery.state,
        created_at=rfc3339(delivery.created_at),
        due_at=rfc3339(delivery.due_at),
        tries=delivery.attempts,
        payload=msgspec.json.decode(delivery.body),
        attempts=[_attempt_to_model(attempt) for attempt in attempts],
    )


def _attempt_to_model(attempt: DeliveryAttempt) -> DeliveryAttemptModel:
    result = attempt.result
    return DeliveryAttemptModel(
        at=rfc3339(attempt.at),
        status=result.status,
        problem=result.problem,
        milliseconds=result.elapsed_ms,
    )


@endpoint(
    "POST",
    "/v1/webhooks",
    body=CreateWebhookBody,
    permission=Permission.TENANT_ADMIN,
    responses={201: WebhookModel},
    refusals=(ValidationError, Forbidden, Busy),
    idempotent=True,
    tag=_TAG,
)
async def create(request: Request[CreateWebhookBody]) -> Response:
    """Create a webhook. Its secret is returned only once."""
    body = request.body
    result = await webhooks.create(
        request.ports,
        request.actor,
        body.url,
        body.events,
        secret=body.secret,
        idempotency_key=request.idempotency_key,
    )
    return Response.json(webhook_to_model(result.webhook, result.secret), 201)


async def _patch(
    ports: Ports,
    actor: Actor,
    id: str,
    fields: Mapping[str, Any],
    idempotency_key: IdempotencyKey | None,
) -> Record:
    return await webhooks.update(ports, actor, id, WebhookPatch(**fields), idempotency_key)


@endpoint(
    "GET",
    "/v1/webhooks/{id}/deliveries",
    query=PageQuery,
    permission=Permission.TENANT_ADMIN,
    responses={200: DeliveryPageModel},
    refusals=(ValidationError, NotFound, Forbidden),
    tag=_TAG,
)
async def list_deliveries(request: Request[None, PageQuery]) -> Response:
    """List a webhook's deliveries, newest first, with every attempt."""
    query = request.query
    page = await webhooks.list_deliveries(
        request.ports, request.actor, request.params["id"], cursor=query.cursor, limit=query.limit
    )
    items = [delivery_to_model(*delivery_and_attempts) for delivery_and_attempts in page.items]
    return Response.json(DeliveryPageModel(items=items, next=page.next, total=page.total))


async def _rebuild_replay(request: Request, versions: tuple[int, ...]) -> Response:
    params = request.params
    delivery = await webhooks.get_delivery(
        request.ports, request.actor, params["id"], params["delivery"]
    )
    return Response.json(delivery_to_model(delivery), 202)


@endpoint(
    "POST",
    "/v1/webhooks/{id}/deliveries/{delivery}/replay",
    permission=Permission.TENANT_ADMIN,
    responses={202: DeliveryModel},
    refusals=(NotFound, Forbidden),
    idempotent=True,
    rebuild=_rebuild_replay,
    tag=_TAG,
)
async def replay(request: Request) -> Response:
    """Send a delivery again."""
    params = request.params
    delivery = await webhooks.replay(
        request.ports, request.actor, params["id"], params["delivery"], request.idempotency_key
    )
    return Response.json(delivery_to_model(delivery), 202)


async def _rebuild_test(request: Request, versions: tuple[int, ...]) -> Response:
    delivery = await webhook_tests.find_newest_test(
        request.ports, request.actor, request.params["id"]
    )
    return Response.json(delivery_to_model(delivery), 202)


@endpoint(
    "POST",
    "/v1/webhooks/{id}/test",
    permission=Permission.TENANT_ADMIN,
    responses={202: DeliveryModel},
    refusals=(NotFound, Forbidden, Busy),
    idempotent=True,
    rebuild=_rebuild_test,
    tag=_TAG,
    id="webhooks_test",
)
async def send_test(request: Request) -> Response:
    """Send a test event, once. Its delivery shows the response of the receiver."""
    delivery = await webhook_tests.send_test(
        request.ports, request.actor, request.params["id"], request.idempotency_key
    )
    return Response.json(delivery_to_model(delivery), 202)


class EventTypeModel(ResponseModel, frozen=True):
    type: str
    summary: str


class EventTypeListModel(ResponseModel, frozen=True):
    items: list[EventTypeModel]
    next: None = None


@endpoint(
    "GET",
    "/v1/event-types",
    permission=Permission.EVENTS_READ,
    responses={200: EventTypeListModel},
    tag="Events",
    id="event_types_list",
)
async def list_event_types(request: Request) -> Response:
    """List the types of events that streams and webhooks report."""
    items = [EventTypeModel(type=type, summary=text) for type, text in EVENT_SUMMARIES.items()]
    return Response.json(EventTypeListModel(items=items))


_WEBHOOKS: Final = RecordCollection(
    "webhooks",
    "/v1/webhooks",
    _TAG,
    WebhookModel,
    each_record(webhook_to_model),
    webhooks.get,
    read_permission=Permission.TENANT_ADMIN,
)
ENDPOINTS: Final = (
    create,
    _WEBHOOKS.list(
        "List webhooks.", webhooks.list_webhooks, WebhookPageModel, (ValidationError, Forbidden)
    ),
    _WEBHOOKS.get("Get a webhook, without its secret.", (NotFound, Forbidden)),
    _WEBHOOKS.patch(
        "Update a webhook's URL or events, or enable or disable it.",
        UpdateWebhookBody,
        _patch,
        (ValidationError, NotFound, Forbidden, Busy),
    ),
    _WEBHOOKS.delete("Delete a webhook.", webhooks.delete, (NotFound, Forbidden, Busy)),
    list_deliveries,
    replay,
    send_test,
    list_event_types,
)
