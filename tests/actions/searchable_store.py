"""A store of either kind whose every row, object and file can be searched for a text."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path as File
from typing import Any

import asyncpg
import pytest
from tests.support.services.s3 import Bucket
from tests.support.stores import advance_clock, ports_over

from carrel.actions.approvals.transitions import seal_context
from carrel.actions.idempotency import VAULT_CONTEXT
from carrel.actions.maintenance.integrity import check_store, collect
from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.filesystem.transcript_directory import DirectoryTranscriptMirror
from carrel.adapters.postgres import open_store as open_postgres
from carrel.adapters.s3 import S3BlobStore
from carrel.adapters.sqlite import open_store as open_sqlite
from carrel.core.maintenance.tables import TABLES
from carrel.core.store.record import RecordType
from carrel.ports import Ports

STORES = ("sqlite", "postgres", "postgres-alone")
INLINE_BYTES = 4096
"""Larger contents lie in a directory or a bucket."""
DAY_MS = 86_400_000

_TABLE_NAMES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"


class SearchableStore:
    """An open store with everything that lies beside it."""

    def __init__(self, ports: Ports, store: Any, objects: Any, directory: File, url: str) -> None:
        self.ports, self.store, self.objects, self.directory = ports, store, objects, directory
        self._url = url

    async def find_text(self, text: str) -> list[str]:
        """Tables, objects and files that contain a text in any letter case.

        Stored responses and arguments are decrypted.
        """
        places = find_text_in_files(self.directory, text)
        async with self.store.maintenance.snapshot() as snapshot:
            for table in TABLES:
                async for rows in snapshot.rows(table):
                    places += [table for row in rows if text in repr(row).lower()]
                    places += [
                        table for content in self._open_sealed(table, rows) if text in content
                    ]
        async for digest, _, _ in self.objects.list_blobs():
            places += [digest] if text.encode() in (await self.objects.get(digest)).lower() else []
        async for digest, _ in self.objects.list_trash():
            places += [digest] if text.encode() in (await self.objects.get(digest)).lower() else []
        return sorted({*places, *await self._find_in_database(text)})

    async def find_problems(self) -> list[str]:
        advance_clock(self.ports, 1)
        findings = await check_store(
            self.store.maintenance, self.objects, now=self.ports.clock.now(), grace=0
        )
        return [f"{finding}" for finding in findings.items]

    async def collect_garbage(self) -> None:
        """Move what nothing refers to into the trash, then delete it."""
        for _ in range(2):
            advance_clock(self.ports, 1)
            now = self.ports.clock.now()
            await collect(
                self.store.maintenance, self.objects, now=now, grace=0, event_retention_ms=DAY_MS
            )

    def _open_sealed(self, table: str, rows: Sequence[Sequence[Any]]) -> Iterator[str]:
        """Decrypt stored responses, and the arguments of calls that wait for an approval."""
        column = TABLES[table].index
        for row in rows:
            sealed, context = "", VAULT_CONTEXT
            if table == "idempotency_key":
                sealed = row[column("sealed")]
            elif table == "record" and row[column("type")] == RecordType.APPROVAL:
                sealed = json.loads(row[column("body")])["sealed"]
                context = seal_context(row[column("tenant")], row[column("id")])
            if sealed:
                yield self.ports.vault.open(sealed, context).decode("utf-8", "replace").lower()

    async def _find_in_database(self, text: str) -> list[str]:
        """Tables of PostgreSQL, indexes kept as tables included."""
        if not self._url:
            return []
        connection = await asyncpg.connect(self._url)
        try:
            places = []
            for row in await connection.fetch(_TABLE_NAMES):
                query = f'SELECT count(*) FROM "{row[0]}" AS t WHERE t::text ILIKE ANY($1)'
                patterns = [f"%{text}%", f"%{text.encode().hex()}%"]
                places += [row[0]] if await connection.fetchval(query, patterns) else []
            return places
        finally:
            await connection.close()


def find_text_in_files(directory: File, text: str) -> list[str]:
    """The files that contain a text in any letter case, or in their names."""
    return [
        str(file.relative_to(directory))
        for file in sorted(directory.rglob("*"))
        if file.is_file()
        and (text in file.name.lower() or text.encode() in file.read_bytes().lower())
    ]


@asynccontextmanager
async def open_searchable_store(
    request: pytest.FixtureRequest, directory: File
) -> AsyncIterator[SearchableStore]:
    """The store that the fixture's parameter names.

    SQLite with files, PostgreSQL with S3, or PostgreSQL with large contents in its own tables.
    """
    objects: Any
    opened: Any
    url = ""
    if request.param == "sqlite":
        objects = DirectoryBlobStore(directory / "blobs")
        opened = open_sqlite(directory / "carrel.db", objects=objects, inline=INLINE_BYTES)
    elif request.param == "postgres-alone":
        url = str(request.getfixturevalue("postgres_url"))
        opened = open_postgres(url, inline=INLINE_BYTES)
    else:
        bucket: Bucket = request.getfixturevalue("s3_bucket")
        objects = S3BlobStore.open(
            bucket.name,
            "some/where",
            endpoint=bucket.endpoint,
            region=bucket.region,
            access_key=bucket.access_key,
            secret_key=bucket.secret_key,
        )
        url = str(request.getfixturevalue("postgres_url"))
        opened = open_postgres(url, objects=objects, inline=INLINE_BYTES)
    async with opened as store:
        ports = ports_over(store, directory=directory)
        mirror = DirectoryTranscriptMirror(directory / "transcripts")
        ports = replace(ports, transcript_files=mirror)
        yield SearchableStore(ports, store, store.objects, directory, url)
