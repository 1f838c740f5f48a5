"""Schema of a SQLite file: result of the migrations, and what they preserve."""

from __future__ import annotations

import asyncio
import hashlib
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path as File
from typing import Any

import pytest
from tests.support.empty_stores import (
    AGENT,
    HOUR,
    NOW,
    SOUL,
    TEMPLATE,
    OpenedStore,
    Stores,
    check_findings,
    fill,
    put_text,
    read_view,
    rows_of,
)

from carrel.adapters.sqlite import open_store
from carrel.adapters.sqlite.database import MIGRATIONS, PACKAGE_FILES, SqliteSchemaMismatch, prepare
from carrel.core.maintenance.tables import DERIVED_TABLES, TABLES
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.store.event import EventFilter

pytestmark = pytest.mark.anyio

Rows = Mapping[str, Sequence[Sequence[Any]]]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def file(tmp_path: File) -> File:
    return tmp_path / "carrel.db"


@pytest.fixture
def stores(tmp_path: File) -> Iterator[Stores]:
    def no_database() -> str:
        raise AssertionError("this is about files")

    yield Stores(tmp_path, no_database)


def migrated(file: File, upto: int) -> None:
    """A file as it was after the first migrations."""
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute(
            "CREATE TABLE migration"
            " (name TEXT PRIMARY KEY, checksum TEXT NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID"
        )
        for name in MIGRATIONS[:upto]:
            text = (PACKAGE_FILES / "migrations" / name).read_text("utf-8")
            db.executescript(text)
            checksum = hashlib.sha256(text.encode()).hexdigest()
            db.execute("INSERT INTO migration VALUES (?, ?, 0)", (name, checksum))


def filled(file: File, rows: Rows) -> None:
    with closing(sqlite3.connect(file)) as db, db:
        for table, batch in rows.items():
            if not batch:  # an older schema may lack the table
                continue
            columns = TABLES[table]
            marks = ", ".join("?" * len(columns))
            if batch:
                db.executemany(
                    f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", batch
                )


def shape(file: File) -> dict[str, str]:
    """Every table and index as created, without comments and layout."""
    with closing(sqlite3.connect(file)) as db:
        statements = db.execute(
            "SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL"
        ).fetchall()
    plain = {name: re.sub(r"--[^\n]*", "", sql) for name, sql in statements if name != "migration"}
    return {name: re.sub(r"\s+", " ", sql).strip() for name, sql in plain.items()}


def test_migrations_result_in_the_schema(file: File, tmp_path: File) -> None:
    prepare(file)
    meant = tmp_path / "meant.db"
    with closing(sqlite3.connect(meant)) as db, db:
        db.executescript((PACKAGE_FILES / "schema.sql").read_text("utf-8"))

    assert shape(file) == shape(meant)
    assert len(shape(meant)) > len(TABLES)


def test_tables_have_the_columns_of_a_backup(file: File) -> None:
    prepare(file)
    with closing(sqlite3.connect(file)) as db:
        actual = {
            table: {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
            for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }

    del actual["migration"], actual["sqlite_sequence"]
    actual = {table: its for table, its in actual.items() if not table.startswith("utterance_text")}
    actual["utterance"].remove("id")
    assert {table: actual[table] for table in actual.keys() - DERIVED_TABLES} == {
        table: set(columns) for table, columns in TABLES.items()
    }


@pytest.mark.parametrize("upto", range(1, len(MIGRATIONS)))
async def test_migrated_file_has_all_earlier_rows(stores: Stores, file: File, upto: int) -> None:
    async with stores.open("sqlite") as source:
        await fill(source, talks=False)
        rows, view = await rows_of(source), await read_view(source)
    migrated(file, upto)
    filled(file, rows)

    async with open_store(file, objects=source.objects) as store:
        old = OpenedStore(store, source.objects)
        assert await store.maintenance.migrations() == MIGRATIONS
        assert await rows_of(old) == rows
        assert await read_view(old) == view
        assert await check_findings(old) == []


async def test_migrated_file_can_be_used_further(stores: Stores, file: File) -> None:
    async with stores.open("sqlite") as source:
        await fill(source, talks=False)
        rows = await rows_of(source)
    migrated(file, 1)
    filled(file, rows)

    async with open_store(file, objects=source.objects) as store:
        old = OpenedStore(store, source.objects)
        latest = int(await store.events.latest_cursor())
        [was] = await store.trees.read([AGENT], [SOUL])
        head = await put_text(old, "after", run="run_1")
        assert (head.version, head.revision) == (was.version(SOUL) + 1, was.revision + 1)
        [event] = await store.events.read_after(str(latest), EventFilter("acme"))
        assert (event.cursor, event.run) == (str(latest + 1), "run_1")
        [before, *_] = [
            e for e in reversed(await store.events.read_after(None)) if e.run == "run_1"
        ][1:]
        assert (event.sequence or 0) == (before.sequence or 0) + 1

        run = Run("run_3", "acme", AGENT, "noop", Audience.MAIN, RunStatus.RUNNING, "ada", NOW)
        await store.runs.start([(run, (AGENT, TEMPLATE))])
        listed = await store.runs.list("acme")
        assert [run.id for run in listed] == ["run_3", "run_2", "run_1"]
        await store.maintenance.collect(NOW + 100 * HOUR, 0, 0)
        assert await check_findings(old) == []


async def test_ids_given_out_before_a_migration_are_not_given_again(file: File) -> None:
    """The counter was stored beside the rows, of which the newest may be deleted."""
    migrated(file, 1)
    filled(file, {"counter": [("content", 70), ("event", 90), ("records", 5)]})

    async with open_store(file) as store:
        assert await store.events.latest_cursor() == "90"
        assert await store.records.revision() == 5
        await put_text(OpenedStore(store, None), "first")
        [event] = await store.events.read_after(None)
        assert event.cursor == "91"
        assert store.reader.db.execute("SELECT id FROM content").fetchall() == [(71,)]


async def test_first_process_migrates_and_the_others_wait(file: File) -> None:
    migrated(file, 1)

    await asyncio.gather(*[asyncio.to_thread(prepare, file) for _ in range(4)])

    async with open_store(file) as store:
        assert await store.maintenance.migrations() == MIGRATIONS


def test_file_of_a_later_version_is_refused(file: File) -> None:
    prepare(file)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("INSERT INTO migration VALUES ('9999_later.sql', 'x', 0)")

    with pytest.raises(
        SqliteSchemaMismatch, match=r"unknown migration 9999_later\.sql; use a newer version"
    ):
        prepare(file)


def test_file_with_another_migration_history_is_refused(file: File) -> None:
    prepare(file)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE migration SET checksum = 'x' WHERE name = ?", (MIGRATIONS[0],))

    with pytest.raises(
        SqliteSchemaMismatch,
        match=f"{MIGRATIONS[0]} was applied to the store with different content",
    ):
        prepare(file)


def test_failed_migration_leaves_an_older_file_unchanged(file: File) -> None:
    migrated(file, 1)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("CREATE TABLE old_run_layer (in_the_way INTEGER)")
    before = shape(file)

    with pytest.raises(sqlite3.OperationalError):
        prepare(file)
    assert shape(file) == before

    with closing(sqlite3.connect(file)) as db, db:
        db.execute("DROP TABLE old_run_layer")
    prepare(file)
