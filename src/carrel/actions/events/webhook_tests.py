"""Test deliveries: one event, posted to one webhook on request."""

from __future__ import annotations

from msgspec.structs import replace

from carrel.actions.events import webhooks
from carrel.actions.events.webhook_dispatch import event_body
from carrel.core.access import Actor
from carrel.core.errors import Busy
from carrel.core.store.event import WEBHOOK_TEST, Event
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record
from carrel.core.webhooks import Delivery, DeliveryState
from carrel.ports import Ports

_MAX_ATTEMPTS = 10
_PAGE_SIZE = 100


async def send_test(
    ports: Ports, actor: Actor, id: str, idempotency_key: IdempotencyKey | None = None
) -> Delivery:
    """Make a test event due for a webhook, whatever it subscribes to; it is posted once.

    Raises NotFound, and Busy if other deliveries are added all the time.
    """
    webhook = await webhooks.get(ports, actor, id)
    delivery = _new_delivery(ports, webhook)
    for _ in range(_MAX_ATTEMPTS):
        cursor = await ports.deliveries.cursor()
        position = await ports.events.latest_cursor() if cursor is None else cursor
        if await ports.deliveries.enqueue(cursor, position, [delivery]):
            break
    else:
        raise Busy.with_conflicts("the delivery log")
    due = replace(delivery, state=DeliveryState.PENDING)
    await ports.deliveries.replay(due, idempotency_key)
    return due


async def find_newest_test(ports: Ports, actor: Actor, id: str) -> Delivery:
    """Return the webhook's newest test delivery. Raises NotFound."""
    webhook = await webhooks.get(ports, actor, id)
    rows = await ports.deliveries.list(webhook.tenant, webhook.id, limit=_PAGE_SIZE)
    for delivery, _ in rows:
        if delivery.type == WEBHOOK_TEST:
            return delivery
    return _new_delivery(ports, webhook)


def _new_delivery(ports: Ports, webhook: Record) -> Delivery:
    """A closed delivery; `replay` makes it due together with the idempotency key."""
    now, event_id = ports.clock.now(), ports.clock.new_id("evt")
    payload = {"webhookId": webhook.id}
    event = Event("", event_id, WEBHOOK_TEST, webhook.tenant, now, payload)
    return Delivery(
        id=ports.clock.new_id("msg"),
        tenant=webhook.tenant,
        webhook=webhook.id,
        type=WEBHOOK_TEST,
        body=event_body(event),
        state=DeliveryState.FAILED,
        created_at=now,
        due_at=now,
    )
