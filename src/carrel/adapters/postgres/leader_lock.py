"""Leader lock over a session-level advisory lock; released when the session ends."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from typing import Final

import asyncpg

from carrel.adapters.postgres.advisory_locks import lock_number
from carrel.adapters.postgres.database import STATEMENTS, exclusive_connection

_QUERY_TIMEOUT_SECONDS: Final = 10
_INTERRUPTED: Final = asyncpg.InternalClientError
"""Raised by the driver when a connection ends in the middle of a message."""
_CONNECTION_ERRORS: Final = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, _INTERRUPTED)


class PostgresLeaderLock:
    def __init__(self, url: str, name: str) -> None:
        self._url, self._lock = url, lock_number(f"turn/{name}")
        self._stack = AsyncExitStack()
        self._connection: asyncpg.Connection | None = None
        self._is_leader = False

    async def try_acquire(self) -> bool:
        """Acquire or confirm the lock. Checks the connection even if held."""
        try:
            return await self._acquire()
        except BaseException as problem:
            await self.release()
            if isinstance(problem, _INTERRUPTED):
                raise ConnectionError(
                    "the connection that held the leader lock was closed"
                ) from problem
            raise

    async def release(self) -> None:
        self._connection, self._is_leader = None, False
        with suppress(*_CONNECTION_ERRORS):
            await self._stack.aclose()

    async def _acquire(self) -> bool:
        if self._connection is None:
            self._connection = await self._stack.enter_async_context(
                exclusive_connection(self._url)
            )
        if self._is_leader:
            await self._connection.fetchval(
                STATEMENTS["check_connection"], timeout=_QUERY_TIMEOUT_SECONDS
            )
        else:
            query = (STATEMENTS["try_leader_lock"], self._lock)
            self._is_leader = await self._connection.fetchval(
                *query, timeout=_QUERY_TIMEOUT_SECONDS
            )
        return self._is_leader
