"""SQLite migrations: the schema they produce, and upgrades of existing files.

Upgrades are tested with a last migration that exists only here.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from contextlib import closing
from pathlib import Path as File

import pytest
from tests.support.empty_stores import (
    AGENT,
    HOUR,
    NOW,
    SOUL,
    TEMPLATE,
    OpenedStore,
    check_findings,
    fill,
    put_text,
    read_view,
    rows_of,
)

from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.sqlite import migration_runner, open_store
from carrel.adapters.sqlite.database import PACKAGE_FILES
from carrel.adapters.sqlite.migration_runner import MIGRATIONS, SqliteSchemaMismatch, prepare
from carrel.core.maintenance.tables import DERIVED_TABLES, TABLES
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.store.event import EventFilter

pytestmark = pytest.mark.anyio

LATER = """
-- Adds a table and rebuilds another.
CREATE TABLE note (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
INSERT INTO note (text) VALUES ('a;b');
ALTER TABLE run_layer RENAME TO old_run_layer;
CREATE TABLE run_layer (
    run      TEXT    NOT NULL,
    position INTEGER NOT NULL,
    scope    INTEGER NOT NULL REFERENCES scope,
    revision INTEGER NOT NULL,
    PRIMARY KEY (run, position)
) WITHOUT ROWID;
INSERT INTO run_layer SELECT * FROM old_run_layer;
DROP TABLE old_run_layer;
CREATE INDEX run_layer_by_scope ON run_layer (scope, revision);
"""
BOTH = {**MIGRATIONS, "9999_later.sql": LATER}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def file(tmp_path: File) -> File:
    return tmp_path / "carrel.db"


@pytest.fixture
def objects(tmp_path: File) -> DirectoryBlobStore:
    return DirectoryBlobStore(tmp_path / "objects")


def add_later_migration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upgrade Carrel: from now on there is a second migration."""
    monkeypatch.setattr(migration_runner, "MIGRATIONS", BOTH)


def shape(file: File) -> dict[str, str]:
    """Return the SQL of every table and index, without comments and layout."""
    with closing(sqlite3.connect(file)) as db:
        rows = db.execute("SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    plain = {name: re.sub(r"--[^\n]*", "", sql) for name, sql in rows if name != "migration"}
    spaced = {name: re.sub(r"\s+", " ", sql).strip() for name, sql in plain.items()}
    return {name: re.sub(r" ?([(),]) ?", r"\1", sql) for name, sql in spaced.items()}


def test_migrations_produce_the_schema(file: File, tmp_path: File) -> None:
    prepare(file)
    expected = tmp_path / "expected.db"
    with closing(sqlite3.connect(expected)) as db, db:
        db.executescript((PACKAGE_FILES / "schema.sql").read_text("utf-8"))

    assert shape(file) == shape(expected)
    assert len(shape(expected)) > len(TABLES)


def test_tables_have_the_columns_of_a_backup(file: File) -> None:
    prepare(file)
    with closing(sqlite3.connect(file)) as db:
        columns = {
            table: {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
            for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
        }

    internal = {"migration", "sqlite_sequence", *DERIVED_TABLES}
    internal |= {table for table in columns if table.startswith("session_entry_text")}
    columns["session_entry"].remove("id")
    assert {table: columns[table] for table in columns.keys() - internal} == {
        table: set(names) for table, names in TABLES.items()
    }


async def test_an_upgrade_keeps_what_the_file_holds(
    file: File, objects: DirectoryBlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(file, objects=objects) as store:
        older = OpenedStore(store, objects)
        await fill(older)
        rows, view = await rows_of(older), await read_view(older)
        assert await store.maintenance.migrations() == tuple(MIGRATIONS)
    add_later_migration(monkeypatch)

    async with open_store(file, objects=objects) as store:
        upgraded = OpenedStore(store, objects)
        assert await store.maintenance.migrations() == tuple(BOTH)
        assert store.reader.db.execute("SELECT text FROM note").fetchall() == [("a;b",)]
        assert await rows_of(upgraded) == rows
        assert await read_view(upgraded) == view
        assert await check_findings(upgraded) == []


async def test_an_upgrade_rebuilds_the_full_text_indexes(
    file: File, objects: DirectoryBlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(file, objects=objects) as store:
        await fill(OpenedStore(store, objects))
        view = await read_view(OpenedStore(store, objects))
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("INSERT INTO search_term VALUES ('acme', 'memory', 'agent:marco', 'old', 'm')")
    reindexing = {"9999_later.sql": "DELETE FROM search_term;"}
    monkeypatch.setattr(migration_runner, "MIGRATIONS", {**MIGRATIONS, **reindexing})
    monkeypatch.setattr(migration_runner, "REINDEXING_MIGRATIONS", frozenset(reindexing))

    async with open_store(file, objects=objects) as store:
        assert await read_view(OpenedStore(store, objects)) == view
        outdated = store.reader.db.execute("SELECT 1 FROM search_term WHERE term = 'old'")
        assert outdated.fetchall() == []


async def test_an_upgraded_file_continues_versions_events_and_runs(
    file: File, objects: DirectoryBlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(file, objects=objects) as store:
        await fill(OpenedStore(store, objects))
    add_later_migration(monkeypatch)

    async with open_store(file, objects=objects) as store:
        upgraded = OpenedStore(store, objects)
        latest = int(await store.events.latest_cursor())
        [tree] = await store.trees.read([AGENT], [SOUL])
        head = await put_text(upgraded, "after", run="run_1")
        assert (head.version, head.revision) == (tree.version(SOUL) + 1, tree.revision + 1)
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
        assert await check_findings(upgraded) == []


async def test_an_upgraded_file_does_not_reuse_ids(
    file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counters hold ids of rows that were deleted."""
    prepare(file)
    with closing(sqlite3.connect(file)) as db, db:
        counters = [("content", 70), ("event", 90), ("records", 5)]
        db.executemany("INSERT INTO counter (name, value) VALUES (?, ?)", counters)
    add_later_migration(monkeypatch)

    async with open_store(file) as store:
        assert await store.events.latest_cursor() == "90"
        assert await store.records.revision() == 5
        await put_text(OpenedStore(store, None), "first")
        [event] = await store.events.read_after(None)
        assert event.cursor == "91"
        assert store.reader.db.execute("SELECT id FROM content").fetchall() == [(71,)]


@pytest.mark.parametrize("exists", [False, True], ids=["new file", "older file"])
async def test_of_concurrent_starts_one_migrates_and_the_others_wait(
    file: File, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    if exists:
        prepare(file)
    add_later_migration(monkeypatch)

    await asyncio.gather(*[asyncio.to_thread(prepare, file) for _ in range(4)])

    async with open_store(file) as store:
        assert await store.maintenance.migrations() == tuple(BOTH)
        assert store.reader.db.execute("SELECT count(*) FROM note").fetchone() == (1,)


def test_a_file_of_a_later_version_is_refused(file: File) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        add_later_migration(monkeypatch)
        prepare(file)
    before = shape(file)

    with pytest.raises(
        SqliteSchemaMismatch, match=r"unknown migration 9999_later\.sql; use a newer version"
    ):
        prepare(file)
    assert shape(file) == before


@pytest.mark.parametrize("name", BOTH)
def test_a_file_with_a_different_migration_of_the_same_name_is_refused(
    file: File, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    add_later_migration(monkeypatch)
    prepare(file)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE migration SET checksum = 'x' WHERE name = ?", (name,))

    with pytest.raises(
        SqliteSchemaMismatch, match=f"{name} was applied to the store with different content"
    ):
        prepare(file)


async def test_a_failed_migration_leaves_the_older_file_unchanged(
    file: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(file)
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("CREATE TABLE old_run_layer (in_the_way INTEGER)")
    before = shape(file)
    add_later_migration(monkeypatch)

    with pytest.raises(sqlite3.OperationalError):
        prepare(file)
    assert shape(file) == before

    with closing(sqlite3.connect(file)) as db, db:
        db.execute("DROP TABLE old_run_layer")
    async with open_store(file) as store:
        assert await store.maintenance.migrations() == tuple(BOTH)
