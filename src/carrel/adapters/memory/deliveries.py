"""Deliveries in a dictionary, each with the log of its attempts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from msgspec.structs import replace

from carrel.adapters.memory.state import MemoryState
from carrel.core.identifiers import TimestampMs
from carrel.core.webhooks import Delivery, DeliveryAttempt, DeliveryState


class MemoryDeliveries:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def cursor(self) -> str | None:
        return self._state.mark

    async def enqueue(self, was: str | None, mark: str, deliveries: Sequence[Delivery]) -> bool:
        if self._state.mark != was:
            return False
        self._state.mark = mark
        self._state.deliveries.update({delivery.id: delivery for delivery in deliveries})
        return True

    async def lease_due(
        self, now: TimestampMs, lease: TimestampMs, limit: int
    ) -> tuple[Delivery, ...]:
        waiting = [d for d in self._state.deliveries.values() if d.state is DeliveryState.PENDING]
        ripe = sorted((d.due, d.id) for d in waiting if d.due <= now)[:limit]
        taken = {id: replace(self._state.deliveries[id], due=lease) for _, id in ripe}
        self._state.deliveries.update(taken)
        return tuple(taken.values())

    async def record_attempts(self, results: Sequence[tuple[Delivery, DeliveryAttempt]]) -> None:
        for delivery, attempt in results:
            self._state.deliveries[delivery.id] = delivery
            self._state.attempts.setdefault(delivery.id, []).append(attempt)

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Delivery | None, ...]:
        found = (self._state.deliveries.get(id) for id in ids)
        return tuple(d if d and d.tenant == tenant else None for d in found)

    async def list(
        self, tenant: str, webhook: str, *, before: str = "", limit: int = 100
    ) -> tuple[tuple[Delivery, tuple[DeliveryAttempt, ...]], ...]:
        newest = (self._state.deliveries[id] for id in sorted(self._state.deliveries, reverse=True))
        mine = (d for d in newest if (d.tenant, d.webhook) == (tenant, webhook))
        page = islice((d for d in mine if not before or d.id < before), limit)
        return tuple((d, tuple(self._state.attempts.get(d.id, ()))) for d in page)

    async def replay(self, delivery: Delivery) -> None:
        if delivery.id in self._state.deliveries:
            again = replace(delivery, state=DeliveryState.PENDING, tries=0)
            self._state.deliveries[delivery.id] = again
