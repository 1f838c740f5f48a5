"""Runs in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import asyncpg
from msgspec.structs import replace

from carrel.adapters.postgres.advisory_locks import in_order, lock_of, run_name, scope_name
from carrel.adapters.postgres.database import Database, searchable_text
from carrel.adapters.postgres.event_notifier import EventNotifier
from carrel.adapters.postgres.rows import Row, columns, from_json, scope_of, to_json
from carrel.core.errors import Conflict
from carrel.core.identifiers import Scope
from carrel.core.runs import Audience, Run, RunStatus, Snapshot, SnapshotLayer
from carrel.core.store.event import RUN_ENDED


class PostgresRuns:
    def __init__(self, database: Database, bell: EventNotifier) -> None:
        self._database, self._bell = database, bell

    async def start(
        self, runs: Sequence[tuple[Run, Sequence[Scope | SnapshotLayer]]]
    ) -> tuple[Run, ...]:
        if not runs:
            return ()
        places = _places(runs)
        scopes = [(scope.tenant, scope.kind, scope.name) for scope in places]
        layers = [_layer(run, n, layer, places) for run, own in runs for n, layer in enumerate(own)]
        rows = [_row(run, places) for run, _ in runs]
        locks = [lock for lock, _ in in_order((), list(map(scope_name, places)))]
        ask = (*columns(scopes, 3), *columns(rows, 14), *columns(layers, 4))
        try:
            revisions = await self._database.value("start_runs", locks, *ask)
        except asyncpg.UniqueViolationError as error:
            raise Conflict("there already is a run of that id") from error
        self._bell.ring()
        now = {scope: revisions[place - 1] for scope, place in places.items()}
        return tuple(
            replace(run, snapshot=_frozen(layers, now), variables={**run.variables})
            for run, layers in runs
        )

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Run | None, ...]:
        wanted = [searchable_text(id) for id in ids]
        found = {row[0]: _run(row) for row in await self._database.rows("runs", tenant, wanted)}
        return tuple(found.get(id) for id in ids)

    async def list(
        self, tenant: str, *, scope: Scope | None = None, before: str = "", limit: int = 100
    ) -> tuple[Run, ...]:
        ask = (tenant, before or None, limit)
        if scope is None:
            rows = await self._database.rows("runs_listed", *ask)
        else:
            name = (scope.tenant, scope.kind, scope.name)
            rows = await self._database.rows("runs_of_scope", *ask, *name)
        return tuple(map(_run, rows))

    async def newest(self, tenant: str, scopes: Sequence[Scope]) -> tuple[Run | None, ...]:
        asked = columns([(scope.tenant, scope.kind, scope.name) for scope in scopes], 3)
        rows = await self._database.rows("newest_runs", tenant, *asked)
        found = {run.scope: run for run in map(_run, rows)}
        return tuple(found.get(scope) for scope in scopes)

    async def change(self, run: Run, was: Run) -> bool:
        told = None if run.status is was.status else RUN_ENDED[run.status]
        changed: bool = await self._database.value(
            "change_run",
            lock_of(run_name(run.id)),
            *(run.id, run.tenant, was.status, was.ended, int(was.snapshot_kept)),
            *(run.status, run.ended, int(run.snapshot_kept)),
            *(told, _payload(run), run.started if run.ended is None else run.ended),
        )
        if changed and told:
            self._bell.ring()
        return changed


def _places(runs: Sequence[tuple[Run, Sequence[Scope | SnapshotLayer]]]) -> Mapping[Scope, int]:
    """Every scope that is spoken of, and its place among them, from 1."""
    own = {run.scope for run, _ in runs}
    beneath = {_scope(layer) for _, layers in runs for layer in layers}
    return {scope: n + 1 for n, scope in enumerate(sorted(own | beneath))}


def _scope(layer: Scope | SnapshotLayer) -> Scope:
    return layer.scope if isinstance(layer, SnapshotLayer) else layer


def _row(run: Run, places: Mapping[Scope, int]) -> Row:
    return (
        *(run.id, run.tenant, places[run.scope], run.workflow, run.mode, run.status, run.by),
        *(run.started, run.ended, run.parent, run.replay_of, int(run.snapshot_kept)),
        *(to_json(dict(run.variables)), _payload(run)),
    )


def _layer(run: Run, place: int, layer: Scope | SnapshotLayer, places: Mapping[Scope, int]) -> Row:
    revision = layer.revision if isinstance(layer, SnapshotLayer) else None
    return run.id, place, places[_scope(layer)], revision


def _frozen(layers: Sequence[Scope | SnapshotLayer], now: Mapping[Scope, int]) -> Snapshot:
    return tuple(
        layer if isinstance(layer, SnapshotLayer) else SnapshotLayer(layer, now[layer])
        for layer in layers
    )


def _payload(run: Run) -> str:
    return to_json({"runId": run.id, "workflowId": run.workflow, "status": run.status})


def _run(row: Row) -> Run:
    layers = from_json(row[15]) if row[15] else ()
    return Run(
        id=row[0],
        tenant=row[1],
        scope=scope_of(*row[2:5]),
        workflow=row[5],
        mode=Audience(row[6]),
        status=RunStatus(row[7]),
        by=row[8],
        started=row[9],
        ended=row[10],
        parent=row[11],
        replay_of=row[12],
        snapshot_kept=bool(row[13]),
        snapshot=tuple(SnapshotLayer(scope_of(*name), revision) for *name, revision in layers),
        variables=from_json(row[14]),
    )
