"""Webhook deliveries and their transport."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from carrel.core.identifiers import TimestampMs
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.webhooks import Delivery, DeliveryAttempt, PostResult


class Deliveries(Protocol):
    """Webhook deliveries and their attempts."""

    async def cursor(self) -> str | None:
        """Return the cursor up to which events have been turned into deliveries."""

    async def enqueue(
        self, expected: str | None, cursor: str, deliveries: Sequence[Delivery]
    ) -> bool:
        """Add deliveries and advance the cursor if it still equals `expected`.

        Else return False.
        """

    async def lease_due(
        self, now: TimestampMs, leased_until: TimestampMs, limit: int
    ) -> tuple[Delivery, ...]:
        """Lease due deliveries; no other worker gets them until `leased_until`."""

    async def record_attempts(self, results: Sequence[tuple[Delivery, DeliveryAttempt]]) -> None:
        """Store each delivery and append the attempt to its log."""

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Delivery | None, ...]: ...

    async def list(
        self, tenant: str, webhook: str, *, before: str = "", limit: int = 100
    ) -> tuple[tuple[Delivery, tuple[DeliveryAttempt, ...]], ...]:
        """Return a webhook's deliveries, newest first, with their attempts."""

    async def count(self, tenant: str, webhook: str) -> int:
        """Return the number of a webhook's deliveries."""

    async def replay(
        self, delivery: Delivery, idempotency_key: IdempotencyKey | None = None
    ) -> None:
        """Make a delivery due again with its attempts reset. Marks the key."""


class WebhookSender(Protocol):
    """Sends signed bodies to webhook URLs."""

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> PostResult:
        """POST once, without following redirects. A refused URL is a result, not an error."""

    async def refusal_reason(self, url: str) -> str | None:
        """Return why this URL is refused (private, loopback, not https), or None."""
