"""Runs: their status, audience and frozen snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from carrel.core.errors import Conflict
from carrel.core.identifiers import Scope, ScopeKind, TimestampMs

_RANDOM_BITS: Final = 48
"""Bits of an id below the time of its creation."""


class RunStatus(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABANDONED = "abandoned"
    """Stopped reporting. It can still report, write and end."""


class Audience(StrEnum):
    """Who takes part in the conversation: one person or several."""

    MAIN = "main"
    SHARED = "shared"


def parse_audience(scope: str | None) -> Audience:
    """Main if absent; any unknown value is shared, which reveals the least."""
    return Audience.MAIN if scope in {None, Audience.MAIN} else Audience.SHARED


class SnapshotLayer(Struct, frozen=True, gc=False):
    """One scope at one revision."""

    scope: Scope
    revision: int


Snapshot = tuple[SnapshotLayer, ...]
"""Layers, nearest first. Costs one row per layer and never changes."""

NOOP_WORKFLOW: Final = "conformance-noop"
DEFAULT_WORKFLOW: Final = "agent"
"""Workflow of a run that was started without one."""


class Run(Struct, frozen=True):
    id: str
    tenant: str
    scope: Scope
    """The run's workspace: the nearest layer of its stack."""
    workflow: str
    mode: Audience
    status: RunStatus
    author: str
    started_at: TimestampMs
    ended_at: TimestampMs | None = None
    parent: str | None = None
    replay_of: str | None = None
    session: str | None = None
    """Session of the agent that the run answers in."""
    snapshot_kept: bool = True
    """False once released: pruning may then remove the versions it could see."""
    snapshot: Snapshot = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    """Placeholder values and prompt inputs at the time of the snapshot."""
    reported_at: TimestampMs = 0
    """Last report: its start, a heartbeat, or something that it wrote."""
    abandoned_at: TimestampMs | None = None
    """When it became abandoned; kept if it ends later."""
    reason: str | None = None
    """Why it ended, if its runtime reported that."""

    @property
    def workflow_id(self) -> str:
        """Workflow as callers see it; never empty."""
        return self.workflow or DEFAULT_WORKFLOW

    @property
    def agent(self) -> str | None:
        """Id of the agent whose run this is."""
        return self.scope.name if self.scope.kind is ScopeKind.AGENT else None

    @property
    def has_ended(self) -> bool:
        return self.status is not RunStatus.RUNNING

    @property
    def accepts_writes(self) -> bool:
        """Whether its runtime may still write; that of an abandoned run may have come back."""
        return self.status in {RunStatus.RUNNING, RunStatus.ABANDONED}

    @property
    def workspace_layers(self) -> Snapshot:
        """Layers of the run's own workspace."""
        return tuple(layer for layer in self.snapshot if not self._is_attached(layer))

    @property
    def attached_layers(self) -> Snapshot:
        """Layers of the workspaces attached to the agent."""
        return tuple(layer for layer in self.snapshot if self._is_attached(layer))

    def _is_attached(self, layer: SnapshotLayer) -> bool:
        return self.scope.kind is ScopeKind.AGENT and layer.scope.kind is ScopeKind.WORKSPACE


def next_status(run: Run, status: RunStatus) -> RunStatus:
    """Return the status to store.

    Raises Conflict if the run ended with a different one. An abandoned run can still end.
    """
    ends_late = run.status is RunStatus.ABANDONED and status is not RunStatus.RUNNING
    if run.has_ended and status is not run.status and not ends_late:
        raise Conflict(f"the run is already {run.status}", status=run.status)
    return status


class RunFilter(Struct, frozen=True):
    """Conditions that all runs of a listing meet."""

    scope: Scope | None = None
    session: str | None = None
    """Needs the scope of its agent."""
    status: RunStatus | None = None
    start: TimestampMs = 0
    end: TimestampMs | None = None
    """Exclusive. The time of a run is that of its id."""

    @property
    def first_id(self) -> str:
        """Least id of the runs."""
        return _first_id(self.start) if self.start else ""

    def last_id(self, before: str) -> str:
        """Id that all runs are below, also below `before` if given."""
        bounds = [bound for bound in (before, _first_id(self.end)) if bound]
        return min(bounds, default="")


EVERY_RUN: Final = RunFilter()


def _first_id(at: TimestampMs | None) -> str:
    return "" if at is None else f"run_{max(at, 0) << _RANDOM_BITS:024x}"
