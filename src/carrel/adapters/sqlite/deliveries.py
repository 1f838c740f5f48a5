"""Deliveries in SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from sqlite3 import Connection

from carrel.adapters.sqlite.database import SQL, transaction
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.rows import Row
from carrel.adapters.sqlite.writer import Writer
from carrel.core.identifiers import TimestampMs
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, PostResult


class SqliteDeliveries:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    async def cursor(self) -> str | None:
        found = self._reader.db.execute(SQL["mark"]).fetchone()
        return found[0] if found else None

    async def enqueue(self, was: str | None, mark: str, deliveries: Sequence[Delivery]) -> bool:
        return await self._writer.submit(lambda db, _: _enqueue(db, was, mark, deliveries))

    async def lease_due(
        self, now: TimestampMs, lease: TimestampMs, limit: int
    ) -> tuple[Delivery, ...]:
        ask = (now, lease, limit)
        return await self._writer.submit(
            lambda db, _: tuple(map(_delivery, db.execute(SQL["lease"], ask).fetchall()))
        )

    async def record_attempts(self, results: Sequence[tuple[Delivery, DeliveryAttempt]]) -> None:
        await self._writer.submit(lambda db, _: _settle(db, results))

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Delivery | None, ...]:
        ask = (json.dumps(list(ids)), tenant)
        rows = map(_delivery, self._reader.db.execute(SQL["deliveries"], ask).fetchall())
        found = {delivery.id: delivery for delivery in rows}
        return tuple(found.get(id) for id in ids)

    async def list(
        self, tenant: str, webhook: str, *, before: str = "", limit: int = 100
    ) -> tuple[tuple[Delivery, tuple[DeliveryAttempt, ...]], ...]:
        ask = (tenant, webhook, before or "~", limit)
        attempts: dict[str, list[DeliveryAttempt]] = {}
        with transaction(self._reader.db, "DEFERRED") as db:
            found = db.execute(SQL["deliveries_listed"], ask).fetchall()
            ids = json.dumps([row[0] for row in found])
            for id, at, *posted in db.execute(SQL["attempts"], (ids,)).fetchall():
                attempts.setdefault(id, []).append(DeliveryAttempt(at, PostResult(*posted)))
        return tuple((_delivery(row), tuple(attempts.get(row[0], ()))) for row in found)

    async def replay(self, delivery: Delivery) -> None:
        ask = (delivery.due, delivery.id, delivery.tenant)
        await self._writer.submit(lambda db, _: db.execute(SQL["replay_delivery"], ask) and None)


def _delivery(row: Row) -> Delivery:
    id, tenant, webhook, type, body, state, created, due, tries = row
    return Delivery(id, tenant, webhook, type, body, DeliveryState(state), created, due, tries)


def _enqueue(db: Connection, was: str | None, mark: str, deliveries: Sequence[Delivery]) -> bool:
    found = db.execute(SQL["mark"]).fetchone()
    if (found[0] if found else None) != was:
        return False
    rows = [
        (d.id, d.tenant, d.webhook, d.type, d.body, d.state, d.created, d.due, d.tries)
        for d in deliveries
    ]
    db.executemany(SQL["add_delivery"], rows)
    db.execute(SQL["set_mark"], (mark,))
    return True


def _settle(db: Connection, results: Sequence[tuple[Delivery, DeliveryAttempt]]) -> None:
    for delivery, attempt in results:
        db.execute(
            SQL["settle_delivery"], (delivery.state, delivery.due, delivery.tries, delivery.id)
        )
        posted = attempt.posted
        row = (delivery.id, attempt.at, posted.status, posted.problem, posted.took)
        db.execute(SQL["add_attempt"], row)
