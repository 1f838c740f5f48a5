"""Runs and their snapshots in SQLite."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring_ascii as quoted
from sqlite3 import Connection
from typing import Final

from msgspec.structs import replace

from carrel.adapters.sqlite.commit_batch import CommitBatch
from carrel.adapters.sqlite.damage import undecodable_row
from carrel.adapters.sqlite.database import STATEMENTS, transaction
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.rows import Row, scope_from_row, scopes_to_json
from carrel.adapters.sqlite.writer import Writer
from carrel.core.identifiers import Scope, TimestampMs
from carrel.core.runs import EVERY_RUN, Audience, Run, RunFilter, RunStatus, SnapshotLayer
from carrel.core.store.event import RUN_ENDED_BY_STATUS, RUN_STARTED
from carrel.core.store.idempotency import IdempotencyKey, number_from_id

MAX_REVISION: Final = 2**62


class SqliteRuns:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    async def start(
        self,
        runs: Sequence[tuple[Run, Sequence[Scope | SnapshotLayer]]],
        idempotency_key: IdempotencyKey | None = None,
    ) -> tuple[Run, ...]:
        def start(db: Connection, batch: CommitBatch) -> tuple[Run, ...]:
            batch.mark_key(idempotency_key, (number_from_id(run.id) for run, _ in runs))
            return tuple(_start_run(db, batch, *r) for r in runs)

        return await self._writer.submit(start)

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Run | None, ...]:
        if len(ids) == 1:  # every read of a file in a run reads the run
            return self._reader.get_or_query(
                ("run", tenant, ids[0]), lambda _: self._read_by_id(tenant, ids)
            )
        return self._read_by_id(tenant, ids)

    def _read_by_id(self, tenant: str, ids: Sequence[str]) -> tuple[Run | None, ...]:
        parameters = (json.dumps(list(dict.fromkeys(ids))), tenant)
        by_id = {run.id: run for run in self._read_runs("runs", parameters)}
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
        return self._read_runs(statement, (*parameters, limit))

    async def count(self, tenant: str, filter: RunFilter) -> int:
        _, statement, parameters = _listing(tenant, filter)
        row = await self._reader.scan(
            lambda db: db.execute(STATEMENTS[statement], parameters).fetchone()
        )
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
            *(before or "~", limit, *scope_filter),
        )
        return self._read_runs("runs_with_layer", parameters)

    async def newest_by_scope(self, tenant: str, scopes: Sequence[Scope]) -> tuple[Run | None, ...]:
        ask = (scopes_to_json(dict.fromkeys(scopes)), tenant)
        newest = {run.scope: run for run in self._read_runs("newest_runs", ask)}
        return tuple(newest.get(scope) for scope in scopes)

    async def record_prompts(self, sizes: Sequence[tuple[Run, Mapping[str, int]]]) -> None:
        rows = [(json.dumps(dict(values)), run.tenant, run.id) for run, values in sizes]
        await self._writer.submit(
            lambda db, _: db.executemany(STATEMENTS["record_prompt"], rows) and None
        )

    async def update(self, run: Run, expected: Run) -> bool:
        return await self._writer.submit(lambda db, batch: _change_run(db, batch, run, expected))

    async def report(self, tenant: str, ids: Sequence[str], at: TimestampMs) -> None:
        def report(db: Connection, _: CommitBatch) -> None:
            db.executemany(STATEMENTS["report_run"], [(tenant, id, at) for id in ids])

        if ids:
            await self._writer.submit(report)

    async def list_unreported(self, before: TimestampMs, *, limit: int = 100) -> tuple[Run, ...]:
        return self._read_runs("unreported_runs", (before, limit))

    def _read_runs(self, statement: str, parameters: Row) -> tuple[Run, ...]:
        """Return runs with their layers, read in one transaction."""
        layers: dict[str, list[SnapshotLayer]] = {}
        with transaction(self._reader.db, "DEFERRED") as db:
            rows = db.execute(STATEMENTS[statement], parameters).fetchall()
            ids = json.dumps([row[0] for row in rows])
            for id, tenant, kind, name, revision in db.execute(
                STATEMENTS["run_layers"], (ids,)
            ).fetchall():
                layers.setdefault(id, []).append(
                    SnapshotLayer(scope_from_row(tenant, kind, name), revision)
                )
        return tuple(_run_from_row(row, tuple(layers.get(row[0], ()))) for row in rows)


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


def _run_from_row(row: Row, layers: tuple[SnapshotLayer, ...]) -> Run:
    id, tenant, kind, name, workflow, mode, status, author, started_at, ended_at = row[:10]
    parent, replay_of, snapshot_kept, variables_json, session = row[10:15]
    try:
        variables = json.loads(variables_json)
    except ValueError as error:
        raise undecodable_row("run", id) from error
    return Run(
        id=id,
        tenant=tenant,
        scope=scope_from_row(tenant, kind, name),
        workflow=workflow,
        mode=Audience(mode),
        status=RunStatus(status),
        author=author,
        started_at=started_at,
        ended_at=ended_at,
        parent=parent,
        replay_of=replay_of,
        snapshot_kept=bool(snapshot_kept),
        snapshot=layers,
        variables=variables,
        session=session,
        reported_at=row[15],
        abandoned_at=row[16],
        reason=row[17],
    )


def _start_run(
    db: Connection, batch: CommitBatch, run: Run, layers: Sequence[Scope | SnapshotLayer]
) -> Run:
    frozen = tuple(
        layer
        if isinstance(layer, SnapshotLayer)
        else SnapshotLayer(layer, batch.scope_state(layer).revision)
        for layer in layers
    )
    scope_id = batch.ensure_scope(run.scope).id
    db.execute(
        STATEMENTS["add_run"],
        (
            *(run.id, run.tenant, scope_id, run.workflow, run.mode, run.status, run.author),
            *(run.started_at, run.ended_at, run.parent, run.replay_of, _variables_to_json(run)),
            *(run.session, run.reported_at),
        ),
    )
    for position, layer in enumerate(frozen):
        row = (run.id, position, batch.ensure_scope(layer.scope).id, layer.revision)
        db.execute(STATEMENTS["add_run_layer"], row)
    batch.add_event(
        run.tenant, scope_id, run.id, 1, (RUN_STARTED, _event_payload(run), run.started_at)
    )
    return replace(run, snapshot=frozen)


def _change_run(db: Connection, batch: CommitBatch, run: Run, expected: Run) -> bool:
    parameters = (
        run.status,
        run.ended_at,
        run.snapshot_kept,
        run.abandoned_at,
        run.reason,
        run.id,
        run.tenant,
        expected.status,
        expected.snapshot_kept,
        expected.reported_at if run.status is RunStatus.ABANDONED else None,
    )
    if not db.execute(STATEMENTS["update_run"], parameters).rowcount:
        return False
    if not run.snapshot_kept:
        db.execute(STATEMENTS["delete_run_layers"], (run.id,))
    if run.status is not expected.status:
        sequence = batch.next_run_sequence(run.id, run.tenant, run.reported_at)
        event = (
            RUN_ENDED_BY_STATUS[run.status],
            _event_payload(run),
            run.ended_at or run.started_at,
        )
        batch.add_event(run.tenant, batch.ensure_scope(run.scope).id, run.id, sequence, event)
    return True


def _variables_to_json(run: Run) -> str:
    return json.dumps(dict(run.variables)) if run.variables else "{}"


def _event_payload(run: Run) -> str:
    fields = f'"runId":{quoted(run.id)},"workflowId":{quoted(run.workflow_id)}'
    return f'{{{fields},"status":"{run.status}"}}'
