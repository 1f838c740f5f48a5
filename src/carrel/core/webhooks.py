"""Webhooks: what is signed, when it is tried again, and what became of it."""

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

BACKOFF: Final = (5, 30, 120, 600, 3600, 6 * 3600, 24 * 3600)
"""Seconds to wait after each failed attempt; when they are used up the delivery has failed."""


class DeliveryState(StrEnum):
    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Delivery(Struct, frozen=True):
    id: str
    """Also the ``webhook-id`` that the receiver sees: the same for every attempt."""
    tenant: str
    webhook: str
    type: str
    body: bytes
    state: DeliveryState
    created: TimestampMs
    due: TimestampMs
    tries: int = 0


class PostResult(Struct, frozen=True):
    """What came of one post: a status, or why there was none."""

    status: int | None
    problem: str = ""
    took: int = 0
    """Milliseconds."""

    @property
    def ok(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


class DeliveryAttempt(Struct, frozen=True):
    at: TimestampMs
    posted: PostResult


def after(
    delivery: Delivery, posted: PostResult, now: TimestampMs, backoff: tuple[int, ...]
) -> Delivery:
    """The delivery once this attempt is counted."""
    tries = delivery.tries + 1
    if posted.ok:
        return replace(delivery, state=DeliveryState.DELIVERED, tries=tries)
    if tries > len(backoff):
        return replace(delivery, state=DeliveryState.FAILED, tries=tries)
    return replace(delivery, tries=tries, due=now + backoff[tries - 1] * 1000)


def signed(secret: bytes, id: str, now: TimestampMs, body: bytes) -> Mapping[str, str]:
    """The headers of the Standard Webhooks convention."""
    stamp = str(now // 1000)
    mac = hmac.new(secret, f"{id}.{stamp}.".encode() + body, hashlib.sha256).digest()
    return {
        "webhook-id": id,
        "webhook-timestamp": stamp,
        "webhook-signature": "v1," + base64.b64encode(mac).decode(),
    }
