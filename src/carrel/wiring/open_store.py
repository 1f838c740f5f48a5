"""What commands are given: a world by the settings around them, or a reason why there is none."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path as File
from typing import Any

from carrel.adapters.aes_vault import VaultKeyUnusable
from carrel.adapters.sqlite.database import Incompatible
from carrel.settings import Settings, SettingsError
from carrel.wiring.cli_settings import StoreUnavailable, load_settings
from carrel.wiring.ports import OpenStore, open_world

__all__ = ["OpenStore", "StoreUnavailable", "load_settings", "open_store", "translate_open_errors"]


@asynccontextmanager
async def open_store(given: Mapping[str, Any], *, new: bool = False) -> AsyncIterator[OpenStore]:
    """A world by what is given, over the settings around, for looking after. Raises Unopenable.

    A store that is not there is not made, unless it may be ``new``. Nothing is written to it, and
    its vault's key need not be at hand.
    """
    settings = load_settings(given)
    async with AsyncExitStack() as stack:
        with translate_open_errors(settings):
            if not new:
                _must_exist(settings.sqlite_file)
            ports = await stack.enter_async_context(open_world(settings, insist=False))
        yield ports


@contextmanager
def translate_open_errors(settings: Settings) -> Iterator[None]:
    """Turn whatever keeps a store from being opened into Unopenable, with the reason."""
    try:
        yield
    except (SettingsError, VaultKeyUnusable, Incompatible, sqlite3.Error, OSError) as problem:
        raise StoreUnavailable(str(problem)) from problem
    except Exception as problem:
        if _of_postgres(problem, settings):
            raise StoreUnavailable(f"the database cannot be opened: {problem}") from problem
        raise


def _must_exist(file: File | None) -> None:
    if file is not None and not file.exists():
        raise SettingsError(f"there is no store at {file}")


def _of_postgres(problem: Exception, settings: Settings) -> bool:
    if settings.sqlite_file is not None:
        return False
    import asyncpg  # noqa: PLC0415 - only where it is used

    from carrel.adapters.postgres.database import Incompatible  # noqa: PLC0415 - as above

    return isinstance(problem, (asyncpg.PostgresError, asyncpg.InterfaceError, Incompatible))
