"""Outbox of events."""

from __future__ import annotations

from typing import Protocol

from carrel.core.store.event import Event, EventFilter


class Events(Protocol):
    """Event log, written in the transaction of the change."""

    async def read_after(
        self, cursor: str | None, filter: EventFilter | None = None, *, limit: int = 500
    ) -> tuple[Event, ...]:
        """Return events past a cursor (None: from the start), oldest first.

        Raises ValidationError. No event is missed: one that becomes visible later has a later
        cursor. Without a filter, events of all tenants: only for delivery.
        """

    async def latest_cursor(self, tenant: str | None = None) -> str:
        """Return a cursor past all visible events.

        With a tenant: the cursor of its newest one, `"0"` if there is none, which the writes of
        others do not move.
        """

    async def wait_for_new(self, seconds: float) -> bool:
        """Wait until new events may exist (True) or the timeout passes (False).

        Writes of other processes wake it too.
        """
