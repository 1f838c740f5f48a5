"""The log of events in SQLite: one writer at a time, so ids rise in the order they are seen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from carrel.adapters.sqlite.database import SQL
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.rows import Row, names, scope_of
from carrel.core.errors import ValidationError
from carrel.core.store.event import Event, EventFilter

_LOOK = 0.05
"""Seconds between looks for what other processes wrote; a look costs a microsecond or two."""


_MANY = 2_000


class SqliteEvents:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._bells: set[asyncio.Event] = set()
        self._seen = b""

    async def after(
        self, cursor: str | None, filter: EventFilter | None = None, *, limit: int = 500
    ) -> tuple[Event, ...]:
        past = _position(cursor)
        rows: Sequence[Row]
        if filter is None:
            rows = self._reader.db.execute(SQL["events_after"], (past, limit)).fetchall()
        elif filter.run is not None:
            ask = (*_asked(filter, past, limit), filter.run)
            rows = self._reader.db.execute(SQL["run_events_after"], ask).fetchall()
        else:
            rows = await self._of_tenant(_asked(filter, past, limit), past)
        return tuple(map(_event, rows))

    async def _of_tenant(self, ask: Row, past: int) -> Sequence[Row]:
        """Those of others are passed over one by one, which in a thread disturbs nobody."""
        if int(await self.latest()) - past > _MANY:
            return await self._reader.scan(
                lambda db: db.execute(SQL["tenant_events_after"], ask).fetchall()
            )
        return self._reader.db.execute(SQL["tenant_events_after"], ask).fetchall()

    async def latest(self) -> str:
        [latest] = self._reader.db.execute(SQL["latest_event"]).fetchone()
        return str(latest)

    async def wait_for_new(self, seconds: float) -> bool:
        if self._changed():
            return True
        bell = asyncio.Event()
        self._bells.add(bell)
        try:
            return await self._listen(bell, seconds)
        finally:
            self._bells.discard(bell)

    async def _listen(self, bell: asyncio.Event, seconds: float) -> bool:
        ends = asyncio.get_running_loop().time() + seconds
        while (left := ends - asyncio.get_running_loop().time()) > 0:
            try:
                async with asyncio.timeout(min(left, _LOOK)):
                    await bell.wait()
            except TimeoutError:
                if self._changed():
                    return True
            else:
                self._changed()
                return True
        return False

    def _changed(self) -> bool:
        """Whether anything was written since somebody last asked; all who wait hear of it."""
        version = self._reader.index.version()
        changed, self._seen = version != self._seen, version
        if changed:
            self.notify()
        return changed

    def notify(self) -> None:
        """Called by the writer once something is durable."""
        for bell in self._bells:
            bell.set()


def _asked(filter: EventFilter, past: int, limit: int) -> Row:
    types = json.dumps(sorted(filter.types)) if filter.types else None
    scopes = names(sorted(filter.scopes)) if filter.scopes else None
    return (filter.tenant, past, limit, types, scopes)


def _position(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 18):
        raise ValidationError("that is not an event cursor")
    return int(cursor)


def _event(row: Row) -> Event:
    id, tenant, kind, name, run, sequence, type, payload, at = row
    scope = None if kind is None else scope_of(tenant, kind, name)
    return Event(str(id), f"ev_{id}", type, tenant, at, json.loads(payload), scope, run, sequence)
