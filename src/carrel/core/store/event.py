"""Events of the event log. They carry ids and paths, never content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from carrel.core.identifiers import Scope, TimestampMs

WORKSPACE_UPDATED: Final = "workspace.updated"
RUN_STARTED: Final = "run.started"
RUN_ENDED_BY_STATUS: Final = {
    "completed": "run.completed",
    "failed": "run.failed",
    "cancelled": "run.cancelled",
    "abandoned": "run.abandoned",
}
APPROVAL_REQUESTED: Final = "approval.requested"
APPROVAL_ANSWERED: Final = "approval.answered"
APPROVAL_FINISHED: Final = "approval.finished"
TOOL_CALLED: Final = "tool.called"
APPROVALS: Final = (APPROVAL_REQUESTED, APPROVAL_ANSWERED, APPROVAL_FINISHED)
RECORD_CHANGED: Final = "record.changed"
EVENT_TYPES: Final = (
    WORKSPACE_UPDATED,
    RUN_STARTED,
    *RUN_ENDED_BY_STATUS.values(),
    TOOL_CALLED,
    *APPROVALS,
    RECORD_CHANGED,
)


class EventDraft(Struct, frozen=True, gc=False):
    """Event to be logged by a commit. Belongs to the tenant, not to a scope.

    Carries no content.
    """

    tenant: str
    type: str
    payload: Mapping[str, Any]


class Event(Struct, frozen=True):
    cursor: str
    """Opaque position in the log, ordered by the store that issued it."""
    id: str
    type: str
    tenant: str
    at: TimestampMs
    payload: Mapping[str, Any]
    scope: Scope | None = None
    run: str | None = None
    sequence: int | None = None
    """Position in the run's log, from 1."""


class EventFilter(Struct, frozen=True):
    """Event selection. Empty fields match everything; the tenant is always required."""

    tenant: str
    scopes: frozenset[Scope] = frozenset()
    run: str | None = None
    types: frozenset[str] = frozenset()

    def matches(self, event: Event) -> bool:
        return (
            event.tenant == self.tenant
            and (not self.scopes or event.scope in self.scopes)
            and (self.run is None or event.run == self.run)
            and (not self.types or event.type in self.types)
        )
