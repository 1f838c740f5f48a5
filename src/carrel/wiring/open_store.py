"""Opens the store for CLI commands and translates errors into StoreUnavailable."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path as File
from typing import Any
from urllib.parse import unquote, urlsplit

from carrel.adapters.aes_vault import InvalidVaultKey
from carrel.adapters.sqlite.migration_runner import SqliteSchemaMismatch
from carrel.core.outages import Unreachable
from carrel.settings import Settings, SettingsError
from carrel.wiring.cli_settings import StoreUnavailable, load_settings
from carrel.wiring.ports import OpenStore, open_ports

__all__ = ["OpenStore", "StoreUnavailable", "load_settings", "open_store", "translate_open_errors"]


@asynccontextmanager
async def open_store(
    overrides: Mapping[str, Any], *, create: bool = False
) -> AsyncIterator[OpenStore]:
    """Open the store for maintenance. Raises StoreUnavailable.

    A missing store is created only with ``create``. Nothing is written, and the vault key is not
    checked.
    """
    settings = load_settings(overrides)
    async with AsyncExitStack() as stack:
        with translate_open_errors(settings):
            if not create:
                _require_file(settings.sqlite_file)
            store = await stack.enter_async_context(open_ports(settings, check_vault_key=False))
        yield store


@contextmanager
def translate_open_errors(settings: Settings) -> Iterator[None]:
    """Translate errors of opening a store into StoreUnavailable."""
    try:
        yield
    except Unreachable as problem:
        place = _database_place(settings) if problem.component == "database" else ""
        raise StoreUnavailable(f"{problem}{place}") from problem
    except (SettingsError, InvalidVaultKey, SqliteSchemaMismatch, OSError) as problem:
        raise StoreUnavailable(str(problem)) from problem
    except sqlite3.Error as problem:
        raise StoreUnavailable(_describe(problem, settings.sqlite_file)) from problem
    except Exception as problem:
        if _is_postgres_error(problem, settings):
            raise StoreUnavailable(f"cannot open the database: {problem}") from problem
        raise


def _database_place(settings: Settings) -> str:
    """Hosts and name of the database, without its password."""
    if settings.sqlite_file is not None:
        return ""
    parts = urlsplit(settings.database_url)
    hosts = parts.netloc.rpartition("@")[2] or "localhost"
    name = unquote(parts.path.lstrip("/")) or "default"
    return f" (database {name} at {hosts}, CARREL_DATABASE_URL)"


def _describe(problem: sqlite3.Error, file: File | None) -> str:
    """Text of an error of SQLite, with its file and, if pages are damaged, what to do."""
    is_damaged = getattr(problem, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_CORRUPT
    hint = "; run `carrel doctor` to see what is lost" if is_damaged else ""
    return f"cannot open {file}: {problem}{hint}"


def _require_file(file: File | None) -> None:
    if file is not None and not file.exists():
        raise SettingsError(f"no store at {file}")


def _is_postgres_error(problem: Exception, settings: Settings) -> bool:
    if settings.sqlite_file is not None:
        return False
    import asyncpg  # noqa: PLC0415 - optional dependency

    from carrel.adapters.postgres.migration_runner import PostgresSchemaMismatch  # noqa: PLC0415 - as above

    return isinstance(
        problem, (asyncpg.PostgresError, asyncpg.InterfaceError, PostgresSchemaMismatch)
    )
