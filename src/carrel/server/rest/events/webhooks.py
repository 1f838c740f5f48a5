"""Webhooks over HTTP, with the log of what was delivered."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.actions.events import webhooks
from carrel.actions.events.webhooks import LONGEST_URL, Patch
from carrel.core.access import Permission
from carrel.core.errors import Busy, Forbidden, Malformed, Missing
from carrel.core.store.record import Record
from carrel.core.webhooks import Attempt, Delivery, State
from carrel.server.http.endpoint import Call, Received, Sent, endpoint
from carrel.server.http.query_fields import PageQuery
from carrel.server.http.response import Answer
from carrel.server.rest.files.file_models import When, moment

_TAG: Final = "Webhooks"
Url = Annotated[str, Meta(max_length=LONGEST_URL, description="http or https.")]
Types = Annotated[list[str], Meta(min_length=1, max_length=20, description="Types, or `*`.")]
Secret = Annotated[str, Meta(max_length=128, description="`whsec_` and base64; made if absent.")]


class NewWebhook(Received, frozen=True):
    url: Url
    events: Types
    secret: Secret | None = None


class WebhookPatch(Received, frozen=True):
    url: Url | None = None
    events: Types | None = None
    active: bool | None = None


class Webhook(Sent, frozen=True):
    id: str
    url: str
    events: list[str]
    active: bool
    created_at: When
    updated_at: When
    secret: str | msgspec.UnsetType = msgspec.UNSET


class Webhooks(Sent, frozen=True):
    items: list[Webhook]
    next: str | None


class Tried(Sent, frozen=True):
    at: When
    status: int | None
    problem: str
    milliseconds: int


class Delivered(Sent, frozen=True):
    id: str
    type: str
    state: State
    created_at: When
    due_at: When
    tries: int
    payload: dict[str, Any]
    """What is posted."""
    attempts: list[Tried]


class Deliveries(Sent, frozen=True):
    items: list[Delivered]
    next: str | None


def shown(record: Record, secret: str | None = None) -> Webhook:
    return Webhook(
        id=record.id,
        url=record.body["url"],
        events=record.body["events"],
        active=record.body["active"],
        created_at=moment(record.created),
        updated_at=moment(record.changed),
        secret=msgspec.UNSET if secret is None else secret,
    )


def delivered(delivery: Delivery, attempts: tuple[Attempt, ...] = ()) -> Delivered:
    return Delivered(
        id=delivery.id,
        type=delivery.type,
        state=delivery.state,
        created_at=moment(delivery.created),
        due_at=moment(delivery.due),
        tries=delivery.tries,
        payload=msgspec.json.decode(delivery.body),
        attempts=[_tried(attempt) for attempt in attempts],
    )


def _tried(attempt: Attempt) -> Tried:
    posted = attempt.posted
    return Tried(
        at=moment(attempt.at),
        status=posted.status,
        problem=posted.problem,
        milliseconds=posted.took,
    )


@endpoint(
    "POST",
    "/v1/webhooks",
    body=NewWebhook,
    permission=Permission.TENANT_ADMIN,
    answers={201: Webhook},
    refuses=(Malformed, Forbidden, Busy),
    idempotent=True,
    tag=_TAG,
)
async def create(call: Call[NewWebhook]) -> Answer:
    """Tell an address what happens; its secret is shown this once."""
    asked = call.body
    made = await webhooks.create(
        call.world, call.actor, asked.url, asked.events, secret=asked.secret, receipt=call.receipt
    )
    return Answer.json(shown(made.webhook, made.secret), 201)


@endpoint(
    "GET",
    "/v1/webhooks",
    query=PageQuery,
    permission=Permission.TENANT_ADMIN,
    answers={200: Webhooks},
    refuses=(Malformed, Forbidden),
    tag=_TAG,
)
async def listing(call: Call[None, PageQuery]) -> Answer:
    """List the webhooks of the tenant."""
    query = call.query
    found = await webhooks.listing(call.world, call.actor, cursor=query.cursor, limit=query.limit)
    return Answer.json(Webhooks(items=[shown(each) for each in found.items], next=found.next))


@endpoint(
    "GET",
    "/v1/webhooks/{id}",
    permission=Permission.TENANT_ADMIN,
    answers={200: Webhook},
    refuses=(Missing, Forbidden),
    tag=_TAG,
)
async def get(call: Call) -> Answer:
    """Show a webhook, without its secret."""
    return Answer.json(shown(await webhooks.get(call.world, call.actor, call.params["id"])))


async def _changed(call: Call[WebhookPatch], versions: tuple[int, ...]) -> Answer:
    return Answer.json(shown(await webhooks.get(call.world, call.actor, call.params["id"])))


@endpoint(
    "PATCH",
    "/v1/webhooks/{id}",
    body=WebhookPatch,
    permission=Permission.TENANT_ADMIN,
    answers={200: Webhook},
    refuses=(Malformed, Missing, Forbidden, Busy),
    idempotent=True,
    rebuild=_changed,
    tag=_TAG,
)
async def patch(call: Call[WebhookPatch]) -> Answer:
    """Change a webhook's address or events, or switch it off and on."""
    wanted = Patch(call.body.url, call.body.events, call.body.active)
    found = await webhooks.change(call.world, call.actor, call.params["id"], wanted, call.receipt)
    return Answer.json(shown(found))


async def _deleted(call: Call, versions: tuple[int, ...]) -> Answer:
    return Answer.empty(204)


@endpoint(
    "DELETE",
    "/v1/webhooks/{id}",
    permission=Permission.TENANT_ADMIN,
    answers={204: None},
    refuses=(Missing, Forbidden, Busy),
    idempotent=True,
    rebuild=_deleted,
    tag=_TAG,
)
async def delete(call: Call) -> Answer:
    """Stop telling an address."""
    await webhooks.delete(call.world, call.actor, call.params["id"], call.receipt)
    return Answer.empty(204)


@endpoint(
    "GET",
    "/v1/webhooks/{id}/deliveries",
    query=PageQuery,
    permission=Permission.TENANT_ADMIN,
    answers={200: Deliveries},
    refuses=(Malformed, Missing, Forbidden),
    tag=_TAG,
)
async def deliveries(call: Call[None, PageQuery]) -> Answer:
    """List what was posted or will be, newest first, with every attempt."""
    query = call.query
    found = await webhooks.deliveries(
        call.world, call.actor, call.params["id"], cursor=query.cursor, limit=query.limit
    )
    items = [delivered(*each) for each in found.items]
    return Answer.json(Deliveries(items=items, next=found.next))


@endpoint(
    "POST",
    "/v1/webhooks/{id}/deliveries/{delivery}/replay",
    permission=Permission.TENANT_ADMIN,
    answers={202: Delivered},
    refuses=(Missing, Forbidden),
    idempotent=True,
    tag=_TAG,
)
async def replay(call: Call) -> Answer:
    """Post a delivery once more."""
    params = call.params
    again = await webhooks.replay(call.world, call.actor, params["id"], params["delivery"])
    return Answer.json(delivered(again), 202)


ENDPOINTS: Final = (create, listing, get, patch, delete, deliveries, replay)
