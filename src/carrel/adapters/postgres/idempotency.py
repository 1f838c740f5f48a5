"""Receipts in PostgreSQL. Trees.commit marks them."""

from __future__ import annotations

from carrel.adapters.postgres.database import Database
from carrel.adapters.postgres.rows import from_json
from carrel.core.identifiers import Moment
from carrel.core.store.idempotency import Claim, Marked, Mismatch, Receipt, Settled, Taken, Waiting
from carrel.core.store.tree import ReceiptKey


class PostgresReceipts:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, key: ReceiptKey, fingerprint: str, now: Moment, stale: Moment) -> Claim:
        ask = (*_columns(key), fingerprint, now, stale)
        taken, used, versions, status, sealed = await self._database.row("claim_receipt", *ask)
        if taken:
            return Taken()
        if used != fingerprint:
            return Mismatch()
        if status is not None:
            return Settled(Receipt(status, sealed))
        return Waiting() if versions is None else Marked(tuple(from_json(versions)))

    async def settle(self, key: ReceiptKey, receipt: Receipt) -> None:
        ask = (*_columns(key), receipt.status, receipt.sealed)
        await self._database.rows("settle_receipt", *ask)

    async def drop(self, key: ReceiptKey) -> None:
        await self._database.rows("drop_receipt", *_columns(key))


def _columns(key: ReceiptKey) -> tuple[str, str, str]:
    return (key.tenant, key.endpoint, key.key)
