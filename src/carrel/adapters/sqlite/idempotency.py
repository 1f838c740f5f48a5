"""Receipts in SQLite."""

from __future__ import annotations

import json
from sqlite3 import Connection

from carrel.adapters.sqlite.database import SQL
from carrel.adapters.sqlite.writer import Writer
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


class SqliteIdempotencyStore:
    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def claim(
        self, key: IdempotencyKey, fingerprint: str, now: TimestampMs, stale: TimestampMs
    ) -> Claim:
        return await self._writer.submit(lambda db, _: _claim(db, key, fingerprint, now, stale))

    async def complete(self, key: IdempotencyKey, receipt: StoredResponse) -> None:
        ask = (receipt.status, receipt.sealed, *_columns(key))
        await self._writer.submit(lambda db, _: db.execute(SQL["settle_receipt"], ask) and None)

    async def release(self, key: IdempotencyKey) -> None:
        ask = _columns(key)
        await self._writer.submit(lambda db, _: db.execute(SQL["drop_receipt"], ask) and None)


def _columns(key: IdempotencyKey) -> tuple[str, str, str]:
    return (key.tenant, key.endpoint, key.key)


def _claim(
    db: Connection, key: IdempotencyKey, fingerprint: str, now: TimestampMs, stale: TimestampMs
) -> Claim:
    found = db.execute(SQL["receipt"], _columns(key)).fetchone()
    if found:
        used, claimed, versions, status, sealed = found
        if used != fingerprint:
            return KeyMismatch()
        if status is not None:
            return Completed(StoredResponse(status, sealed))
        if versions is not None:
            return Committed(tuple(json.loads(versions)))
        if claimed >= stale:
            return InProgress()
    db.execute(SQL["set_receipt"], (*_columns(key), fingerprint, now))
    return Claimed()
