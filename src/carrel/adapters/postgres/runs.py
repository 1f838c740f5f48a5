"""Runs and their snapshots in PostgreSQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import asyncpg
from msgspec.structs import replace

from carrel.adapters.postgres.advisory_locks import (
    lock_number,
    ordered_locks,
    run_lock_name,
    scope_lock_name,
)
from carrel.adapters.postgres.database import Database, searchable_text
from carrel.adapters.postgres.event_notifier import EventNotifier
from carrel.adapters.postgres.idempotency import mark_columns
from carrel.adapters.postgres.rows import Row, from_json, scope_from_row, to_json, transpose
from carrel.core.errors import Conflict
from carrel.core.identifiers import Scope, TimestampMs
from carrel.core.runs import EVERY_RUN, Audience, Run, RunFilter, RunStatus, Snapshot, SnapshotLayer
from carrel.core.store.event import RUN_ENDED_BY_STATUS
from carrel.core.store.idempotency import IdempotencyKey, number_from_id
from carrel.ports import request_scope

MAX_REVISION: Final = 2**62


class PostgresRuns:
    def __init__(self, database: Database, notifier: EventNotifier) -> None:
        self._database, self._notifier = database, notifier

    async def start(
        self,
        runs: Sequence[tuple[Run, Sequence[Scope | SnapshotLayer]]],
        idempotency_key: IdempotencyKey | None = None,
    ) -> tuple[Run, ...]:
        if not runs:
            return ()
        scope_indexes = _scope_indexes(runs)
        scopes = [(scope.tenant, scope.kind, scope.name) for scope in scope_indexes]
        layers = [
            _layer_to_row(run, position, layer, scope_indexes)
            for run, run_layers in runs
            for position, layer in enumerate(run_layers)
        ]
        rows = [_run_to_row(run, scope_indexes) for run, _ in runs]
        locks = [lock for lock, _ in ordered_locks((), list(map(scope_lock_name, scope_indexes)))]
        mark = mark_columns(idempotency_key, (number_from_id(run.id) for run, _ in runs))
        parameters = (*transpose(scopes, 3), *transpose(rows, 16), *transpose(layers, 4), *mark)
        try:
            revisions = await self._database.value("start_runs", locks, *parameters)
        except asyncpg.UniqueViolationError as error:
            raise Conflict("run id is already in use") from error
        finally:
            if scope := request_scope.current():
                scope.end_revision()
        self._notifier.notify()
        current_revisions = {scope: revisions[index - 1] for scope, index in scope_indexes.items()}
        return tuple(
            replace(run, snapshot=_snapshot(layers, current_revisions), variables={**run.variables})
            for run, layers in runs
        )

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Run | None, ...]:
        requested = [searchable_text(id) for id in ids]
        by_id = {
            row[0]: _run_from_row(row)
            for row in await self._database.rows("runs", tenant, requested)
        }
        return tuple(by_id.get(id) for id in ids)

    async def list(
        self,
        tenant: str,
        filter: RunFilter = EVERY_RUN,
        *,
        before: str = "",
        limit: int = 100,
    ) -> tuple[Run, ...]:
        statement, _, parameters = _listing(tenant, filter, before)
        rows = await self._database.rows(statement, *parameters, limit)
        return tuple(map(_run_from_row, rows))

    async def count(self, tenant: str, filter: RunFilter) -> int:
        _, statement, parameters = _listing(tenant, filter)
        [row] = await self._database.rows(statement, *parameters)
        return int(row[0])

    async def list_with_layer(
        self,
        layer: Scope,
        revisions: tuple[int, int | None],
        *,
        scope: Scope | None = None,
        before: str = "",
        limit: int = 100,
    ) -> tuple[Run, ...]:
        first, end = revisions
        scope_filter = (scope.kind, scope.name) if scope else (None, None)
        parameters = (
            *(layer.tenant, layer.kind, layer.name, first, end or MAX_REVISION),
            *(before or None, limit, *scope_filter),
        )
        rows = await self._database.rows("runs_with_layer", *parameters)
        return tuple(map(_run_from_row, rows))

    async def newest_by_scope(self, tenant: str, scopes: Sequence[Scope]) -> tuple[Run | None, ...]:
        columns = transpose([(scope.tenant, scope.kind, scope.name) for scope in scopes], 3)
        rows = await self._database.rows("newest_runs", tenant, *columns)
        newest = {run.scope: run for run in map(_run_from_row, rows)}
        return tuple(newest.get(scope) for scope in scopes)

    async def record_prompts(self, sizes: Sequence[tuple[Run, Mapping[str, int]]]) -> None:
        rows = [(to_json(dict(values)), run.tenant, run.id) for run, values in sizes]
        if rows:
            await self._database.rows("record_prompts", *transpose(rows, 3))

    async def update(self, run: Run, expected: Run) -> bool:
        event_type = None if run.status is expected.status else RUN_ENDED_BY_STATUS[run.status]
        changed: bool = await self._database.value(
            "update_run",
            lock_number(run_lock_name(run.id)),
            *(run.id, run.tenant, expected.status, expected.ended_at, int(expected.snapshot_kept)),
            expected.reported_at if run.status is RunStatus.ABANDONED else None,
            *(run.status, run.ended_at, int(run.snapshot_kept)),
            *(run.abandoned_at, run.reason),
            *(
                event_type,
                _event_payload(run),
                run.started_at if run.ended_at is None else run.ended_at,
            ),
        )
        if changed and event_type:
            self._notifier.notify()
        return changed

    async def report(self, tenant: str, ids: Sequence[str], at: TimestampMs) -> None:
        if ids:
            await self._database.rows("report_runs", tenant, list(ids), at)
            if scope := request_scope.current():
                scope.end_revision()

    async def list_unreported(self, before: TimestampMs, *, limit: int = 100) -> tuple[Run, ...]:
        rows = await self._database.rows("unreported_runs", before, limit)
        return tuple(map(_run_from_row, rows))


def _listing(tenant: str, filter: RunFilter, before: str = "") -> tuple[str, str, Row]:
    """Statements that list and count runs by an index, and their parameters."""
    parameters: Row = (tenant, filter.first_id, filter.last_id(before) or "~")
    if filter.scope is not None:
        scope = filter.scope
        conditions = (scope.tenant, scope.kind, scope.name, filter.session, filter.status)
        return "list_runs_of_scope", "count_runs_of_scope", (*parameters, *conditions)
    if filter.status is not None:
        return "list_runs_by_status", "count_runs_by_status", (*parameters, filter.status)
    return "list_runs", "count_runs", parameters


def _scope_indexes(
    runs: Sequence[tuple[Run, Sequence[Scope | SnapshotLayer]]],
) -> Mapping[Scope, int]:
    """Return each scope of the runs with its index, from 1."""
    run_scopes = {run.scope for run, _ in runs}
    layer_scopes = {_scope(layer) for _, layers in runs for layer in layers}
    return {scope: index + 1 for index, scope in enumerate(sorted(run_scopes | layer_scopes))}


def _scope(layer: Scope | SnapshotLayer) -> Scope:
    return layer.scope if isinstance(layer, SnapshotLayer) else layer


def _run_to_row(run: Run, scope_indexes: Mapping[Scope, int]) -> Row:
    return (
        *(
            run.id,
            run.tenant,
            scope_indexes[run.scope],
            run.workflow,
            run.mode,
            run.status,
            run.author,
        ),
        *(run.started_at, run.ended_at, run.parent, run.replay_of, int(run.snapshot_kept)),
        *(to_json(dict(run.variables)), _event_payload(run), run.session, run.reported_at),
    )


def _layer_to_row(
    run: Run, position: int, layer: Scope | SnapshotLayer, scope_indexes: Mapping[Scope, int]
) -> Row:
    revision = layer.revision if isinstance(layer, SnapshotLayer) else None
    return run.id, position, scope_indexes[_scope(layer)], revision


def _snapshot(
    layers: Sequence[Scope | SnapshotLayer], current_revisions: Mapping[Scope, int]
) -> Snapshot:
    return tuple(
        layer
        if isinstance(layer, SnapshotLayer)
        else SnapshotLayer(layer, current_revisions[layer])
        for layer in layers
    )


def _event_payload(run: Run) -> str:
    return to_json({"runId": run.id, "workflowId": run.workflow_id, "status": run.status})


def _run_from_row(row: Row) -> Run:
    *row, layers_json = row
    layers = from_json(layers_json) if layers_json else ()
    return Run(
        id=row[0],
        tenant=row[1],
        scope=scope_from_row(*row[2:5]),
        workflow=row[5],
        mode=Audience(row[6]),
        status=RunStatus(row[7]),
        author=row[8],
        started_at=row[9],
        ended_at=row[10],
        parent=row[11],
        replay_of=row[12],
        snapshot_kept=bool(row[13]),
        snapshot=tuple(
            SnapshotLayer(scope_from_row(*name), revision) for *name, revision in layers
        ),
        variables=from_json(row[14]),
        session=row[15],
        reported_at=row[16],
        abandoned_at=row[17],
        reason=row[18],
    )
