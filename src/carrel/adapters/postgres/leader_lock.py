"""Taking turns by a lock of a connection's own; the server unlocks it when the connection ends."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from typing import Final

import asyncpg

from carrel.adapters.postgres.advisory_locks import lock_of
from carrel.adapters.postgres.database import SQL, exclusive_connection

_PATIENCE: Final = 10
_TORN: Final = asyncpg.InternalClientError
"""What the driver says when a connection ends in the middle of a word."""
_LOST: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, _TORN)


class PostgresLeaderLock:
    def __init__(self, url: str, name: str) -> None:
        self._url, self._lock = url, lock_of(f"turn/{name}")
        self._stack = AsyncExitStack()
        self._connection: asyncpg.Connection | None = None
        self._mine = False

    async def try_acquire(self) -> bool:
        """Asks even while it has it: with the connection, the lock may be gone."""
        try:
            return await self._taken()
        except BaseException as problem:
            await self.release()
            if isinstance(problem, _TORN):
                raise ConnectionError("the connection that held the turn has ended") from problem
            raise

    async def release(self) -> None:
        self._connection, self._mine = None, False
        with suppress(*_LOST):
            await self._stack.aclose()

    async def _taken(self) -> bool:
        if self._connection is None:
            self._connection = await self._stack.enter_async_context(
                exclusive_connection(self._url)
            )
        if self._mine:
            await self._connection.fetchval(SQL["still_there"], timeout=_PATIENCE)
        else:
            ask = (SQL["try_turn"], self._lock)
            self._mine = await self._connection.fetchval(*ask, timeout=_PATIENCE)
        return self._mine
