"""The shape of a SQLite file: where migrations arrive, and what an older file is worth then."""

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
    Shelter,
    Stores,
    fill,
    rows_of,
    say,
    shown,
    told,
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
    def none_of_those() -> str:
        raise AssertionError("this is about files")

    yield Stores(tmp_path, none_of_those)


def migrated(file: File, upto: int) -> None:
    """A file as it was when there were only so many migrations."""
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
        for table, some in rows.items():
            if not some:  # perhaps there is no such table yet
                continue
            columns = TABLES[table]
            marks = ", ".join("?" * len(columns))
            if some:
                db.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", some)


def shape(file: File) -> dict[str, str]:
    """Every table and index as it was made, without remarks and layout."""
    with closing(sqlite3.connect(file)) as db:
        made = db.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    plain = {name: re.sub(r"--[^\n]*", "", sql) for name, sql in made if name != "migration"}
    return {name: re.sub(r"\s+", " ", sql).strip() for name, sql in plain.items()}


def test_migrations_arrive_at_the_schema(file: File, tmp_path: File) -> None:
    prepare(file)
    meant = tmp_path / "meant.db"
    with closing(sqlite3.connect(meant)) as db, db:
        db.executescript((PACKAGE_FILES / "schema.sql").read_text("utf-8"))

    assert shape(file) == shape(meant)
    assert len(shape(meant)) > len(TABLES)


def test_the_tables_have_the_columns_that_a_backup_holds(file: File) -> None:
    prepare(file)
    with closing(sqlite3.connect(file)) as db:
        found = {
            table: {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
            for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }

    del found["migration"], found["sqlite_sequence"]
    found = {table: its for table, its in found.items() if not table.startswith("utterance_text")}
    found["utterance"].remove("id")
    assert {table: found[table] for table in found.keys() - DERIVED_TABLES} == {
        table: set(columns) for table, columns in TABLES.items()
    }


@pytest.mark.parametrize("upto", range(1, len(MIGRATIONS)))
async def test_what_an_older_file_held_is_there_afterwards(
    stores: Stores, file: File, upto: int
) -> None:
    async with stores.open("sqlite") as made:
        await fill(made, talks=False)
        rows, seen = await rows_of(made), await shown(made)
    migrated(file, upto)
    filled(file, rows)

    async with open_store(file, objects=made.objects) as store:
        old = Shelter(store, made.objects)
        assert await store.maintenance.migrations() == MIGRATIONS
        assert await rows_of(old) == rows
        assert await shown(old) == seen
        assert await told(old) == []


async def test_an_older_file_goes_on_where_it_was(stores: Stores, file: File) -> None:
    async with stores.open("sqlite") as made:
        await fill(made, talks=False)
        rows = await rows_of(made)
    migrated(file, 1)
    filled(file, rows)

    async with open_store(file, objects=made.objects) as store:
        old = Shelter(store, made.objects)
        latest = int(await store.events.latest_cursor())
        [was] = await store.trees.read([AGENT], [SOUL])
        head = await say(old, "after", run="run_1")
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
        assert [each.id for each in listed] == ["run_3", "run_2", "run_1"]
        await store.maintenance.collect(NOW + 100 * HOUR, 0, 0)
        assert await told(old) == []


async def test_ids_that_an_older_file_has_given_out_are_not_given_again(file: File) -> None:
    """It kept count beside the rows, of which the newest may be gone."""
    migrated(file, 1)
    filled(file, {"counter": [("content", 70), ("event", 90), ("records", 5)]})

    async with open_store(file) as store:
        assert await store.events.latest_cursor() == "90"
        assert await store.records.revision() == 5
        await say(Shelter(store, None), "first")
        [event] = await store.events.read_after(None)
        assert event.cursor == "91"
        assert store.reader.db.execute("SELECT id FROM content").fetchall() == [(71,)]


async def test_whoever_comes_first_migrates_and_the_others_wait(file: File) -> None:
    migrated(file, 1)

    await asyncio.gather(*[asyncio.to_thread(prepare, file) for _ in range(4)])

    async with open_store(file) as store:
        assert await store.maintenance.migrations() == MIGRATIONS


def test_a_file_from_a_later_version_is_refused(file: File) -> None:
    prepare(file)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("INSERT INTO migration VALUES ('9999_later.sql', 'x', 0)")

    with pytest.raises(
        SqliteSchemaMismatch, match=r"unknown migration 9999_later\.sql; use a newer version"
    ):
        prepare(file)


def test_a_file_with_another_history_is_refused(file: File) -> None:
    prepare(file)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE migration SET checksum = 'x' WHERE name = ?", (MIGRATIONS[0],))

    with pytest.raises(
        SqliteSchemaMismatch,
        match=f"{MIGRATIONS[0]} was applied to the store with different content",
    ):
        prepare(file)


def test_a_migration_that_fails_leaves_an_older_file_as_it_was(file: File) -> None:
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
