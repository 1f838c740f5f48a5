"""Stored responses of requests with an Idempotency-Key."""

from __future__ import annotations

from typing import Protocol

from carrel.core.identifiers import TimestampMs
from carrel.core.store.idempotency import Claim, IdempotencyKey, StoredResponse


class IdempotencyStore(Protocol):
    """Responses to requests with an Idempotency-Key."""

    async def claim(
        self, key: IdempotencyKey, fingerprint: str, now: TimestampMs, stale_before: TimestampMs
    ) -> Claim:
        """Claim the key for this request, or return the state of the request that has it.

        An incomplete claim older than `stale_before` may be taken over by the same fingerprint,
        unless a commit has marked it.
        """

    async def complete(self, key: IdempotencyKey, response: StoredResponse) -> None:
        """Store the response. Completing twice changes nothing."""

    async def unmark(self, key: IdempotencyKey) -> None:
        """Remove the mark of a commit whose change was undone, unless the key is completed."""

    async def release(self, key: IdempotencyKey) -> None:
        """Release the claim, unless a commit has marked it."""
