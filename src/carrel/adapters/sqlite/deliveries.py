"""Webhook deliveries in SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from sqlite3 import Connection

from carrel.adapters.sqlite.commit_batch import CommitBatch
from carrel.adapters.sqlite.database import STATEMENTS, transaction
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.rows import Row
from carrel.adapters.sqlite.writer import Writer
from carrel.core.identifiers import TimestampMs
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, PostResult


class SqliteDeliveries:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    async def cursor(self) -> str | None:
        row = self._reader.db.execute(STATEMENTS["delivery_cursor"]).fetchone()
        return row[0] if row else None

    async def enqueue(
        self, expected: str | None, cursor: str, deliveries: Sequence[Delivery]
    ) -> bool:
        return await self._writer.submit(lambda db, _: _enqueue(db, expected, cursor, deliveries))

    async def lease_due(
        self, now: TimestampMs, leased_until: TimestampMs, limit: int
    ) -> tuple[Delivery, ...]:
        parameters = (now, leased_until, limit)
        return await self._writer.submit(
            lambda db, _: tuple(
                map(
                    _delivery_from_row,
                    db.execute(STATEMENTS["lease_deliveries"], parameters).fetchall(),
                )
            )
        )

    async def record_attempts(self, results: Sequence[tuple[Delivery, DeliveryAttempt]]) -> None:
        await self._writer.submit(lambda db, _: _record_attempts(db, results))

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Delivery | None, ...]:
        parameters = (json.dumps(list(ids)), tenant)
        rows = map(
            _delivery_from_row,
            self._reader.db.execute(STATEMENTS["deliveries"], parameters).fetchall(),
        )
        by_id = {delivery.id: delivery for delivery in rows}
        return tuple(by_id.get(id) for id in ids)

    async def list(
        self, tenant: str, webhook: str, *, before: str = "", limit: int = 100
    ) -> tuple[tuple[Delivery, tuple[DeliveryAttempt, ...]], ...]:
        parameters = (tenant, webhook, before or "~", limit)
        attempts: dict[str, list[DeliveryAttempt]] = {}
        with transaction(self._reader.db, "DEFERRED") as db:
            rows = db.execute(STATEMENTS["list_deliveries"], parameters).fetchall()
            ids = json.dumps([row[0] for row in rows])
            for id, at, *posted in db.execute(STATEMENTS["attempts"], (ids,)).fetchall():
                attempts.setdefault(id, []).append(DeliveryAttempt(at, PostResult(*posted)))
        return tuple((_delivery_from_row(row), tuple(attempts.get(row[0], ()))) for row in rows)

    async def count(self, tenant: str, webhook: str) -> int:
        counted = self._reader.db.execute(STATEMENTS["count_deliveries"], (tenant, webhook))
        return int(counted.fetchone()[0])

    async def replay(
        self, delivery: Delivery, idempotency_key: IdempotencyKey | None = None
    ) -> None:
        def replay(db: Connection, batch: CommitBatch) -> None:
            parameters = (delivery.due_at, delivery.id, delivery.tenant)
            db.execute(STATEMENTS["replay_delivery"], parameters)
            batch.mark_key(idempotency_key, ())

        await self._writer.submit(replay)


def _delivery_from_row(row: Row) -> Delivery:
    id, tenant, webhook, type, body, state, created_at, due_at, attempts = row
    return Delivery(
        id, tenant, webhook, type, body, DeliveryState(state), created_at, due_at, attempts
    )


def _enqueue(
    db: Connection, expected: str | None, new_cursor: str, deliveries: Sequence[Delivery]
) -> bool:
    row = db.execute(STATEMENTS["delivery_cursor"]).fetchone()
    if (row[0] if row else None) != expected:
        return False
    rows = [
        (d.id, d.tenant, d.webhook, d.type, d.body, d.state, d.created_at, d.due_at, d.attempts)
        for d in deliveries
    ]
    db.executemany(STATEMENTS["add_delivery"], rows)
    db.execute(STATEMENTS["set_delivery_cursor"], (new_cursor,))
    return True


def _record_attempts(db: Connection, results: Sequence[tuple[Delivery, DeliveryAttempt]]) -> None:
    for delivery, attempt in results:
        db.execute(
            STATEMENTS["update_delivery"],
            (delivery.state, delivery.due_at, delivery.attempts, delivery.id),
        )
        posted = attempt.result
        row = (delivery.id, attempt.at, posted.status, posted.problem, posted.elapsed_ms)
        db.execute(STATEMENTS["add_attempt"], row)
