"""Receipts in a dictionary. Trees.commit marks them."""

from __future__ import annotations

from carrel.adapters.memory.state import Claimed, MemoryState
from carrel.core.identifiers import Moment
from carrel.core.store.idempotency import Claim, Marked, Mismatch, Receipt, Settled, Taken, Waiting
from carrel.core.store.tree import ReceiptKey


class MemoryReceipts:
    def __init__(self, state: MemoryState) -> None:
        self._receipts = state.receipts

    async def claim(self, key: ReceiptKey, fingerprint: str, now: Moment, stale: Moment) -> Claim:
        known = self._receipts.get(key)
        if known and (claim := _known(known, fingerprint, stale)):
            return claim
        self._receipts[key] = Claimed(fingerprint, now)
        return Taken()

    async def settle(self, key: ReceiptKey, receipt: Receipt) -> None:
        known = self._receipts.get(key)
        if known and known.receipt is None:
            known.receipt = receipt

    async def drop(self, key: ReceiptKey) -> None:
        known = self._receipts.get(key)
        if known and known.versions is None and known.receipt is None:
            del self._receipts[key]


def _known(known: Claimed, fingerprint: str, stale: Moment) -> Claim | None:
    """What is known of a key's holder; None if it may be taken over."""
    if known.fingerprint != fingerprint:
        return Mismatch()
    if known.receipt is not None:
        return Settled(known.receipt)
    if known.versions is not None:
        return Marked(known.versions)
    return None if known.at < stale else Waiting()
