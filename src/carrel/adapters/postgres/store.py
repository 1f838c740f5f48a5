"""The PostgreSQL store as a whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from carrel.adapters.postgres.blobs import PostgresBlobs
from carrel.adapters.postgres.database import open_database
from carrel.adapters.postgres.deliveries import PostgresDeliveries
from carrel.adapters.postgres.erasure import PostgresErasure
from carrel.adapters.postgres.event_notifier import EventNotifier
from carrel.adapters.postgres.events import PostgresEvents
from carrel.adapters.postgres.former_blobs import BlobStoreWithFormer
from carrel.adapters.postgres.idempotency import PostgresIdempotencyStore
from carrel.adapters.postgres.large_blobs import PostgresLargeBlobs
from carrel.adapters.postgres.maintenance import PostgresMaintenance, rebuild_indexes
from carrel.adapters.postgres.migration_runner import prepare
from carrel.adapters.postgres.recalls import PostgresRecalls
from carrel.adapters.postgres.records import PostgresRecords
from carrel.adapters.postgres.runs import PostgresRuns
from carrel.adapters.postgres.sessions import PostgresSessions
from carrel.adapters.postgres.tallies import PostgresTallies
from carrel.adapters.postgres.trees import CommitCounters, PostgresTrees
from carrel.ports import LargeBlobStore


@dataclass(frozen=True, slots=True)
class PostgresStore:
    trees: PostgresTrees
    blobs: PostgresBlobs
    records: PostgresRecords
    runs: PostgresRuns
    events: PostgresEvents
    idempotency: PostgresIdempotencyStore
    deliveries: PostgresDeliveries
    sessions: PostgresSessions
    recalls: PostgresRecalls
    tallies: PostgresTallies
    erasure: PostgresErasure
    maintenance: PostgresMaintenance
    objects: LargeBlobStore

    @property
    def counts(self) -> CommitCounters:
        return self.trees.counts

    @property
    def waiting_count(self) -> int:
        return self.trees.waiting_count


@asynccontextmanager
async def open_store(
    url: str, *, objects: LargeBlobStore | None = None, inline: int = 65536, pool: int = 10
) -> AsyncIterator[PostgresStore]:
    """Open and migrate the database; finish all requests on exit.

    ``pool`` limits the connections for short queries. Another connection listens for events once a
    reader waits, and maintenance opens its own. Without ``objects``, large contents are in rows;
    with them, those that were stored in rows before stay readable.
    """
    await prepare(url, rebuild_indexes)
    async with open_database(url, pool) as database:
        notifier, rows = EventNotifier(database), PostgresLargeBlobs(database)
        large_blobs = BlobStoreWithFormer(objects, rows) if objects else rows
        store = PostgresStore(
            trees=PostgresTrees(database, notifier),
            blobs=PostgresBlobs(database, large_blobs, inline),
            records=PostgresRecords(database),
            runs=PostgresRuns(database, notifier),
            events=PostgresEvents(database, notifier),
            idempotency=PostgresIdempotencyStore(database),
            deliveries=PostgresDeliveries(database),
            sessions=PostgresSessions(database),
            recalls=PostgresRecalls(database),
            tallies=PostgresTallies(database),
            erasure=PostgresErasure(database, large_blobs),
            maintenance=PostgresMaintenance(database),
            objects=large_blobs,
        )
        try:
            yield store
        finally:
            for part in (store.trees, store.blobs, store.records, notifier):
                await part.close()
