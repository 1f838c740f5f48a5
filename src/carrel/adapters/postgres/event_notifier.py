"""Wakes event readers: directly in this process, by LISTEN/NOTIFY in others."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final

import asyncpg

from carrel.adapters.postgres.database import Database, exclusive_connection

_CHANNEL: Final = "carrel"
_NOTIFY_INTERVAL_SECONDS: Final = 0.02
"""Minimum time between two notifications.

One covers all commits since the last, and each takes a lock that is global to the cluster.
"""
_MAX_RECONNECT_SECONDS: Final = 5.0
_CONNECTION_ERRORS: Final = (
    *(OSError, asyncpg.PostgresError, asyncpg.InterfaceError),
    asyncpg.InternalClientError,
)

_last_seen: ContextVar[tuple[str, int]] = ContextVar("last_seen", default=("", 0))
"""Notifier and number of notifications that this task has seen last."""


class EventNotifier:
    """Wakes readers of events by LISTEN and NOTIFY; some are lost, so readers also poll."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._name = secrets.token_hex(8)
        self._notifications = 0
        self._waiters: set[asyncio.Future[None]] = set()
        self._listen_task: asyncio.Task[None] | None = None
        self._notify_task: asyncio.Task[None] | None = None
        self._is_notify_pending = False

    def notify(self) -> None:
        """Wake waiters in this process and notify other processes."""
        self._wake()
        self._is_notify_pending = True
        if self._notify_task is None or self._notify_task.done():
            self._notify_task = asyncio.create_task(self._notify())

    def mark_seen(self) -> None:
        """Record that this task is about to read; later notifications are new to it."""
        _last_seen.set((self._name, self._notifications))

    async def wait(self, seconds: float) -> bool:
        """Wait for a notification since this task last read; return whether one came."""
        if self._listen_task is None:
            self._listen_task = asyncio.create_task(self._listen())
        name, notifications = _last_seen.get()
        if name == self._name and notifications != self._notifications:
            self.mark_seen()
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            done, _ = await asyncio.wait({waiter}, timeout=seconds)
        finally:
            self._waiters.discard(waiter)
        self.mark_seen()
        return bool(done)

    async def close(self) -> None:
        if self._notify_task is not None:
            await self._notify_task
        if self._listen_task is not None:
            self._listen_task.cancel()
            with suppress(asyncio.CancelledError):
                await self._listen_task

    def _wake(self) -> None:
        self._notifications += 1
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _notify(self) -> None:
        while self._is_notify_pending:
            self._is_notify_pending = False
            with suppress(*_CONNECTION_ERRORS):
                await self._database.script(
                    "BEGIN; SET LOCAL synchronous_commit = off;"
                    f" NOTIFY {_CHANNEL}, '{self._name}'; COMMIT"
                )
            await asyncio.sleep(_NOTIFY_INTERVAL_SECONDS)

    async def _listen(self) -> None:
        pause = 0.1
        while True:
            with suppress(*_CONNECTION_ERRORS):
                async with exclusive_connection(self._database.url) as connection:
                    await connection.add_listener(_CHANNEL, self._on_notification)
                    self._wake()  # notifications may have been missed while disconnected
                    pause = 0.1
                    await _wait_for_end(connection)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_RECONNECT_SECONDS)

    def _on_notification(self, _connection: Any, _pid: int, _channel: str, sender: object) -> None:
        if sender != self._name:
            self._wake()


async def _wait_for_end(connection: asyncpg.Connection) -> None:
    ended = asyncio.Event()
    connection.add_termination_listener(lambda _: ended.set())
    await ended.wait()
