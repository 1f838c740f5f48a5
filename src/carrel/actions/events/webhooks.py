"""Webhooks: addresses that are told what happens, each with a secret to know us by."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from msgspec.structs import replace

from carrel.actions.records import (
    Page,
    commit_changes,
    find,
    iter_records,
    record_after,
    retry_while_busy,
    validate_cursor,
)
from carrel.actions.records import page as records_page
from carrel.core.access import Actor
from carrel.core.errors import Forbidden, NotFound, ValidationError
from carrel.core.identifiers import identifier
from carrel.core.store.event import TYPES
from carrel.core.store.record import Record, RecordChange, RecordType
from carrel.core.store.tree import IdempotencyKey
from carrel.core.webhooks import Delivery, DeliveryAttempt
from carrel.ports import Ports

EVERYTHING: Final = "*"
PREFIX: Final = "whsec_"
LONGEST_URL: Final = 2048
_URL: Final = re.compile(rf"https?://[!-~]{{1,{LONGEST_URL - 8}}}", re.IGNORECASE)

Logged = tuple[Delivery, tuple[DeliveryAttempt, ...]]


@dataclass(frozen=True, slots=True)
class NewWebhook:
    webhook: Record
    secret: str
    """Shown this once."""


async def create(
    ports: Ports,
    actor: Actor,
    url: str,
    events: Sequence[str],
    *,
    secret: str | None = None,
    receipt: IdempotencyKey | None = None,
) -> NewWebhook:
    """Raises Malformed, with the reason where the address is one that we do not post to."""
    _unconfined(actor)
    body = {"url": await _address(ports, url), "events": _events(events), "active": True}
    secret = secret or _fresh_secret(ports)
    id = ports.clock.new_id("whk")
    sealed = ports.vault.seal(_secret(secret), _context(actor.tenant, id))
    change = RecordChange(
        actor.tenant, RecordType.WEBHOOK, id, {**body, "sealed": sealed}, expected=0
    )
    await has_no_webhooks(ports)  # the first webhook hears nothing of what came before it
    at = await commit_changes(ports, actor.name, "add a webhook", [change], receipt=receipt)
    return NewWebhook(record_after(change, at), secret)


async def get(ports: Ports, actor: Actor, id: str) -> Record:
    _unconfined(actor)
    return await find(ports, actor.tenant, RecordType.WEBHOOK, id)


async def listing(
    ports: Ports, actor: Actor, *, cursor: str = "", limit: int = 100
) -> Page[Record]:
    _unconfined(actor)
    return await records_page(ports, actor.tenant, RecordType.WEBHOOK, cursor=cursor, limit=limit)


@dataclass(frozen=True, slots=True)
class WebhookPatch:
    """What should become different; None leaves it as it is."""

    url: str | None = None
    events: Sequence[str] | None = None
    active: bool | None = None


async def change(
    ports: Ports, actor: Actor, id: str, patch: WebhookPatch, receipt: IdempotencyKey | None = None
) -> Record:
    """Raises Malformed and Missing."""
    _unconfined(actor)
    given: dict[str, object] = {}
    if patch.url is not None:
        given["url"] = await _address(ports, patch.url)
    if patch.events is not None:
        given["events"] = _events(patch.events)
    if patch.active is not None:
        given["active"] = patch.active

    async def attempt() -> Record:
        was = await get(ports, actor, id)
        wanted = RecordChange(was.tenant, was.type, was.id, {**was.body, **given}, was.revision)
        reason = "change a webhook"
        at = await commit_changes(ports, actor.name, reason, [wanted], receipt=receipt)
        return record_after(wanted, at, was)

    return await retry_while_busy(attempt)


async def delete(
    ports: Ports, actor: Actor, id: str, receipt: IdempotencyKey | None = None
) -> None:
    async def attempt() -> None:
        was = await get(ports, actor, id)
        gone = RecordChange(was.tenant, was.type, was.id, None, was.revision)
        await commit_changes(ports, actor.name, "remove a webhook", [gone], receipt=receipt)

    await retry_while_busy(attempt)


async def deliveries(
    ports: Ports, actor: Actor, id: str, *, cursor: str = "", limit: int = 100
) -> Page[Logged]:
    """What was or will be posted, newest first, with every attempt. Raises Missing."""
    webhook = await get(ports, actor, id)
    before = validate_cursor(cursor, "msg")
    found = await ports.deliveries.list(webhook.tenant, webhook.id, before=before, limit=limit + 1)
    more = len(found) > limit
    return Page(found[:limit], found[limit - 1][0].id if more else None)


async def replay(ports: Ports, actor: Actor, id: str, delivery: str) -> Delivery:
    """Post it once more, and go on trying as if for the first time. Raises Missing."""
    webhook = await get(ports, actor, id)
    try:
        [found] = await ports.deliveries.get(webhook.tenant, [identifier(delivery)])
    except ValidationError:
        raise NotFound("there is no delivery of that id") from None
    if found is None or found.webhook != webhook.id:
        raise NotFound(f"there is no delivery {delivery}")
    await ports.deliveries.replay(replace(found, due=ports.clock.now()))
    [again] = await ports.deliveries.get(webhook.tenant, [found.id])
    if again is None:
        raise NotFound(f"there is no delivery {delivery}")
    return again


async def has_no_webhooks(ports: Ports) -> bool:
    """Whether there is no webhook at all; then the mark moves past what nobody will be told.

    How far is asked first: a webhook that comes meanwhile hears of all that happens after it.
    """
    mark, latest = await ports.deliveries.cursor(), await ports.events.latest()
    if await ports.records.list("", RecordType.WEBHOOK, limit=1):
        return False
    if latest != mark:
        await ports.deliveries.enqueue(mark, latest, ())
    return True


async def active_webhooks(ports: Ports, tenant: str) -> tuple[Record, ...]:
    """The tenant's active webhooks, asked for once for as long as no record changes."""
    revision = await ports.records.revision()
    found: tuple[Record, ...] | None = ports.record_cache.get(revision, ("webhooks", tenant))
    if found is None:
        known = [record async for record in iter_records(ports, tenant, RecordType.WEBHOOK)]
        found = tuple(record for record in known if record.body["active"])
        ports.record_cache.put(revision, ("webhooks", tenant), found)
    return found


def wants(webhook: Record, type: str) -> bool:
    return bool({EVERYTHING, type} & set(webhook.body["events"]))


def secret_of(ports: Ports, webhook: Record) -> bytes:
    """Raises Corrupt where it was sealed under another key."""
    return ports.vault.open(webhook.body["sealed"], _context(webhook.tenant, webhook.id))


def _context(tenant: str, id: str) -> str:
    return f"webhook/{tenant}/{id}"


def _unconfined(actor: Actor) -> None:
    """A webhook hears of the whole tenant, so those who see only a part of it have none."""
    if actor.is_confined:
        raise Forbidden("a credential that is confined to one workspace has no webhooks")


async def _address(ports: Ports, url: str) -> str:
    if not _URL.fullmatch(url):
        raise ValidationError(f"url is an http or https URL of at most {LONGEST_URL} characters")
    if reason := await ports.webhook_sender.refusal_reason(url):
        raise ValidationError(f"nothing is posted to this url: {reason}")
    return url


def _events(names: Sequence[str]) -> list[str]:
    unknown = [name for name in names if name not in {EVERYTHING, *TYPES}]
    if unknown or not names:
        raise ValidationError(f"events are some of {', '.join(TYPES)}, or {EVERYTHING}")
    return list(dict.fromkeys(names))


def _fresh_secret(ports: Ports) -> str:
    chance = hashlib.sha256(ports.clock.new_token("whsec").encode()).digest()
    return PREFIX + base64.b64encode(chance).decode()


def _secret(text: str) -> bytes:
    """The key that a secret stands for. Raises Malformed, without repeating it."""
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(PREFIX) or not 24 <= len(key) <= 64:
        raise ValidationError(f"secret is {PREFIX} and 24 to 64 bytes in base64")
    return key
