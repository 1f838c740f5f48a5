"""Schema of a PostgreSQL database: result of the migrations, and refused databases."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files

import asyncpg
import pytest
from tests.support.services import databases

from carrel.adapters.postgres import PostgresSchemaMismatch, open_store, prepare
from carrel.adapters.postgres.database import MIGRATIONS
from carrel.core.maintenance.tables import DERIVED_TABLES, TABLES

pytestmark = pytest.mark.anyio

HERE = files("carrel.adapters.postgres")
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
    return databases.within(postgres_server, name)


async def test_migrations_result_in_the_schema(postgres_url: str, empty_postgres_url: str) -> None:
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
    for table in ("migration", "utterance_text", *DERIVED_TABLES):
        del actual[table]
    assert {table: tuple(columns) for table, columns in actual.items()} == TABLES


async def test_first_process_migrates_and_the_others_wait(empty_postgres_url: str) -> None:
    await asyncio.gather(*[prepare(empty_postgres_url) for _ in range(4)])

    async with open_store(empty_postgres_url) as store:
        assert await store.maintenance.migrations() == tuple(MIGRATIONS)
        await store.maintenance.ping()


async def test_database_of_a_later_version_is_refused(postgres_url: str) -> None:
    await execute(postgres_url, "INSERT INTO migration VALUES ('9999_later.sql', 'x', 0)")

    with pytest.raises(
        PostgresSchemaMismatch, match=r"unknown migration 9999_later\.sql; use a newer version"
    ):
        async with open_store(postgres_url):
            pass


async def test_database_with_another_migration_history_is_refused(postgres_url: str) -> None:
    name = next(iter(MIGRATIONS))
    await execute(postgres_url, f"UPDATE migration SET checksum = 'x' WHERE name = '{name}'")

    with pytest.raises(
        PostgresSchemaMismatch, match=f"{name} was applied to the database with different content"
    ):
        await prepare(postgres_url)


async def test_failed_migration_leaves_nothing_behind(empty_postgres_url: str) -> None:
    await execute(empty_postgres_url, "CREATE TABLE mark (in_the_way integer)")

    with pytest.raises(asyncpg.DuplicateTableError):
        await prepare(empty_postgres_url)

    await execute(empty_postgres_url, "DROP TABLE mark")
    await prepare(empty_postgres_url)


async def test_database_that_is_not_utf8_is_refused(ascii_url: str) -> None:
    with pytest.raises(PostgresSchemaMismatch, match="the database encoding must be UTF8"):
        await prepare(ascii_url)
