"""The bell: tells that there may be new events, here at once and in other processes soon after."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final

import asyncpg

from carrel.adapters.postgres.database import Database, exclusive_connection

_CHANNEL: Final = "carrel"
_PAUSE: Final = 0.02
"""Seconds between two notifications: one is enough for all that was committed meanwhile, and each
of them waits for a lock that all others in the cluster wait for too."""
_LONGEST: Final = 5.0
_LOST: Final = (
    *(OSError, asyncpg.PostgresError, asyncpg.InterfaceError),
    asyncpg.InternalClientError,
)

_heeded: ContextVar[tuple[str, int]] = ContextVar("heeded", default=("", 0))
"""Which bell this task last heeded, and how often it had rung by then."""


class EventNotifier:
    """Nothing rests on a ring being heard: whoever listens also looks from time to time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._name = secrets.token_hex(8)
        self._rings = 0
        self._sleepers: set[asyncio.Future[None]] = set()
        self._listener: asyncio.Task[None] | None = None
        self._notifier: asyncio.Task[None] | None = None
        self._unsaid = False

    def ring(self) -> None:
        """Wake those who sleep here, and have the others woken."""
        self._wake()
        self._unsaid = True
        if self._notifier is None or self._notifier.done():
            self._notifier = asyncio.create_task(self._notify())

    def heed(self) -> None:
        """Note that this task is about to look: what rings from now on is news to it."""
        _heeded.set((self._name, self._rings))

    async def wait(self, seconds: float) -> bool:
        """Wait for a ring; one since this task last looked counts."""
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen())
        name, rings = _heeded.get()
        if name == self._name and rings != self._rings:
            self.heed()
            return True
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.add(sleeper)
        try:
            done, _ = await asyncio.wait({sleeper}, timeout=seconds)
        finally:
            self._sleepers.discard(sleeper)
        self.heed()
        return bool(done)

    async def close(self) -> None:
        if self._notifier is not None:
            await self._notifier
        if self._listener is not None:
            self._listener.cancel()
            with suppress(asyncio.CancelledError):
                await self._listener

    def _wake(self) -> None:
        self._rings += 1
        for sleeper in self._sleepers:
            if not sleeper.done():
                sleeper.set_result(None)

    async def _notify(self) -> None:
        while self._unsaid:
            self._unsaid = False
            with suppress(*_LOST):
                await self._database.script(
                    "BEGIN; SET LOCAL synchronous_commit = off;"
                    f" NOTIFY {_CHANNEL}, '{self._name}'; COMMIT"
                )
            await asyncio.sleep(_PAUSE)

    async def _listen(self) -> None:
        pause = 0.1
        while True:
            with suppress(*_LOST):
                async with exclusive_connection(self._database.url) as connection:
                    await connection.add_listener(_CHANNEL, self._told)
                    self._wake()  # for what was missed while nobody listened
                    pause = 0.1
                    await _end_of(connection)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST)

    def _told(self, _connection: Any, _pid: int, _channel: str, sender: object) -> None:
        if sender != self._name:
            self._wake()


async def _end_of(connection: asyncpg.Connection) -> None:
    gone = asyncio.Event()
    connection.add_termination_listener(lambda _: gone.set())
    await gone.wait()
