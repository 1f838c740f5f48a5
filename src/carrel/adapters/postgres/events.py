"""Event log in PostgreSQL, ordered by transaction; see functions/events.sql."""

from __future__ import annotations

import re
from typing import Final

from carrel.adapters.postgres.database import Database, searchable_text
from carrel.adapters.postgres.event_notifier import EventNotifier
from carrel.adapters.postgres.rows import Row, from_json, scope_from_row
from carrel.core.errors import ValidationError
from carrel.core.store.event import Event, EventFilter

_CURSOR: Final = re.compile(r"(?:([0-9]{1,19})\.)?([0-9]{1,18})")


class PostgresEvents:
    """A cursor is ``<transaction>.<id>``; a bare id comes from a restored store."""

    def __init__(self, database: Database, notifier: EventNotifier) -> None:
        self._database, self._notifier = database, notifier

    async def read_after(
        self, cursor: str | None, filter: EventFilter | None = None, *, limit: int = 500
    ) -> tuple[Event, ...]:
        self._notifier.mark_seen()
        conditions: Row = (None, None, None, None, None)
        if filter is not None:
            scopes = sorted(scope for scope in filter.scopes if scope.tenant == filter.tenant)
            conditions = (
                searchable_text(filter.tenant) or "",
                filter.run if filter.run is None else searchable_text(filter.run) or "",
                sorted(filter.types) or None,
                [scope.kind for scope in scopes] if filter.scopes else None,
                [scope.name for scope in scopes] if filter.scopes else None,
            )
        rows = await self._database.rows("events_after", *_parse_cursor(cursor), *conditions, limit)
        return tuple(map(_event_from_row, rows))

    async def latest_cursor(self, tenant: str | None = None) -> str:
        """Return the cursor of the horizon, or of the tenant's newest event before it."""
        if tenant is not None:
            rows = await self._database.rows("latest_tenant_event", searchable_text(tenant))
            return f"{rows[0][0]}.{rows[0][1]}" if rows else "0"
        row = await self._database.row("latest_event")
        return f"{int(row[0]) - 1}.{row[1]}"

    async def wait_for_new(self, seconds: float) -> bool:
        """Wait for new events; may return True before they are visible.

        An event is visible once all earlier transactions have ended. Callers that find nothing wait
        again.
        """
        return await self._notifier.wait(seconds)


def _parse_cursor(cursor: str | None) -> tuple[str, int]:
    if cursor is None:
        return "0", 0
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise ValidationError("invalid event cursor")
    return match[1] or "0", int(match[2])


def _event_from_row(row: Row) -> Event:
    xid, id, tenant, kind, name, run, sequence, type, payload, at = row
    scope = None if kind is None else scope_from_row(tenant, kind, name)
    event_payload = from_json(payload)
    return Event(f"{xid}.{id}", f"ev_{id}", type, tenant, at, event_payload, scope, run, sequence)
