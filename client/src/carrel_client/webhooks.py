"""Webhooks, and the log of their deliveries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.drivers import Driver, Resource, Steps, operation
from carrel_client.http_messages import HttpRequest
from carrel_client.models import Model, model_from_json, model_list_field, models_from_json
from carrel_client.requests import (
    api_path,
    drop_none,
    get_json,
    items_of,
    list_pages,
    send_idempotent,
    send_json,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook(Model):
    id: str
    url: str
    events: tuple[str, ...]
    active: bool
    created_at: datetime
    updated_at: datetime
    secret: str | None = None
    """Signs the deliveries; returned only when the webhook is created."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryAttempt(Model):
    at: datetime
    status: int | None
    problem: str
    milliseconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery(Model):
    id: str
    type: str
    state: str
    created_at: datetime
    due_at: datetime
    tries: int
    payload: Mapping[str, Any]
    """The body of the POST."""
    attempts: tuple[DeliveryAttempt, ...] = model_list_field(DeliveryAttempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType(Model):
    type: str
    summary: str


class Webhooks(Resource[Driver]):
    """The webhooks of the tenant. A server that serves the store delivers to them."""

    @operation
    def create(
        self,
        url: str,
        events: Collection[str] = ("*",),
        *,
        secret: str | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Webhook]:
        """Create a webhook. Raises ValidationError, also for a forbidden address."""
        body = {"url": url, "events": list(events), **drop_none({"secret": secret})}
        webhook = yield from send_json(
            "POST", api_path("webhooks"), body, idempotency_key=idempotency_key
        )
        return model_from_json(Webhook, webhook)

    @operation
    def get(self, webhook_id: str) -> Steps[Webhook]:
        """Raises NotFound."""
        return model_from_json(Webhook, (yield from get_json(api_path("webhooks", webhook_id))))

    @operation
    def list(self) -> Steps[tuple[Webhook, ...]]:
        return models_from_json(Webhook, (yield from list_pages(api_path("webhooks"))))

    @operation
    def change(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        events: Collection[str] | None = None,
        active: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Steps[Webhook]:
        """Change the given fields."""
        types = None if events is None else [*events]
        body = drop_none({"url": url, "events": types, "active": active})
        path = api_path("webhooks", webhook_id)
        webhook = yield from send_json("PATCH", path, body, idempotency_key=idempotency_key)
        return model_from_json(Webhook, webhook)

    @operation
    def delete(self, webhook_id: str, *, idempotency_key: str | None = None) -> Steps[None]:
        request = HttpRequest("DELETE", api_path("webhooks", webhook_id))
        yield from send_idempotent(request, idempotency_key)

    @operation
    def deliveries(self, webhook_id: str) -> Steps[tuple[Delivery, ...]]:
        """All deliveries, newest first, with every attempt."""
        rows = yield from list_pages(api_path("webhooks", webhook_id, "deliveries"))
        return models_from_json(Delivery, rows)

    @operation
    def send_test(self, webhook_id: str, *, idempotency_key: str | None = None) -> Steps[Delivery]:
        """Post a test event, once; ``deliveries`` shows the response. Raises NotFound."""
        path = api_path("webhooks", webhook_id, "test")
        delivery = yield from send_json("POST", path, idempotency_key=idempotency_key)
        return model_from_json(Delivery, delivery)

    @operation
    def event_types(self) -> Steps[tuple[EventType, ...]]:
        """The types of events that webhooks and streams report."""
        return models_from_json(EventType, items_of((yield from get_json(api_path("event-types")))))

    @operation
    def replay(
        self, webhook_id: str, delivery_id: str, *, idempotency_key: str | None = None
    ) -> Steps[Delivery]:
        """Deliver again."""
        path = api_path("webhooks", webhook_id, "deliveries", delivery_id, "replay")
        delivery = yield from send_json("POST", path, idempotency_key=idempotency_key)
        return model_from_json(Delivery, delivery)
