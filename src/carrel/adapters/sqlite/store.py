"""The SQLite store as a whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path as File

from carrel.adapters.sqlite.blobs import SqliteBlobs
from carrel.adapters.sqlite.deliveries import SqliteDeliveries
from carrel.adapters.sqlite.erasure import SqliteErasure
from carrel.adapters.sqlite.events import SqliteEvents
from carrel.adapters.sqlite.idempotency import SqliteIdempotencyStore
from carrel.adapters.sqlite.maintenance import SqliteMaintenance, rebuild_indexes
from carrel.adapters.sqlite.migration_runner import prepare
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.recalls import SqliteRecalls
from carrel.adapters.sqlite.records import SqliteRecords
from carrel.adapters.sqlite.runs import SqliteRuns
from carrel.adapters.sqlite.sessions import SqliteSessions
from carrel.adapters.sqlite.tallies import SqliteTallies
from carrel.adapters.sqlite.trees import SqliteTrees
from carrel.adapters.sqlite.writer import Writer, WriterCounters
from carrel.ports import LargeBlobStore


@dataclass(frozen=True, slots=True)
class SqliteStore:
    trees: SqliteTrees
    blobs: SqliteBlobs
    records: SqliteRecords
    runs: SqliteRuns
    events: SqliteEvents
    idempotency: SqliteIdempotencyStore
    deliveries: SqliteDeliveries
    sessions: SqliteSessions
    recalls: SqliteRecalls
    tallies: SqliteTallies
    erasure: SqliteErasure
    maintenance: SqliteMaintenance
    objects: LargeBlobStore | None
    reader: Reader
    writer: Writer

    @property
    def counts(self) -> WriterCounters:
        return self.writer.counts

    @property
    def waiting_count(self) -> int:
        return self.writer.waiting_count


@asynccontextmanager
async def open_store(
    file: File, *, objects: LargeBlobStore | None = None, inline: int = 65536
) -> AsyncIterator[SqliteStore]:
    """Open the file, created or migrated first; drain the writer on exit."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # in a thread, since a writer on this loop may hold the lock
    await asyncio.to_thread(prepare, file, rebuild_indexes)
    reader = Reader(file)
    events = SqliteEvents(reader)
    writer = Writer(file, reader, events.notify)
    try:
        yield SqliteStore(
            trees=SqliteTrees(reader, writer),
            blobs=SqliteBlobs(reader, objects, inline),
            records=SqliteRecords(reader, writer),
            runs=SqliteRuns(reader, writer),
            events=events,
            idempotency=SqliteIdempotencyStore(writer),
            deliveries=SqliteDeliveries(reader, writer),
            sessions=SqliteSessions(reader, writer),
            recalls=SqliteRecalls(reader, writer),
            tallies=SqliteTallies(reader, writer),
            erasure=SqliteErasure(file, reader, objects),
            maintenance=SqliteMaintenance(file, reader, writer),
            objects=objects,
            reader=reader,
            writer=writer,
        )
    finally:
        await writer.close()
        reader.close()
