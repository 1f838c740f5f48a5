"""Databases for tests: one template a process, and a copy of it for each test.

They are left where they are, and go with their server: to drop one takes four times as long as to
make it, since PostgreSQL then flushes whatever it holds of all of them.
"""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit, urlunsplit

import asyncpg

from carrel.adapters import postgres


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


def within(admin_url: str, name: str) -> str:
    """The URL of a database on the server of that URL."""
    return urlunsplit(urlsplit(admin_url)._replace(path=f"/{name}"))
