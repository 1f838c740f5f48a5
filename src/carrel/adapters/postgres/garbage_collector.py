"""Deletes unreferenced and expired rows in small batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import asyncpg

from carrel.adapters.postgres.advisory_locks import content_lock_name, lock_number, scope_lock_name
from carrel.adapters.postgres.database import STATEMENTS
from carrel.adapters.postgres.rows import from_json, scope_from_row, transpose
from carrel.core import webhooks
from carrel.core.identifiers import TimestampMs
from carrel.core.policy import Limits
from carrel.core.store import idempotency

_DELETE_BATCH_SIZE: Final = 500
_SELECT_BATCH_SIZE: Final = 20_000


class PostgresGarbageCollector:
    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def collect(self, now: TimestampMs, grace: int, events_kept: int) -> Mapping[str, int]:
        """Delete garbage and return counts. Versions first, since they hold contents."""
        await self._delete_unfinished_contents(now - grace)
        return {
            "versions": await self._collect_versions(),
            "contents": await self._collect_contents(now - grace),
            "receipts": await self._delete_before(
                "delete_expired_idempotency_keys", now - idempotency.RETENTION_MS
            ),
            "attempts": await self._delete_before(
                "delete_old_attempts", now - webhooks.RETENTION_MS
            ),
            "deliveries": await self._delete_before(
                "delete_old_deliveries", now - webhooks.RETENTION_MS
            ),
            "events": await self._delete_before("delete_expired_events", now - events_kept),
        }

    async def _delete_before(self, name: str, before: TimestampMs) -> int:
        return int(await self._connection.fetchval(STATEMENTS[name], before))

    async def _collect_versions(self) -> int:
        policies = [
            (tenant, _max_versions(body, "limits"), _max_versions(body, "sharedLimits"))
            for tenant, body in await self._connection.fetch(STATEMENTS["policies"])
        ]
        rows = await self._connection.fetch(STATEMENTS["prunable_scopes"], *transpose(policies, 3))
        deleted = 0
        for id, tenant, kind, name, max_versions in rows:
            lock = lock_number(scope_lock_name(scope_from_row(tenant, kind, name)))
            deleted += await self._connection.fetchval(
                STATEMENTS["prune_versions"], lock, id, max_versions
            )
        return deleted

    async def _collect_contents(self, before: TimestampMs) -> int:
        deleted, last_id = 0, 0
        while rows := await self._connection.fetch(
            STATEMENTS["unreferenced_contents"], last_id, before, _SELECT_BATCH_SIZE
        ):
            ids = [row[0] for row in rows]
            last_id = ids[-1]
            for start in range(0, len(ids), _DELETE_BATCH_SIZE):
                batch = ids[start : start + _DELETE_BATCH_SIZE]
                locks = [lock_number(content_lock_name(id)) for id in batch]
                deleted += await self._connection.fetchval(
                    STATEMENTS["delete_contents"], batch, locks
                )
        return deleted

    async def _delete_unfinished_contents(self, before: TimestampMs) -> None:
        """Delete uploads of large contents that were never finished, one at a time."""
        for row in await self._connection.fetch(STATEMENTS["unfinished_large_contents"], before):
            await self._connection.execute(STATEMENTS["delete_large_content"], row[0])


def _max_versions(body: str, limits: str) -> int:
    section: Any = from_json(body).get(limits, {})
    return max(int(section.get("maxVersions", Limits().max_versions)), 1)
