"""What happened, told without content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from carrel.core.identifiers import Scope, TimestampMs

UPDATED: Final = "workspace.updated"
RUN_STARTED: Final = "run.started"
RUN_ENDED: Final = {
    "completed": "run.completed",
    "failed": "run.failed",
    "cancelled": "run.cancelled",
}
APPROVAL_REQUESTED: Final = "approval.requested"
APPROVAL_ANSWERED: Final = "approval.answered"
APPROVAL_FINISHED: Final = "approval.finished"
APPROVALS: Final = (APPROVAL_REQUESTED, APPROVAL_ANSWERED, APPROVAL_FINISHED)
RECORD_CHANGED: Final = "record.changed"
TYPES: Final = (UPDATED, RUN_STARTED, *RUN_ENDED.values(), *APPROVALS, RECORD_CHANGED)


class EventDraft(Struct, frozen=True, gc=False):
    """An event that a commit wants told with it: of the tenant as a whole, free of content."""

    tenant: str
    type: str
    payload: Mapping[str, Any]


class Event(Struct, frozen=True):
    cursor: str
    """Where it stands in the log: opaque, ordered by the store that gave it."""
    id: str
    type: str
    tenant: str
    at: TimestampMs
    payload: Mapping[str, Any]
    scope: Scope | None = None
    run: str | None = None
    sequence: int | None = None
    """Its place in its run's log, from 1."""


class EventFilter(Struct, frozen=True):
    """Which events a listener wants. An empty field is open; the tenant never is."""

    tenant: str
    scopes: frozenset[Scope] = frozenset()
    run: str | None = None
    types: frozenset[str] = frozenset()

    def admits(self, event: Event) -> bool:
        return (
            event.tenant == self.tenant
            and (not self.scopes or event.scope in self.scopes)
            and (self.run is None or event.run == self.run)
            and (not self.types or event.type in self.types)
        )
