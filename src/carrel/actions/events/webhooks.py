"""Webhooks: URLs that receive events, each with a signing secret."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.records import (
    Page,
    commit_changes,
    get_record,
    iter_records,
    record_after,
    validate_cursor,
)
from carrel.actions.records import list_page as records_page
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor
from carrel.core.errors import Forbidden, NotFound, ValidationError
from carrel.core.identifiers import parse_identifier
from carrel.core.store.event import EVENT_TYPES
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record, RecordChange, RecordType, deletion, encode_body
from carrel.core.webhooks import Delivery, DeliveryAttempt, WebhookRecord, webhook_from_record
from carrel.ports import Ports

ALL_EVENTS: Final = "*"
SECRET_PREFIX: Final = "whsec_"
MAX_URL_LENGTH: Final = 2048
_URL_PATTERN: Final = re.compile(rf"https?://[!-~]{{1,{MAX_URL_LENGTH - 8}}}", re.IGNORECASE)

DeliveryLog = tuple[Delivery, tuple[DeliveryAttempt, ...]]


@dataclass(frozen=True, slots=True)
class NewWebhook:
    webhook: Record
    secret: str
    """Returned only here."""


async def create(
    ports: Ports,
    actor: Actor,
    url: str,
    events: Sequence[str],
    *,
    secret: str | None = None,
    idempotency_key: IdempotencyKey | None = None,
) -> NewWebhook:
    """Create a webhook. Raises ValidationError, also if the URL is not allowed."""
    _require_unconfined(actor)
    valid_url, valid_events = await _check_url(ports, actor, url), _check_events(events)
    secret = secret or _new_secret(ports)
    id = ports.clock.new_id("whk")
    sealed = ports.vault.seal(_parse_secret(secret), _seal_context(actor.tenant, id))
    body = encode_body(WebhookRecord(valid_url, valid_events, active=True, sealed=sealed))
    change = RecordChange(actor.tenant, RecordType.WEBHOOK, id, body, expected=0)
    await has_no_webhooks(
        ports
    )  # moves the cursor, so the first webhook receives no earlier events
    committed_at = await commit_changes(
        ports, actor, "add a webhook", [change], idempotency_key=idempotency_key
    )
    return NewWebhook(record_after(change, committed_at), secret)


async def get(ports: Ports, actor: Actor, id: str) -> Record:
    _require_unconfined(actor)
    return await get_record(ports, actor.tenant, RecordType.WEBHOOK, id)


async def list_webhooks(
    ports: Ports, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    _require_unconfined(actor)
    return await records_page(ports, actor.tenant, RecordType.WEBHOOK, cursor=cursor, limit=limit)


@dataclass(frozen=True, slots=True)
class WebhookPatch:
    """Fields to change; None leaves a field as it is."""

    url: str | None = None
    events: Sequence[str] | None = None
    active: bool | None = None


@retry_on_conflict()
async def update(
    ports: Ports,
    actor: Actor,
    id: str,
    patch: WebhookPatch,
    idempotency_key: IdempotencyKey | None = None,
) -> Record:
    """Change a webhook. Raises ValidationError and NotFound."""
    _require_unconfined(actor)
    fields: dict[str, object] = {}
    if patch.url is not None:
        fields["url"] = await _check_url(ports, actor, patch.url)
    if patch.events is not None:
        fields["events"] = _check_events(patch.events)
    if patch.active is not None:
        fields["active"] = patch.active
    existing = await get(ports, actor, id)
    updated = replace(webhook_from_record(existing), **fields)
    record_change = RecordChange(
        existing.tenant,
        existing.type,
        existing.id,
        encode_body(updated, existing),
        existing.revision,
    )
    reason = "change a webhook"
    committed_at = await commit_changes(
        ports, actor, reason, [record_change], idempotency_key=idempotency_key
    )
    return record_after(record_change, committed_at, existing)


@retry_on_conflict()
async def delete(
    ports: Ports, actor: Actor, id: str, idempotency_key: IdempotencyKey | None = None
) -> None:
    existing = await get(ports, actor, id)
    await commit_changes(
        ports,
        actor,
        "remove a webhook",
        [deletion(existing)],
        idempotency_key=idempotency_key,
    )


async def list_deliveries(
    ports: Ports, actor: Actor, id: str, *, cursor: str = "", limit: int = 100
) -> Page[DeliveryLog]:
    """List deliveries, newest first, with all their attempts. Raises NotFound.

    The first page has their number.
    """
    webhook = await get(ports, actor, id)
    before = validate_cursor(cursor, "msg")
    rows = await ports.deliveries.list(webhook.tenant, webhook.id, before=before, limit=limit + 1)
    has_more = len(rows) > limit
    total: int | None = None
    if not cursor:
        total = len(rows)
        if has_more:
            total = await ports.deliveries.count(webhook.tenant, webhook.id)
    return Page(rows[:limit], rows[limit - 1][0].id if has_more else None, total)


async def replay(
    ports: Ports,
    actor: Actor,
    id: str,
    delivery: str,
    idempotency_key: IdempotencyKey | None = None,
) -> Delivery:
    """Post a delivery again, with a fresh series of retries. Raises NotFound."""
    stored = await get_delivery(ports, actor, id, delivery)
    await ports.deliveries.replay(replace(stored, due_at=ports.clock.now()), idempotency_key)
    return await get_delivery(ports, actor, id, delivery)


async def get_delivery(ports: Ports, actor: Actor, id: str, delivery: str) -> Delivery:
    """Get a delivery of a webhook. Raises NotFound."""
    webhook = await get(ports, actor, id)
    try:
        [stored] = await ports.deliveries.get(webhook.tenant, [parse_identifier(delivery)])
    except ValidationError:
        raise NotFound("no such delivery") from None
    if stored is None or stored.webhook != webhook.id:
        raise NotFound(f"no such delivery: {delivery}")
    return stored


async def has_no_webhooks(ports: Ports) -> bool:
    """Return whether the store has no webhook; if so, move the cursor past all events.

    Reads the latest event first, so a webhook created meanwhile receives every event after it.
    """
    cursor, latest = await ports.deliveries.cursor(), await ports.events.latest_cursor()
    if await ports.records.list("", RecordType.WEBHOOK, limit=1):
        return False
    if latest != cursor:
        await ports.deliveries.enqueue(cursor, latest, ())
    return True


async def load_active_webhooks(ports: Ports, tenant: str) -> tuple[Record, ...]:
    """Load the tenant's active webhooks, cached until a record changes."""
    revision = await ports.records.revision()
    cached: tuple[Record, ...] | None = ports.record_cache.get(revision, ("webhooks", tenant))
    if cached is None:
        all_webhooks = [record async for record in iter_records(ports, tenant, RecordType.WEBHOOK)]
        cached = tuple(record for record in all_webhooks if webhook_from_record(record).active)
        ports.record_cache.put(revision, ("webhooks", tenant), cached)
    return cached


def is_subscribed(webhook: Record, type: str) -> bool:
    return bool({ALL_EVENTS, type} & set(webhook_from_record(webhook).events))


def open_secret(ports: Ports, webhook: Record) -> bytes:
    """Decrypt the signing secret. Raises CorruptContent if sealed with another key."""
    return ports.vault.open(
        webhook_from_record(webhook).sealed, _seal_context(webhook.tenant, webhook.id)
    )


def _seal_context(tenant: str, id: str) -> str:
    return f"webhook/{tenant}/{id}"


def _require_unconfined(actor: Actor) -> None:
    """Raise Forbidden for a confined credential: webhooks cover the whole tenant."""
    if actor.is_confined:
        raise Forbidden("a credential that is confined to one workspace cannot use webhooks")


async def _check_url(ports: Ports, actor: Actor, url: str) -> str:
    if not _URL_PATTERN.fullmatch(url):
        raise ValidationError(
            f"url must be an http or https URL of at most {MAX_URL_LENGTH} characters"
        )
    (await load_rules(ports, actor.tenant)).require_no_secret("url", url)
    if reason := await ports.webhook_sender.refusal_reason(url):
        raise ValidationError(f"url is not allowed: {reason}")
    return url


def _check_events(names: Sequence[str]) -> list[str]:
    unknown = [name for name in names if name not in {ALL_EVENTS, *EVENT_TYPES}]
    if unknown or not names:
        raise ValidationError(f"events must be some of {', '.join(EVENT_TYPES)}, or {ALL_EVENTS}")
    return list(dict.fromkeys(names))


def _new_secret(ports: Ports) -> str:
    random_bytes = hashlib.sha256(ports.clock.new_token("whsec").encode()).digest()
    return SECRET_PREFIX + base64.b64encode(random_bytes).decode()


def _parse_secret(text: str) -> bytes:
    """Decode a secret into its key. Raises ValidationError without repeating it."""
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(SECRET_PREFIX) or not 24 <= len(key) <= 64:
        raise ValidationError(f"secret must be {SECRET_PREFIX} and 24 to 64 bytes in base64")
    return key
