"""Webhook deliveries in PostgreSQL. Leasing locks rows and skips locked ones."""

from __future__ import annotations

from collections.abc import Sequence

from carrel.adapters.postgres.database import Database, searchable_text
from carrel.adapters.postgres.idempotency import mark_columns
from carrel.adapters.postgres.rows import Row, from_json, transpose
from carrel.core.identifiers import TimestampMs
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, PostResult


class PostgresDeliveries:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def cursor(self) -> str | None:
        value: str | None = await self._database.value("delivery_cursor")
        return value

    async def enqueue(
        self, expected: str | None, cursor: str, deliveries: Sequence[Delivery]
    ) -> bool:
        rows = [
            (d.id, d.tenant, d.webhook, d.type, d.body, d.state, d.created_at, d.due_at, d.attempts)
            for d in deliveries
        ]
        is_enqueued: bool = await self._database.value(
            "enqueue_deliveries", expected, cursor, *transpose(rows, 9)
        )
        return is_enqueued

    async def lease_due(
        self, now: TimestampMs, leased_until: TimestampMs, limit: int
    ) -> tuple[Delivery, ...]:
        rows = await self._database.rows("lease_deliveries", now, leased_until, limit)
        return tuple(map(_delivery_from_row, rows))

    async def record_attempts(self, results: Sequence[tuple[Delivery, DeliveryAttempt]]) -> None:
        rows = [
            (
                d.id,
                d.state,
                d.due_at,
                d.attempts,
                a.at,
                a.result.status,
                a.result.problem,
                a.result.elapsed_ms,
            )
            for d, a in results
        ]
        await self._database.rows("record_attempts", *transpose(rows, 8))

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Delivery | None, ...]:
        requested = [searchable_text(id) for id in ids]
        rows = await self._database.rows("deliveries", searchable_text(tenant), requested)
        by_id = {row[0]: _delivery_from_row(row) for row in rows}
        return tuple(by_id.get(id) for id in ids)

    async def list(
        self, tenant: str, webhook: str, *, before: str = "", limit: int = 100
    ) -> tuple[tuple[Delivery, tuple[DeliveryAttempt, ...]], ...]:
        parameters = (searchable_text(tenant), searchable_text(webhook), before or None, limit)
        rows = await self._database.rows("list_deliveries", *parameters)
        return tuple((_delivery_from_row(row), _attempts_from_json(row[9])) for row in rows)

    async def count(self, tenant: str, webhook: str) -> int:
        parameters = (searchable_text(tenant), searchable_text(webhook))
        return int(await self._database.value("count_deliveries", *parameters))

    async def replay(
        self, delivery: Delivery, idempotency_key: IdempotencyKey | None = None
    ) -> None:
        parameters = (delivery.id, delivery.tenant, delivery.due_at)
        await self._database.rows(
            "replay_delivery", *parameters, *mark_columns(idempotency_key, ())
        )


def _delivery_from_row(row: Row) -> Delivery:
    id, tenant, webhook, type, body, state, created_at, due_at, attempts = row[:9]
    return Delivery(
        id, tenant, webhook, type, body, DeliveryState(state), created_at, due_at, attempts
    )


def _attempts_from_json(text: str | None) -> tuple[DeliveryAttempt, ...]:
    return tuple(
        DeliveryAttempt(at, PostResult(*posted)) for at, *posted in from_json(text or "[]")
    )
