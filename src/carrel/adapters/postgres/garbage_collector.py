"""Removing what nothing refers to, or what has run out, in small steps beside everybody's work."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import asyncpg

from carrel.adapters.postgres.advisory_locks import content_name, lock_of, scope_name
from carrel.adapters.postgres.database import SQL
from carrel.adapters.postgres.rows import columns, from_json, scope_of
from carrel.core.identifiers import TimestampMs
from carrel.core.policy import Limits

_DAY: Final = 24 * 3600 * 1000
_STEP: Final = 500
_MANY: Final = 20_000


class Collector:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def collect(self, now: TimestampMs, grace: int, events_kept: int) -> Mapping[str, int]:
        """Versions first, since they hold contents."""
        return {
            "versions": await self._versions(),
            "contents": await self._contents(now - grace),
            "receipts": await self._drop("drop_receipts", now - _DAY),
            "attempts": await self._drop("drop_attempts", now - 30 * _DAY),
            "deliveries": await self._drop("drop_deliveries", now - 30 * _DAY),
            "events": await self._drop("drop_events", now - events_kept),
        }

    async def _drop(self, name: str, before: TimestampMs) -> int:
        return int(await self._connection.fetchval(SQL[name], before))

    async def _versions(self) -> int:
        policies = [
            (tenant, _most_versions(body, "limits"), _most_versions(body, "sharedLimits"))
            for tenant, body in await self._connection.fetch(SQL["policies"])
        ]
        rows = await self._connection.fetch(SQL["prunable_scopes"], *columns(policies, 3))
        gone = 0
        for id, tenant, kind, name, keep in rows:
            lock = lock_of(scope_name(scope_of(tenant, kind, name)))
            gone += await self._connection.fetchval(SQL["prune_scope"], lock, id, keep)
        return gone

    async def _contents(self, before: TimestampMs) -> int:
        gone, past = 0, 0
        while found := await self._connection.fetch(SQL["unused_contents"], past, before, _MANY):
            ids = [row[0] for row in found]
            past = ids[-1]
            for n in range(0, len(ids), _STEP):
                some = ids[n : n + _STEP]
                locks = [lock_of(content_name(id)) for id in some]
                gone += await self._connection.fetchval(SQL["drop_contents"], some, locks)
        return gone


def _most_versions(body: str, limits: str) -> int:
    said: Any = from_json(body).get(limits, {})
    return max(int(said.get("maxVersions", Limits().max_versions)), 1)
