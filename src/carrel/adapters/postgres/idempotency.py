"""Receipts in PostgreSQL. Trees.commit marks them."""

from __future__ import annotations

from carrel.adapters.postgres.database import Database
from carrel.adapters.postgres.rows import from_json
from carrel.core.identifiers import TimestampMs
from carrel.core.store.idempotency import (
    Claim,
    Claimed,
    Committed,
    Completed,
    InProgress,
    KeyMismatch,
    StoredResponse,
)
from carrel.core.store.tree import IdempotencyKey


class PostgresIdempotencyStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(
        self, key: IdempotencyKey, fingerprint: str, now: TimestampMs, stale: TimestampMs
    ) -> Claim:
        ask = (*_columns(key), fingerprint, now, stale)
        taken, used, versions, status, sealed = await self._database.row("claim_receipt", *ask)
        if taken:
            return Claimed()
        if used != fingerprint:
            return KeyMismatch()
        if status is not None:
            return Completed(StoredResponse(status, sealed))
        return InProgress() if versions is None else Committed(tuple(from_json(versions)))

    async def complete(self, key: IdempotencyKey, receipt: StoredResponse) -> None:
        ask = (*_columns(key), receipt.status, receipt.sealed)
        await self._database.rows("settle_receipt", *ask)

    async def release(self, key: IdempotencyKey) -> None:
        await self._database.rows("drop_receipt", *_columns(key))


def _columns(key: IdempotencyKey) -> tuple[str, str, str]:
    return (key.tenant, key.endpoint, key.key)
