"""Receipts in a dictionary. Trees.commit marks them."""

from __future__ import annotations

from carrel.adapters.memory.state import IdempotencyClaim, MemoryState
from carrel.core.identifiers import TimestampMs
from carrel.core.store.idempotency import (
    Claim,
    Committed,
    Completed,
    InProgress,
    KeyMismatch,
    StoredResponse,
)
from carrel.core.store.idempotency import Claimed as Taken
from carrel.core.store.tree import IdempotencyKey


class MemoryIdempotencyStore:
    def __init__(self, state: MemoryState) -> None:
        self._receipts = state.receipts

    async def claim(
        self, key: IdempotencyKey, fingerprint: str, now: TimestampMs, stale: TimestampMs
    ) -> Claim:
        known = self._receipts.get(key)
        if known and (claim := _known(known, fingerprint, stale)):
            return claim
        self._receipts[key] = IdempotencyClaim(fingerprint, now)
        return Taken()

    async def complete(self, key: IdempotencyKey, receipt: StoredResponse) -> None:
        known = self._receipts.get(key)
        if known and known.receipt is None:
            known.receipt = receipt

    async def release(self, key: IdempotencyKey) -> None:
        known = self._receipts.get(key)
        if known and known.versions is None and known.receipt is None:
            del self._receipts[key]


def _known(known: IdempotencyClaim, fingerprint: str, stale: TimestampMs) -> Claim | None:
    """What is known of a key's holder; None if it may be taken over."""
    if known.fingerprint != fingerprint:
        return KeyMismatch()
    if known.receipt is not None:
        return Completed(known.receipt)
    if known.versions is not None:
        return Committed(known.versions)
    return None if known.at < stale else InProgress()
