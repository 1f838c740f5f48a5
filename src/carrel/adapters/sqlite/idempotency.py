"""Idempotency records in SQLite."""

from __future__ import annotations

import json
from sqlite3 import Connection

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.writer import Writer
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


class SqliteIdempotencyStore:
    """Idempotency keys in SQLite; may use the disk reserve, since deletions have keys too."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def claim(
        self, key: IdempotencyKey, fingerprint: str, now: TimestampMs, stale_before: TimestampMs
    ) -> Claim:
        return await self._writer.submit(
            lambda db, _: _claim(db, key, fingerprint, now, stale_before), frees_space=True
        )

    async def complete(self, key: IdempotencyKey, response: StoredResponse) -> None:
        parameters = (response.status, response.sealed, *_key_columns(key))
        await self._writer.submit(
            lambda db, _: db.execute(STATEMENTS["complete_idempotency_key"], parameters) and None,
            frees_space=True,
        )

    async def unmark(self, key: IdempotencyKey) -> None:
        parameters = _key_columns(key)
        await self._writer.submit(
            lambda db, _: db.execute(STATEMENTS["unmark_idempotency_key"], parameters) and None,
            frees_space=True,
        )

    async def release(self, key: IdempotencyKey) -> None:
        parameters = _key_columns(key)
        await self._writer.submit(
            lambda db, _: db.execute(STATEMENTS["release_idempotency_key"], parameters) and None,
            frees_space=True,
        )


def _key_columns(key: IdempotencyKey) -> tuple[str, str, str]:
    return (key.tenant, key.endpoint, key.key)


def _claim(
    db: Connection,
    key: IdempotencyKey,
    fingerprint: str,
    now: TimestampMs,
    stale_before: TimestampMs,
) -> Claim:
    row = db.execute(STATEMENTS["idempotency_key"], _key_columns(key)).fetchone()
    if row:
        stored_fingerprint, claimed_at, versions, revision, status, sealed = row
        if stored_fingerprint != fingerprint:
            return KeyMismatch()
        if status is not None:
            return Completed(StoredResponse(status, sealed))
        if versions is not None:
            return Committed(tuple(json.loads(versions)), revision or 0)
        if claimed_at >= stale_before:
            return InProgress()
    db.execute(STATEMENTS["claim_idempotency_key"], (*_key_columns(key), fingerprint, now))
    return Claimed()
