"""Event log in SQLite. One writer at a time, so ids follow the commit order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from carrel.adapters.sqlite.database import STATEMENTS
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.rows import Row, scope_from_row, scopes_to_json
from carrel.core.errors import ValidationError
from carrel.core.store.event import Event, EventFilter

_POLL_SECONDS = 0.05
"""Interval for polling writes of other processes; a poll takes about 2 µs."""


_SCAN_THRESHOLD = 2_000


class SqliteEvents:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._waiters: set[asyncio.Event] = set()
        self._version = b""

    async def read_after(
        self, cursor: str | None, filter: EventFilter | None = None, *, limit: int = 500
    ) -> tuple[Event, ...]:
        past = _parse_cursor(cursor)
        rows: Sequence[Row]
        if filter is None:
            rows = self._reader.db.execute(STATEMENTS["events_after"], (past, limit)).fetchall()
        elif filter.run is not None:
            ask = (*_filter_parameters(filter, past, limit), filter.run)
            rows = self._reader.db.execute(STATEMENTS["run_events_after"], ask).fetchall()
        else:
            rows = await self._read_tenant_events(_filter_parameters(filter, past, limit), past)
        return tuple(map(_event_from_row, rows))

    async def _read_tenant_events(self, parameters: Row, position: int) -> Sequence[Row]:
        """Read a tenant's events; a long scan runs in a thread."""
        if int(await self.latest_cursor()) - position > _SCAN_THRESHOLD:
            return await self._reader.scan(
                lambda db: db.execute(STATEMENTS["tenant_events_after"], parameters).fetchall()
            )
        return self._reader.db.execute(STATEMENTS["tenant_events_after"], parameters).fetchall()

    async def latest_cursor(self, tenant: str | None = None) -> str:
        if tenant is not None:
            [newest] = await self._reader.scan(
                lambda db: db.execute(STATEMENTS["latest_tenant_event"], (tenant,)).fetchone()
            )
            return str(newest)
        [latest] = self._reader.db.execute(STATEMENTS["latest_event"]).fetchone()
        return str(latest)

    async def wait_for_new(self, seconds: float) -> bool:
        if self._check_for_changes():
            return True
        waiter = asyncio.Event()
        self._waiters.add(waiter)
        try:
            return await self._wait(waiter, seconds)
        finally:
            self._waiters.discard(waiter)

    async def _wait(self, waiter: asyncio.Event, seconds: float) -> bool:
        deadline = asyncio.get_running_loop().time() + seconds
        while (remaining := deadline - asyncio.get_running_loop().time()) > 0:
            try:
                async with asyncio.timeout(min(remaining, _POLL_SECONDS)):
                    await waiter.wait()
            except TimeoutError:
                if self._check_for_changes():
                    return True
            else:
                self._check_for_changes()
                return True
        return False

    def _check_for_changes(self) -> bool:
        """Whether anything was committed since the last call; wakes all waiters if so."""
        version = self._reader.index.version()
        has_changed, self._version = version != self._version, version
        if has_changed:
            self.notify()
        return has_changed

    def notify(self) -> None:
        """Wake all waiters. The writer calls this after each commit."""
        for waiter in self._waiters:
            waiter.set()


def _filter_parameters(filter: EventFilter, position: int, limit: int) -> Row:
    types = json.dumps(sorted(filter.types)) if filter.types else None
    scopes = scopes_to_json(sorted(filter.scopes)) if filter.scopes else None
    return (filter.tenant, position, limit, types, scopes)


def _parse_cursor(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 18):
        raise ValidationError("invalid event cursor")
    return int(cursor)


def _event_from_row(row: Row) -> Event:
    id, tenant, kind, name, run, sequence, type, payload, at = row
    scope = None if kind is None else scope_from_row(tenant, kind, name)
    return Event(str(id), f"ev_{id}", type, tenant, at, json.loads(payload), scope, run, sequence)
