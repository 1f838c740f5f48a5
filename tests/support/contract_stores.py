"""Stores of the contract tests. A new store is a function and a line in STORES."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path as File
from typing import Final, Protocol

import asyncpg
from tests.support.services import files

from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.postgres import open_store as postgres_store
from carrel.adapters.sqlite import open_store as sqlite_store
from carrel.core.identifiers import Digest
from carrel.ports import (
    Blobs,
    Deliveries,
    Erasure,
    Events,
    IdempotencyStore,
    LargeBlobStore,
    RecallLog,
    Records,
    Runs,
    Sessions,
    StoreMaintenance,
    Tallies,
    Trees,
)

BREAK_TALLIES: Final = "UPDATE tally SET value = value + 17"


class Store(Protocol):
    """Ports that every store has."""

    @property
    def trees(self) -> Trees: ...
    @property
    def blobs(self) -> Blobs: ...
    @property
    def records(self) -> Records: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def events(self) -> Events: ...
    @property
    def idempotency(self) -> IdempotencyStore: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def recalls(self) -> RecallLog: ...
    @property
    def tallies(self) -> Tallies: ...
    @property
    def erasure(self) -> Erasure: ...


@dataclass(frozen=True)
class StoreLocation:
    directory: File
    database: Callable[[], str]
    """Creates an empty PostgreSQL database and returns its URL."""


@dataclass(frozen=True)
class Ports:
    """A store and its ports, with operations on it from outside."""

    store: Store
    tamper: Callable[[Digest], Awaitable[None]]
    """Flips a bit of the bytes stored under a digest."""
    twin: Callable[[], AbstractAsyncContextManager[Store]]
    """Opens the same store again, as another process would."""
    upkeep: StoreMaintenance
    break_tallies: Callable[[], Awaitable[None]]
    """Adds 17 to every tally."""

    @property
    def trees(self) -> Trees:
        return self.store.trees

    @property
    def blobs(self) -> Blobs:
        return self.store.blobs

    @property
    def records(self) -> Records:
        return self.store.records

    @property
    def runs(self) -> Runs:
        return self.store.runs

    @property
    def events(self) -> Events:
        return self.store.events

    @property
    def idempotency(self) -> IdempotencyStore:
        return self.store.idempotency

    @property
    def deliveries(self) -> Deliveries:
        return self.store.deliveries

    @property
    def sessions(self) -> Sessions:
        return self.store.sessions

    @property
    def recalls(self) -> RecallLog:
        return self.store.recalls

    @property
    def tallies(self) -> Tallies:
        return self.store.tallies

    @property
    def erasure(self) -> Erasure:
        return self.store.erasure


def flip_bit(content: bytes) -> bytes:
    return bytes([content[0] ^ 1]) + content[1:]


@asynccontextmanager
async def sqlite(place: StoreLocation) -> AsyncIterator[Ports]:
    file = files.fresh(place.directory / "carrel.db")
    objects = DirectoryBlobStore(place.directory / "objects")

    async def tamper(digest: Digest) -> None:
        with closing(sqlite3.connect(file)) as db, db:
            for id, body in _find_rows(db, digest):
                db.execute("UPDATE content SET body = ? WHERE id = ?", (flip_bit(body), id))
        await _tamper_with(objects, digest)

    def twin() -> AbstractAsyncContextManager[Store]:
        return sqlite_store(file, objects=objects)

    async def break_tallies() -> None:
        with closing(sqlite3.connect(file)) as db, db:
            db.execute(BREAK_TALLIES)

    async with sqlite_store(file, objects=objects) as store:
        yield Ports(store, tamper, twin, store.maintenance, break_tallies)


def _find_rows(db: sqlite3.Connection, digest: Digest) -> Sequence[tuple[int, bytes]]:
    name = bytes.fromhex(digest.removeprefix("sha256:"))
    sql = "SELECT id, body FROM content WHERE digest = ? AND body IS NOT NULL"
    return db.execute(sql, (name,)).fetchall()


async def _tamper_with(objects: LargeBlobStore, digest: Digest) -> None:
    content = await objects.get(digest)
    if content is not None:
        await objects.discard([digest])
        await objects.delete([digest])
        await objects.put(digest, flip_bit(content))


@asynccontextmanager
async def postgres(place: StoreLocation) -> AsyncIterator[Ports]:
    async with _postgres(place, DirectoryBlobStore(place.directory / "objects")) as ports:
        yield ports


@asynccontextmanager
async def postgres_alone(place: StoreLocation) -> AsyncIterator[Ports]:
    """Large contents are in rows, too."""
    async with _postgres(place, None) as ports:
        yield ports


@asynccontextmanager
async def _postgres(place: StoreLocation, objects: LargeBlobStore | None) -> AsyncIterator[Ports]:
    url = place.database()

    async def tamper(digest: Digest) -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(
                "UPDATE content SET body = set_byte(body, 0, get_byte(body, 0) # 1)"
                " WHERE digest = $1 AND body IS NOT NULL",
                bytes.fromhex(digest.removeprefix("sha256:")),
            )
        finally:
            await connection.close()
        await _tamper_with(store.objects, digest)

    def twin() -> AbstractAsyncContextManager[Store]:
        return postgres_store(url, objects=objects)

    async def break_tallies() -> None:
        connection = await asyncpg.connect(url)
        try:
            await connection.execute(BREAK_TALLIES)
        finally:
            await connection.close()

    async with postgres_store(url, objects=objects) as store:
        yield Ports(store, tamper, twin, store.maintenance, break_tallies)


_Opener = Callable[[StoreLocation], AbstractAsyncContextManager[Ports]]
STORES: Final[Mapping[str, _Opener]] = {"sqlite": sqlite, "postgres": postgres}
LARGE_BLOB_STORES: Final[Mapping[str, _Opener]] = {**STORES, "postgres-alone": postgres_alone}
"""Stores that differ in where large contents are."""
