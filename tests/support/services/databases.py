"""Databases for tests: one template per process, and copies of it.

Creating a copy takes a hundred times as long as emptying one. So a test returns its database, and
the next one takes it, unless the test has changed more than rows. Databases are removed with their
server: dropping one takes four times as long as creating it, since PostgreSQL then flushes its
buffers of all databases.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from carrel.adapters import postgres

Result = TypeVar("Result")


async def prepare(url: str) -> None:
    """Fill the empty template. Its content is in every test's database."""
    await postgres.prepare(url)


async def create(admin_url: str, template: str | None = None) -> str:
    """The name of a new database, empty or copied from a template without connections."""
    name = f"t_{secrets.token_hex(8)}"
    await execute(admin_url, f"CREATE DATABASE {name} TEMPLATE {template or 'template1'}")
    return name


async def execute(admin_url: str, statement: str) -> None:
    connection = await asyncpg.connect(admin_url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


class Copies:
    """Copies of one template, each used by one test at a time.

    A copy is emptied over one connection that stays open, in a loop of its own: connecting takes
    longer than emptying.
    """

    def __init__(self, admin_url: str, template: str) -> None:
        self._admin_url, self._template = admin_url, template
        self._spare: list[str] = []
        self._connections: dict[str, asyncpg.Connection] = {}
        self._schema: str | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="copies", daemon=True)
        self._thread.start()

    def acquire(self) -> str:
        return self._run(self._acquire())

    def release(self, name: str) -> None:
        self._run(self._release(name))

    def close(self) -> None:
        self._run(self._close_connections())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _acquire(self) -> str:
        if self._schema is None:
            self._schema = await read_schema(database_url(self._admin_url, self._template))
        return self._spare.pop() if self._spare else await create(self._admin_url, self._template)

    async def _release(self, name: str) -> None:
        connection = self._connections.pop(name, None)
        if connection is None or connection.is_closed():
            connection = await asyncpg.connect(database_url(self._admin_url, name))
        if await clear_database(connection) == self._schema:
            self._connections[name] = connection
            self._spare.append(name)
        else:
            await connection.close()

    async def _close_connections(self) -> None:
        for connection in self._connections.values():
            await connection.close()
        self._connections.clear()


END_OTHER_SESSIONS = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
OUR_RELATIONS = "SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace"
TABLES = (
    "SELECT quote_ident(relname), relkind = 'S' FROM pg_class"
    " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S') ORDER BY 1"
)
"""All tables and sequences, and whether each is a sequence."""
TEMPLATE_TABLES = {"counter", "migration"}
"""Tables with rows in the template."""


async def read_schema(url: str) -> str:
    """Everything that a test might have changed except added rows: objects, their definitions,
    and the rows of the template.
    """
    connection = await asyncpg.connect(url)
    try:
        return await _read_schema(connection)
    finally:
        await connection.close()


async def _read_schema(connection: asyncpg.Connection) -> str:
    selects = (
        "SELECT relname, relkind, relnatts, reloptions FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace",
        f"SELECT attrelid::regclass, attname, atttypid, attnotnull, attisdropped FROM pg_attribute"
        f" WHERE attrelid IN ({OUR_RELATIONS})",
        f"SELECT tgrelid::regclass, tgname, tgenabled FROM pg_trigger"
        f" WHERE tgrelid IN ({OUR_RELATIONS})",
        f"SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        f" WHERE conrelid IN ({OUR_RELATIONS})",
        f"SELECT indexrelid::regclass, pg_get_indexdef(indexrelid) FROM pg_index"
        f" WHERE indrelid IN ({OUR_RELATIONS})",
        "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
        "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_'",
        *(f"SELECT * FROM {table}" for table in sorted(TEMPLATE_TABLES)),
    )
    tables = [name for name, counts in await connection.fetch(TABLES) if not counts]
    rest = " OR ".join(
        f"EXISTS (SELECT 1 FROM {name})" for name in tables if name not in TEMPLATE_TABLES
    )
    queries = [
        f"SELECT string_agg(q::text, ';' ORDER BY q::text) FROM ({select}) q" for select in selects
    ]
    queries.append(f"SELECT ({rest or 'false'})::text")
    return repr(await connection.fetchval(f"SELECT ARRAY[({'), ('.join(queries)})]"))


async def clear_database(connection: asyncpg.Connection) -> str | None:
    """End other sessions, delete added rows, reset sequences and return the schema.

    None if that fails.
    """
    try:
        await connection.execute(END_OTHER_SESSIONS)
        tables = await connection.fetch(TABLES)
        statements = ["SET session_replication_role = replica"]  # in any order
        statements += ["UPDATE counter SET value = 0"]
        statements += [
            f"SELECT setval('{name}', 1, false)" if counts else f"DELETE FROM {name}"
            for name, counts in tables
            if name not in TEMPLATE_TABLES
        ]
        await connection.execute(";".join(statements))
        return await _read_schema(connection)
    except (asyncpg.PostgresError, asyncpg.InterfaceError):
        return None


def database_url(admin_url: str, name: str) -> str:
    """The URL of a database on the server of this URL."""
    return urlunsplit(urlsplit(admin_url)._replace(path=f"/{name}"))
