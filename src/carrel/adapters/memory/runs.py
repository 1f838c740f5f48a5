"""Runs in a dictionary, each with its layers inside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from msgspec.structs import replace

from carrel.adapters.memory.state import MemoryState
from carrel.core.errors import Conflict
from carrel.core.identifiers import Scope
from carrel.core.runs import Run, SnapshotLayer
from carrel.core.store.event import RUN_ENDED, RUN_STARTED


class MemoryRuns:
    def __init__(self, state: MemoryState) -> None:
        self._state = state

    async def start(
        self, runs: Sequence[tuple[Run, Sequence[Scope | SnapshotLayer]]]
    ) -> tuple[Run, ...]:
        for run, _ in runs:
            if run.id in self._state.runs:
                raise Conflict(f"there already is a run {run.id}")
        return tuple(self._started(run, layers) for run, layers in runs)

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Run | None, ...]:
        found = (self._state.runs.get(id) for id in ids)
        return tuple(run if run and run.tenant == tenant else None for run in found)

    async def list(
        self, tenant: str, *, scope: Scope | None = None, before: str = "", limit: int = 100
    ) -> tuple[Run, ...]:
        newest = (self._state.runs[id] for id in sorted(self._state.runs, reverse=True))
        wanted = (
            run
            for run in newest
            if run.tenant == tenant
            and (scope is None or run.scope == scope)
            and (not before or run.id < before)
        )
        return tuple(islice(wanted, limit))

    async def newest(self, tenant: str, scopes: Sequence[Scope]) -> tuple[Run | None, ...]:
        ours = [run for run in self._state.runs.values() if run.tenant == tenant]
        found = {run.scope: run for run in sorted(ours, key=lambda run: run.id)}
        return tuple(found.get(scope) for scope in scopes)

    async def change(self, run: Run, was: Run) -> bool:
        found = self._state.runs.get(run.id)
        if found is None or _state(found) != _state(was):
            return False
        snapshot = found.snapshot if run.snapshot_kept else ()
        self._state.runs[run.id] = replace(
            found,
            status=run.status,
            ended=run.ended,
            snapshot_kept=run.snapshot_kept,
            snapshot=snapshot,
        )
        if run.status is not found.status:
            at = found.started if run.ended is None else run.ended
            self._state.log(RUN_ENDED[run.status], found.scope, at, _told(run), run.id)
        return True

    def _started(self, run: Run, layers: Sequence[Scope | SnapshotLayer]) -> Run:
        started = replace(
            run,
            snapshot=tuple(self._frozen(layer) for layer in layers),
            variables={**run.variables},
        )
        self._state.runs[run.id] = started
        self._state.log(RUN_STARTED, run.scope, run.started, _told(run), run.id)
        return started

    def _frozen(self, layer: Scope | SnapshotLayer) -> SnapshotLayer:
        if isinstance(layer, SnapshotLayer):
            return layer
        return SnapshotLayer(layer, self._state.told(layer).revision)


def _told(run: Run) -> Mapping[str, str]:
    return {"runId": run.id, "workflowId": run.workflow, "status": str(run.status)}


def _state(run: Run) -> tuple[object, ...]:
    return run.tenant, run.status, run.ended, run.snapshot_kept
