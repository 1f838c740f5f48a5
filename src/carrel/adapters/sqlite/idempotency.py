"""Receipts in SQLite."""

from __future__ import annotations

import json
from sqlite3 import Connection

from carrel.adapters.sqlite.database import SQL
from carrel.adapters.sqlite.writer import Writer
from carrel.core.identifiers import Moment
from carrel.core.store.idempotency import Claim, Marked, Mismatch, Receipt, Settled, Taken, Waiting
from carrel.core.store.tree import ReceiptKey


class SqliteReceipts:
    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def claim(self, key: ReceiptKey, fingerprint: str, now: Moment, stale: Moment) -> Claim:
        return await self._writer.do(lambda db, _: _claim(db, key, fingerprint, now, stale))

    async def settle(self, key: ReceiptKey, receipt: Receipt) -> None:
        ask = (receipt.status, receipt.sealed, *_columns(key))
        await self._writer.do(lambda db, _: db.execute(SQL["settle_receipt"], ask) and None)

    async def drop(self, key: ReceiptKey) -> None:
        ask = _columns(key)
        await self._writer.do(lambda db, _: db.execute(SQL["drop_receipt"], ask) and None)


def _columns(key: ReceiptKey) -> tuple[str, str, str]:
    return (key.tenant, key.endpoint, key.key)


def _claim(db: Connection, key: ReceiptKey, fingerprint: str, now: Moment, stale: Moment) -> Claim:
    found = db.execute(SQL["receipt"], _columns(key)).fetchone()
    if found:
        used, claimed, versions, status, sealed = found
        if used != fingerprint:
            return Mismatch()
        if status is not None:
            return Settled(Receipt(status, sealed))
        if versions is not None:
            return Marked(tuple(json.loads(versions)))
        if claimed >= stale:
            return Waiting()
    db.execute(SQL["set_receipt"], (*_columns(key), fingerprint, now))
    return Taken()
