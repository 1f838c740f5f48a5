"""Webhooks and their deliveries: signatures, retry schedule and attempt results."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.core.identifiers import TimestampMs
from carrel.core.store.record import Record, decode_body

BACKOFF_SECONDS: Final = (5, 30, 120, 600, 3600, 6 * 3600, 24 * 3600)
"""Wait after each failed attempt; the delivery fails after the last one."""
RETENTION_MS: Final = 30 * 24 * 3600 * 1000
"""Age at which a closed delivery and its attempts are deleted."""


class WebhookRecord(Struct, frozen=True, rename="camel"):
    url: str
    events: list[str]
    """Event types, or `*` for all."""
    active: bool
    sealed: str
    """Signing secret, sealed."""


class DeliveryState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Delivery(Struct, frozen=True):
    id: str
    """Sent as `webhook-id`; the same for every attempt."""
    tenant: str
    webhook: str
    type: str
    body: bytes
    state: DeliveryState
    created_at: TimestampMs
    due_at: TimestampMs
    attempts: int = 0


class PostResult(Struct, frozen=True):
    """Result of one HTTP POST: a status, or the problem that prevented one."""

    status: int | None
    problem: str = ""
    elapsed_ms: int = 0

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class DeliveryAttempt(Struct, frozen=True):
    at: TimestampMs
    result: PostResult


def webhook_from_record(record: Record) -> WebhookRecord:
    return decode_body(record, WebhookRecord)


def apply_attempt(
    delivery: Delivery, result: PostResult, now: TimestampMs, backoff: tuple[int, ...]
) -> Delivery:
    """Return the delivery after this attempt: delivered, failed or rescheduled."""
    attempts = delivery.attempts + 1
    if result.ok:
        return replace(delivery, state=DeliveryState.DELIVERED, attempts=attempts)
    if attempts > len(backoff):
        return replace(delivery, state=DeliveryState.FAILED, attempts=attempts)
    return replace(delivery, attempts=attempts, due_at=now + backoff[attempts - 1] * 1000)


def signature_headers(secret: bytes, id: str, now: TimestampMs, body: bytes) -> Mapping[str, str]:
    """Headers of the Standard Webhooks specification."""
    stamp = str(now // 1000)
    mac = hmac.new(secret, f"{id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": id,
        "webhook-timestamp": stamp,
        "webhook-signature": "v1," + base64.b64encode(mac).decode(),
    }
