"""Databases for tests: one template a process, and copies of it for tests to take.

To make a copy takes a hundred times as long as to empty one. So a test gives its database back, and
the next takes it, unless the test has changed more than rows. Databases go with their server: to
drop one takes four times as long as to make it, since PostgreSQL then flushes whatever it holds of
all of them.
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
    """Fill the template, which is empty so far. What is put here is in every test's database."""
    await postgres.prepare(url)


async def create(admin_url: str, template: str | None = None) -> str:
    """The name of a new database, empty or copied from a template that nobody is connected to."""
    name = f"t_{secrets.token_hex(8)}"
    await tell(admin_url, f"CREATE DATABASE {name} TEMPLATE {template or 'template1'}")
    return name


async def drop(admin_url: str, name: str) -> None:
    await tell(admin_url, f"DROP DATABASE {name} WITH (FORCE)")


async def tell(admin_url: str, statement: str) -> None:
    connection = await asyncpg.connect(admin_url)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


class Copies:
    """Copies of one template, of which nobody has two at a time. Each is tidied up over one
    connection that stays, in a loop of our own: to connect takes longer than to tidy up."""

    def __init__(self, admin_url: str, template: str) -> None:
        self._admin_url, self._template = admin_url, template
        self._spare: list[str] = []
        self._tidying: dict[str, asyncpg.Connection] = {}
        self._form: str | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="copies", daemon=True)
        self._thread.start()

    def take(self) -> str:
        return self._run(self._take())

    def give_back(self, name: str) -> None:
        self._run(self._give_back(name))

    def close(self) -> None:
        self._run(self._part())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _take(self) -> str:
        if self._form is None:
            self._form = await form(within(self._admin_url, self._template))
        return self._spare.pop() if self._spare else await create(self._admin_url, self._template)

    async def _give_back(self, name: str) -> None:
        connection = self._tidying.pop(name, None)
        if connection is None or connection.is_closed():
            connection = await asyncpg.connect(within(self._admin_url, name))
        if await emptied(connection) == self._form:
            self._tidying[name] = connection
            self._spare.append(name)
        else:
            await connection.close()

    async def _part(self) -> None:
        for connection in self._tidying.values():
            await connection.close()
        self._tidying.clear()


DISMISS = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
OURS = "SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace"
TABLES = (
    "SELECT quote_ident(relname), relkind = 'S' FROM pg_class"
    " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S') ORDER BY 1"
)
"""All there are by name, and whether they only count."""
KEPT = {"counter", "migration"}
"""Tables with rows in the template."""


async def form(url: str) -> str:
    """All that a test might have changed beside rows that it added: what there is, how it is made,
    and what the template brought along."""
    connection = await asyncpg.connect(url)
    try:
        return await _form(connection)
    finally:
        await connection.close()


async def _form(connection: asyncpg.Connection) -> str:
    asks = (
        "SELECT relname, relkind, relnatts, reloptions FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace",
        f"SELECT attrelid::regclass, attname, atttypid, attnotnull, attisdropped FROM pg_attribute"
        f" WHERE attrelid IN ({OURS})",
        f"SELECT tgrelid::regclass, tgname, tgenabled FROM pg_trigger WHERE tgrelid IN ({OURS})",
        f"SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint"
        f" WHERE conrelid IN ({OURS})",
        f"SELECT indexrelid::regclass, pg_get_indexdef(indexrelid) FROM pg_index"
        f" WHERE indrelid IN ({OURS})",
        "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = 'public'::regnamespace",
        "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_'",
        *(f"SELECT * FROM {table}" for table in sorted(KEPT)),
    )
    tables = [name for name, counts in await connection.fetch(TABLES) if not counts]
    rest = " OR ".join(f"EXISTS (SELECT 1 FROM {name})" for name in tables if name not in KEPT)
    told = [f"SELECT string_agg(q::text, ';' ORDER BY q::text) FROM ({ask}) q" for ask in asks]
    told.append(f"SELECT ({rest or 'false'})::text")
    return repr(await connection.fetchval(f"SELECT ARRAY[({'), ('.join(told)})]"))


async def emptied(connection: asyncpg.Connection) -> str | None:
    """Send everybody else away, delete what was added, begin all counting anew, and tell the form
    of what is left. None where that cannot be done."""
    try:
        await connection.execute(DISMISS)
        tables = await connection.fetch(TABLES)
        tell = ["SET session_replication_role = replica"]  # in whatever order
        tell += ["UPDATE counter SET value = 0"]
        tell += [
            f"SELECT setval('{name}', 1, false)" if counts else f"DELETE FROM {name}"
            for name, counts in tables
            if name not in KEPT
        ]
        await connection.execute(";".join(tell))
        return await _form(connection)
    except (asyncpg.PostgresError, asyncpg.InterfaceError):
        return None


def within(admin_url: str, name: str) -> str:
    """The URL of a database on the server of that URL."""
    return urlunsplit(urlsplit(admin_url)._replace(path=f"/{name}"))
