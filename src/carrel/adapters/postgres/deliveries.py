"""Deliveries in PostgreSQL. Who takes one locks its row, and others pass over it."""

from __future__ import annotations

from collections.abc import Sequence

from carrel.adapters.postgres.database import Database, searchable_text
from carrel.adapters.postgres.rows import Row, columns, from_json
from carrel.core.identifiers import TimestampMs
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState, PostResult


class PostgresDeliveries:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def cursor(self) -> str | None:
        found: str | None = await self._database.value("mark")
        return found

    async def enqueue(self, was: str | None, mark: str, deliveries: Sequence[Delivery]) -> bool:
        rows = [
            (d.id, d.tenant, d.webhook, d.type, d.body, d.state, d.created, d.due, d.tries)
            for d in deliveries
        ]
        moved: bool = await self._database.value("enqueue_deliveries", was, mark, *columns(rows, 9))
        return moved

    async def lease_due(
        self, now: TimestampMs, lease: TimestampMs, limit: int
    ) -> tuple[Delivery, ...]:
        rows = await self._database.rows("lease_deliveries", now, lease, limit)
        return tuple(map(_delivery, rows))

    async def record_attempts(self, results: Sequence[tuple[Delivery, DeliveryAttempt]]) -> None:
        rows = [
            (d.id, d.state, d.due, d.tries, a.at, a.posted.status, a.posted.problem, a.posted.took)
            for d, a in results
        ]
        await self._database.rows("settle_deliveries", *columns(rows, 8))

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Delivery | None, ...]:
        wanted = [searchable_text(id) for id in ids]
        rows = await self._database.rows("deliveries", searchable_text(tenant), wanted)
        found = {row[0]: _delivery(row) for row in rows}
        return tuple(found.get(id) for id in ids)

    async def list(
        self, tenant: str, webhook: str, *, before: str = "", limit: int = 100
    ) -> tuple[tuple[Delivery, tuple[DeliveryAttempt, ...]], ...]:
        ask = (searchable_text(tenant), searchable_text(webhook), before or None, limit)
        rows = await self._database.rows("deliveries_listed", *ask)
        return tuple((_delivery(row), _attempts(row[9])) for row in rows)

    async def replay(self, delivery: Delivery) -> None:
        ask = (delivery.id, delivery.tenant, delivery.due)
        await self._database.rows("replay_delivery", *ask)


def _delivery(row: Row) -> Delivery:
    id, tenant, webhook, type, body, state, created, due, tries = row[:9]
    return Delivery(id, tenant, webhook, type, body, DeliveryState(state), created, due, tries)


def _attempts(told: str | None) -> tuple[DeliveryAttempt, ...]:
    return tuple(
        DeliveryAttempt(at, PostResult(*posted)) for at, *posted in from_json(told or "[]")
    )
