"""Runs: what was frozen, for whom, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from carrel.core.errors import Conflict
from carrel.core.identifiers import Scope, ScopeKind, TimestampMs


class RunStatus(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Audience(StrEnum):
    """Who is listening: one person, or several."""

    MAIN = "main"
    SHARED = "shared"


def mode_of(scope: str | None) -> Audience:
    """Main where nothing is said; anything that is not known is shared, which shows the least."""
    return Audience.MAIN if scope in {None, Audience.MAIN} else Audience.SHARED


class SnapshotLayer(Struct, frozen=True, gc=False):
    """One scope at one revision. A vector of these is a snapshot."""

    scope: Scope
    revision: int


Snapshot = tuple[SnapshotLayer, ...]
"""Nearest first. It costs one row a layer to take, and reads the same for ever."""

NOOP: Final = "conformance-noop"


class Run(Struct, frozen=True):
    id: str
    tenant: str
    scope: Scope
    """The workspace it belongs to: the nearest layer of its stack."""
    workflow: str
    mode: Audience
    status: RunStatus
    by: str
    started: TimestampMs
    ended: TimestampMs | None = None
    parent: str | None = None
    replay_of: str | None = None
    snapshot_kept: bool = True
    """A run that is let go no longer holds back the pruning of what it saw."""
    snapshot: Snapshot = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    """What placeholders stood for when it was frozen."""

    @property
    def own(self) -> Snapshot:
        """The layers that its workspace is made of."""
        return tuple(layer for layer in self.snapshot if not self._is_attached(layer))

    @property
    def attached_layers(self) -> Snapshot:
        """The workspaces beside an agent's own, of which its prompt tells."""
        return tuple(layer for layer in self.snapshot if self._is_attached(layer))

    def _is_attached(self, layer: SnapshotLayer) -> bool:
        return self.scope.kind is ScopeKind.AGENT and layer.scope.kind is ScopeKind.WORKSPACE


def settled(run: Run, status: RunStatus) -> RunStatus:
    """The status it moves to; an ended run stays as it ended."""
    if run.status is not RunStatus.RUNNING and status is not run.status:
        raise Conflict(f"the run has {run.status}", status=run.status)
    return status
