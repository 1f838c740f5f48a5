"""Idempotency records in PostgreSQL. Trees.commit marks them as committed."""

from __future__ import annotations

from collections.abc import Iterable

from carrel.adapters.postgres.database import Database
from carrel.adapters.postgres.rows import Row, from_json, to_json
from carrel.core.identifiers import TimestampMs
from carrel.core.store.idempotency import (
    Claim,
    Claimed,
    Committed,
    Completed,
    IdempotencyKey,
    InProgress,
    KeyMismatch,
    StoredResponse,
)


class PostgresIdempotencyStore:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(
        self, key: IdempotencyKey, fingerprint: str, now: TimestampMs, stale_before: TimestampMs
    ) -> Claim:
        parameters = (*_key_columns(key), fingerprint, now, stale_before)
        (
            is_claimed,
            stored_fingerprint,
            versions,
            revision,
            status,
            sealed,
        ) = await self._database.row("claim_idempotency_key", *parameters)
        if is_claimed:
            return Claimed()
        if stored_fingerprint != fingerprint:
            return KeyMismatch()
        if status is not None:
            return Completed(StoredResponse(status, sealed))
        if versions is None:
            return InProgress()
        return Committed(tuple(from_json(versions)), revision or 0)

    async def complete(self, key: IdempotencyKey, response: StoredResponse) -> None:
        parameters = (*_key_columns(key), response.status, response.sealed)
        await self._database.rows("complete_idempotency_key", *parameters)

    async def unmark(self, key: IdempotencyKey) -> None:
        await self._database.rows("unmark_idempotency_key", *_key_columns(key))

    async def release(self, key: IdempotencyKey) -> None:
        await self._database.rows("release_idempotency_key", *_key_columns(key))


def mark_columns(key: IdempotencyKey | None, versions: Iterable[int]) -> Row:
    """Parameters that mark the key, if any, in the statement of the change."""
    if key is None:
        return (None,) * 4
    return (*_key_columns(key), to_json(list(versions)))


def _key_columns(key: IdempotencyKey) -> tuple[str, str, str]:
    return (key.tenant, key.endpoint, key.key)
