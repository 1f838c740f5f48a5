"""PostgreSQL migrations: the schema they produce, upgrades, and refused databases.

Upgrades are tested with a last migration that exists only here.
"""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files
from pathlib import Path as File

import asyncpg
import pytest
from tests.support.empty_stores import SOUL, OpenedStore, fill, put_text, read_view, rows_of
from tests.support.empty_stores import check_findings as findings_of
from tests.support.services import databases

from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.postgres import (
    PostgresSchemaMismatch,
    migration_runner,
    open_store,
    prepare,
)
from carrel.adapters.postgres.migration_runner import MIGRATIONS
from carrel.core.maintenance.tables import DERIVED_TABLES, LARGE_BLOB_TABLES, TABLES
from carrel.core.search.bm25 import TermCount
from carrel.core.store.record import RecordType

pytestmark = pytest.mark.anyio

HERE = files("carrel.adapters.postgres")
LATER = """
-- Adds a table, rebuilds another and replaces a function.
CREATE TABLE note (id bigint PRIMARY KEY, text text NOT NULL);
INSERT INTO note (id, text) VALUES (1, 'a;b');
ALTER TABLE run_layer RENAME TO old_run_layer;
CREATE TABLE run_layer (LIKE old_run_layer INCLUDING ALL);
INSERT INTO run_layer SELECT * FROM old_run_layer;
DROP TABLE old_run_layer;
CREATE OR REPLACE FUNCTION acquire_global_lock() RETURNS void LANGUAGE sql AS $$
    SELECT pg_advisory_xact_lock(0);
$$;
"""
BOTH = {**MIGRATIONS, "9999_later.sql": LATER}
SHAPE = {
    "columns": """
        SELECT c.relname, a.attnum, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
               a.attidentity, a.attstorage, a.attcollation::regcollation,
               pg_get_expr(d.adbin, d.adrelid)
          FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
          LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
         WHERE c.relnamespace = 'public'::regnamespace AND c.relname NOT LIKE 'migration%'""",
    "tables": """
        SELECT relname, relkind, reloptions FROM pg_class
         WHERE relnamespace = 'public'::regnamespace AND relname NOT LIKE 'migration%'""",
    "indexes": """
        SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename <> 'migration'""",
    "constraints": """
        SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint
         WHERE connamespace = 'public'::regnamespace AND conrelid <> 'migration'::regclass""",
    "functions": """
        SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = 'public'::regnamespace""",
    "triggers": """
        SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal""",
    "rows": "SELECT name, value FROM counter",
}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def execute(url: str, *statements: str) -> None:
    for statement in statements:
        await databases.execute(url, statement)


def plain(*row: object) -> str:
    """A row without the comments in function bodies, which are no part of the schema."""
    return str(tuple(re.sub(r"--[^\n]*", "", v) if isinstance(v, str) else v for v in row))


async def shape(url: str) -> dict[str, list[str]]:
    connection = await asyncpg.connect(url)
    try:
        return {
            kind: sorted(plain(*row) for row in await connection.fetch(question))
            for kind, question in SHAPE.items()
        }
    finally:
        await connection.close()


@pytest.fixture
def ascii_url(postgres_server: str) -> str:
    """A database that accepts any bytes as text."""
    name = "t_ascii"
    encoding = "ENCODING 'SQL_ASCII' TEMPLATE template0"
    asyncio.run(databases.execute(postgres_server, f"CREATE DATABASE {name} {encoding}"))
    return databases.database_url(postgres_server, name)


async def test_migrations_produce_the_schema(postgres_url: str, empty_postgres_url: str) -> None:
    functions = sorted((HERE / "functions").iterdir(), key=lambda file: file.name)
    scripts = [HERE / "schema.sql", *functions]
    await execute(empty_postgres_url, *[script.read_text("utf-8") for script in scripts])
    await execute(empty_postgres_url, "CREATE TABLE migration (name text)")

    arrived, meant = await shape(postgres_url), await shape(empty_postgres_url)

    assert all(meant.values())
    for kind in SHAPE:
        assert arrived[kind] == meant[kind], kind


async def test_tables_have_the_columns_of_a_backup(postgres_url: str) -> None:
    connection = await asyncpg.connect(postgres_url)
    rows = await connection.fetch(
        "SELECT table_name, column_name FROM information_schema.columns"
        " WHERE table_schema = 'public' ORDER BY ordinal_position"
    )
    await connection.close()

    actual: dict[str, list[str]] = {}
    for table, column in rows:
        actual.setdefault(table, []).append(column)
    actual["event"].remove("xid")
    for table in ("migration", "session_entry_text", *DERIVED_TABLES, *LARGE_BLOB_TABLES):
        del actual[table]
    assert {table: tuple(columns) for table, columns in actual.items()} == TABLES


def add_later_migration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Upgrade Carrel: from now on there is a second migration."""
    monkeypatch.setattr(migration_runner, "MIGRATIONS", BOTH)


async def test_an_upgrade_keeps_what_the_database_holds(
    postgres_url: str, tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = DirectoryBlobStore(tmp_path)
    async with open_store(postgres_url, objects=objects) as store:
        older = OpenedStore(store, objects)
        await fill(older)
        rows, view = await rows_of(older), await read_view(older)
        assert await store.maintenance.migrations() == tuple(MIGRATIONS)
    add_later_migration(monkeypatch)

    async with open_store(postgres_url, objects=objects) as store:
        upgraded = OpenedStore(store, objects)
        assert await store.maintenance.migrations() == tuple(BOTH)
        assert await rows_of(upgraded) == rows
        assert await read_view(upgraded) == view
        assert await findings_of(upgraded) == []
        head = await put_text(upgraded, "after", run="run_1")
        assert head.version == view["trees"][0].version(SOUL) + 1


async def test_an_upgrade_rebuilds_the_full_text_indexes(
    postgres_url: str, tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = DirectoryBlobStore(tmp_path)
    async with open_store(postgres_url, objects=objects) as store:
        await fill(OpenedStore(store, objects))
        view = await read_view(OpenedStore(store, objects))
    await execute(
        postgres_url,
        "INSERT INTO search_term VALUES ('acme', 'memory', 'agent:marco', 'old', 'm')",
    )
    reindexing = {"9999_later.sql": "DELETE FROM search_term;"}
    monkeypatch.setattr(migration_runner, "MIGRATIONS", {**MIGRATIONS, **reindexing})
    monkeypatch.setattr(migration_runner, "REINDEXING_MIGRATIONS", frozenset(reindexing))

    async with open_store(postgres_url, objects=objects) as store:
        assert await read_view(OpenedStore(store, objects)) == view
        collection = ("acme", RecordType.MEMORY, "agent:marco")
        counted = await store.records.count_terms(*collection, ["old"])
        assert counted.counts["old"] == TermCount(0, 0)


@pytest.mark.parametrize("exists", [False, True], ids=["new database", "older database"])
async def test_of_concurrent_starts_one_migrates_and_the_others_wait(
    empty_postgres_url: str, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    if exists:
        await prepare(empty_postgres_url)
    add_later_migration(monkeypatch)

    await asyncio.gather(*[prepare(empty_postgres_url) for _ in range(4)])

    async with open_store(empty_postgres_url) as store:
        assert await store.maintenance.migrations() == tuple(BOTH)
        await store.maintenance.ping()


async def test_a_database_of_a_later_version_is_refused(postgres_url: str) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        add_later_migration(monkeypatch)
        await prepare(postgres_url)

    with pytest.raises(
        PostgresSchemaMismatch, match=r"unknown migration 9999_later\.sql; use a newer version"
    ):
        async with open_store(postgres_url):
            pass


@pytest.mark.parametrize("name", BOTH)
async def test_a_database_with_a_different_migration_of_the_same_name_is_refused(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    add_later_migration(monkeypatch)
    await prepare(postgres_url)
    await execute(postgres_url, f"UPDATE migration SET checksum = 'x' WHERE name = '{name}'")

    with pytest.raises(
        PostgresSchemaMismatch, match=f"{name} was applied to the database with different content"
    ):
        await prepare(postgres_url)


async def test_a_failed_migration_leaves_the_older_database_unchanged(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await execute(postgres_url, "CREATE TABLE old_run_layer (in_the_way integer)")
    before = await shape(postgres_url)
    add_later_migration(monkeypatch)

    with pytest.raises(asyncpg.DuplicateTableError):
        await prepare(postgres_url)
    assert await shape(postgres_url) == before

    await execute(postgres_url, "DROP TABLE old_run_layer")
    async with open_store(postgres_url) as store:
        assert await store.maintenance.migrations() == tuple(BOTH)


async def test_a_failed_first_migration_leaves_nothing_behind(empty_postgres_url: str) -> None:
    await execute(empty_postgres_url, "CREATE TABLE delivery_cursor (in_the_way integer)")

    with pytest.raises(asyncpg.DuplicateTableError):
        await prepare(empty_postgres_url)

    await execute(empty_postgres_url, "DROP TABLE delivery_cursor")
    await prepare(empty_postgres_url)


async def test_database_that_is_not_utf8_is_refused(ascii_url: str) -> None:
    with pytest.raises(PostgresSchemaMismatch, match="the database encoding must be UTF8"):
        await prepare(ascii_url)
