"""What commands are given: a world by the settings around them, or a reason why there is none."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path as File
from typing import Any

from carrel.adapters.aes_vault import VaultKeyUnusable
from carrel.adapters.sqlite.database import Incompatible
from carrel.settings import Settings, Unusable
from carrel.wiring.cli_settings import Unopenable, settings_by
from carrel.wiring.world import Opened, open_world

__all__ = ["Opened", "Unopenable", "explained", "opened", "settings_by"]


@asynccontextmanager
async def opened(given: Mapping[str, Any], *, new: bool = False) -> AsyncIterator[Opened]:
    """A world by what is given, over the settings around, for looking after. Raises Unopenable.

    A store that is not there is not made, unless it may be ``new``. Nothing is written to it, and
    its vault's key need not be at hand.
    """
    settings = settings_by(given)
    async with AsyncExitStack() as stack:
        with explained(settings):
            if not new:
                _must_exist(settings.sqlite_file)
            world = await stack.enter_async_context(open_world(settings, insist=False))
        yield world


@contextmanager
def explained(settings: Settings) -> Iterator[None]:
    """Turn whatever keeps a store from being opened into Unopenable, with the reason."""
    try:
        yield
    except (Unusable, VaultKeyUnusable, Incompatible, sqlite3.Error, OSError) as problem:
        raise Unopenable(str(problem)) from problem
    except Exception as problem:
        if _of_postgres(problem, settings):
            raise Unopenable(f"the database cannot be opened: {problem}") from problem
        raise


def _must_exist(file: File | None) -> None:
    if file is not None and not file.exists():
        raise Unusable(f"there is no store at {file}")


def _of_postgres(problem: Exception, settings: Settings) -> bool:
    if settings.sqlite_file is not None:
        return False
    import asyncpg  # noqa: PLC0415 - only where it is used

    from carrel.adapters.postgres.database import Incompatible  # noqa: PLC0415 - as above

    return isinstance(problem, (asyncpg.PostgresError, asyncpg.InterfaceError, Incompatible))
