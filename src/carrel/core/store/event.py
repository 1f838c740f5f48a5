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
APPROVAL_EXPIRED: Final = "approval.expired"
APPROVAL_FINISHED: Final = "approval.finished"
TOOL_CALLED: Final = "tool.called"
APPROVALS: Final = (APPROVAL_REQUESTED, APPROVAL_ANSWERED, APPROVAL_EXPIRED, APPROVAL_FINISHED)
REVIEW_REQUESTED: Final = "review.requested"
REVIEW_ANSWERED: Final = "review.answered"
DREAM_PROPOSED: Final = "dream.proposed"
DREAM_ANSWERED: Final = "dream.answered"
RECORD_CHANGED: Final = "record.changed"
WEBHOOK_TEST: Final = "webhook.test"
"""Posted on request to one webhook; not in the event log."""

EVENT_SUMMARIES: Final[Mapping[str, str]] = {
    WORKSPACE_UPDATED: "A file or an item was written or deleted",
    RUN_STARTED: "A run started",
    RUN_ENDED_BY_STATUS["completed"]: "A run completed",
    RUN_ENDED_BY_STATUS["failed"]: "A run failed",
    RUN_ENDED_BY_STATUS["cancelled"]: "A run was cancelled",
    RUN_ENDED_BY_STATUS["abandoned"]: "A run stopped reporting",
    TOOL_CALLED: "A run called a tool",
    APPROVAL_REQUESTED: "A tool call waits for approval",
    APPROVAL_ANSWERED: "A tool call was approved or denied",
    APPROVAL_EXPIRED: "A tool call was not answered in time",
    APPROVAL_FINISHED: "An approved tool call finished, or was cancelled",
    REVIEW_REQUESTED: "A pinned file of a template or the defaults waits for review",
    REVIEW_ANSWERED: "A pinned file of an agent was reviewed",
    DREAM_PROPOSED: "A dream waits for review",
    DREAM_ANSWERED: "A dream was approved, rejected or superseded",
    RECORD_CHANGED: "An agent, a person, a template or another record changed",
}
"""The catalogue of event types, with what each reports."""
EVENT_TYPES: Final = tuple(EVENT_SUMMARIES)


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
