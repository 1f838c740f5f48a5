"""Runs in SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from json.encoder import encode_basestring_ascii as quoted
from sqlite3 import Connection

from msgspec.structs import replace

from carrel.adapters.sqlite.commit_batch import CommitBatch
from carrel.adapters.sqlite.database import SQL, transaction
from carrel.adapters.sqlite.reader import Reader
from carrel.adapters.sqlite.rows import Row, names, scope_of
from carrel.adapters.sqlite.writer import Writer
from carrel.core.identifiers import Scope
from carrel.core.runs import Audience, Run, RunStatus, SnapshotLayer
from carrel.core.store.event import RUN_ENDED, RUN_STARTED


class SqliteRuns:
    def __init__(self, reader: Reader, writer: Writer) -> None:
        self._reader, self._writer = reader, writer

    async def start(
        self, runs: Sequence[tuple[Run, Sequence[Scope | SnapshotLayer]]]
    ) -> tuple[Run, ...]:
        return await self._writer.submit(
            lambda db, batch: tuple(_start(db, batch, *r) for r in runs)
        )

    async def get(self, tenant: str, ids: Sequence[str]) -> tuple[Run | None, ...]:
        if len(ids) == 1:  # Every read of a run's file asks for the run.
            return self._reader.cached(("run", tenant, ids[0]), lambda _: self._get(tenant, ids))
        return self._get(tenant, ids)

    def _get(self, tenant: str, ids: Sequence[str]) -> tuple[Run | None, ...]:
        ask = (json.dumps(list(dict.fromkeys(ids))), tenant)
        found = {run.id: run for run in self._runs("runs", ask)}
        return tuple(found.get(id) for id in ids)

    async def list(
        self, tenant: str, *, scope: Scope | None = None, before: str = "", limit: int = 100
    ) -> tuple[Run, ...]:
        within = (scope.kind, scope.name) if scope else (None, None)
        ask = (tenant, before or "~", limit, *within)
        return self._runs("runs_listed", ask)

    async def newest(self, tenant: str, scopes: Sequence[Scope]) -> tuple[Run | None, ...]:
        ask = (names(dict.fromkeys(scopes)), tenant)
        found = {run.scope: run for run in self._runs("newest_runs", ask)}
        return tuple(found.get(scope) for scope in scopes)

    async def change(self, run: Run, was: Run) -> bool:
        return await self._writer.submit(lambda db, batch: _change(db, batch, run, was))

    def _runs(self, statement: str, ask: Row) -> tuple[Run, ...]:
        """Runs with their layers, both as of one moment."""
        layers: dict[str, list[SnapshotLayer]] = {}
        with transaction(self._reader.db, "DEFERRED") as db:
            rows = db.execute(SQL[statement], ask).fetchall()
            ids = json.dumps([row[0] for row in rows])
            for id, tenant, kind, name, revision in db.execute(SQL["layers"], (ids,)).fetchall():
                layers.setdefault(id, []).append(
                    SnapshotLayer(scope_of(tenant, kind, name), revision)
                )
        return tuple(_run(row, tuple(layers.get(row[0], ()))) for row in rows)


def _run(row: Row, layers: tuple[SnapshotLayer, ...]) -> Run:
    id, tenant, kind, name, workflow, mode, status, author, started, ended = row[:10]
    parent, replay_of, kept, variables = row[10:]
    return Run(
        id=id,
        tenant=tenant,
        scope=scope_of(tenant, kind, name),
        workflow=workflow,
        mode=Audience(mode),
        status=RunStatus(status),
        by=author,
        started=started,
        ended=ended,
        parent=parent,
        replay_of=replay_of,
        snapshot_kept=bool(kept),
        snapshot=layers,
        variables=json.loads(variables),
    )


def _start(
    db: Connection, batch: CommitBatch, run: Run, layers: Sequence[Scope | SnapshotLayer]
) -> Run:
    frozen = tuple(
        layer
        if isinstance(layer, SnapshotLayer)
        else SnapshotLayer(layer, batch.scope_state(layer).revision)
        for layer in layers
    )
    own = batch.settled(run.scope).id
    db.execute(
        SQL["add_run"],
        (
            *(run.id, run.tenant, own, run.workflow, run.mode, run.status, run.by),
            *(run.started, run.ended, run.parent, run.replay_of, _variables(run)),
        ),
    )
    for place, layer in enumerate(frozen):
        row = (run.id, place, batch.settled(layer.scope).id, layer.revision)
        db.execute(SQL["add_layer"], row)
    batch.add_event(run.tenant, own, run.id, 1, (RUN_STARTED, _payload(run), run.started))
    return replace(run, snapshot=frozen)


def _change(db: Connection, batch: CommitBatch, run: Run, was: Run) -> bool:
    ask = (
        run.status,
        run.ended,
        run.snapshot_kept,
        run.id,
        run.tenant,
        was.status,
        was.snapshot_kept,
    )
    if not db.execute(SQL["change_run"], ask).rowcount:
        return False
    if not run.snapshot_kept:
        db.execute(SQL["drop_layers"], (run.id,))
    if run.status is not was.status:
        sequence = batch.next_in_run(run.id, run.tenant)
        told = (RUN_ENDED[run.status], _payload(run), run.ended or run.started)
        batch.add_event(run.tenant, batch.settled(run.scope).id, run.id, sequence, told)
    return True


def _variables(run: Run) -> str:
    return json.dumps(dict(run.variables)) if run.variables else "{}"


def _payload(run: Run) -> str:
    named = f'"runId":{quoted(run.id)},"workflowId":{quoted(run.workflow)}'
    return f'{{{named},"status":"{run.status}"}}'
