"""Runs: what was frozen, for whom, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from carrel.core.errors import Taken
from carrel.core.identifiers import Kind, Moment, Scope


class Status(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Mode(StrEnum):
    """Who is listening: one person, or several."""

    MAIN = "main"
    SHARED = "shared"


def mode_of(scope: str | None) -> Mode:
    """Main where nothing is said; anything that is not known is shared, which shows the least."""
    return Mode.MAIN if scope in {None, Mode.MAIN} else Mode.SHARED


class Layer(Struct, frozen=True, gc=False):
    """One scope at one revision. A vector of these is a snapshot."""

    scope: Scope
    revision: int


Snapshot = tuple[Layer, ...]
"""Nearest first. It costs one row a layer to take, and reads the same for ever."""

NOOP: Final = "conformance-noop"


class Run(Struct, frozen=True):
    id: str
    tenant: str
    scope: Scope
    """The workspace it belongs to: the nearest layer of its stack."""
    workflow: str
    mode: Mode
    status: Status
    by: str
    started: Moment
    ended: Moment | None = None
    parent: str | None = None
    replay_of: str | None = None
    kept: bool = True
    """A run that is let go no longer holds back the pruning of what it saw."""
    snapshot: Snapshot = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    """What placeholders stood for when it was frozen."""

    @property
    def own(self) -> Snapshot:
        """The layers that its workspace is made of."""
        return tuple(layer for layer in self.snapshot if not self._is_attached(layer))

    @property
    def attached(self) -> Snapshot:
        """The workspaces beside an agent's own, of which its prompt tells."""
        return tuple(layer for layer in self.snapshot if self._is_attached(layer))

    def _is_attached(self, layer: Layer) -> bool:
        return self.scope.kind is Kind.AGENT and layer.scope.kind is Kind.WORKSPACE


def settled(run: Run, status: Status) -> Status:
    """The status it moves to; an ended run stays as it ended."""
    if run.status is not Status.RUNNING and status is not run.status:
        raise Taken(f"the run has {run.status}", status=run.status)
    return status
