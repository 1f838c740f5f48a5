"""What the schema's types of files, versions and runs are made from."""

from __future__ import annotations

from msgspec import Struct

from carrel.actions.files import history
from carrel.actions.runs.diff import Difference
from carrel.core.identifiers import ScopeKind, Stack, TimestampMs
from carrel.core.overlay import compose
from carrel.core.overlay.file_classes import FileClass
from carrel.core.runs import Audience, Run, RunStatus
from carrel.core.store.tree import Version
from carrel.server.graphql.types import hex_of


class File(Struct, frozen=True, eq=False):
    """A file as a place, or as a run, shows it."""

    shown: compose.File
    stack: Stack
    run: Run | None
    path: str
    source: str
    file_class: FileClass
    sha256: str
    update_available: bool
    version: int
    etag: str
    size: int
    content_type: str
    updated_at: TimestampMs

    @classmethod
    def of(cls, file: compose.File, stack: Stack, run: Run | None = None) -> File:
        return cls(
            shown=file,
            stack=stack,
            run=run,
            path=file.path.text,
            source=file.origin or file.source.kind,
            file_class=file.file_class,
            sha256=hex_of(file.blob),
            update_available=file.upstream is not None,
            version=file.head.version,
            etag=file.etag,
            size=file.blob.size,
            content_type=file.entry.type,
            updated_at=file.head.at,
        )


class WriteResult(Struct, frozen=True):
    file: File
    warnings: tuple[str, ...]
    redacted: tuple[str, ...]


class VersionRow(Struct, frozen=True):
    version: int
    author: str
    reason: str
    run_id: str | None
    at: TimestampMs
    deleted: bool
    size: int | None
    sha256: str | None
    content_type: str | None

    @classmethod
    def of(cls, version: Version) -> VersionRow:
        head, entry = version.head, version.head.entry
        return cls(
            version=head.version,
            author=version.by,
            reason=version.why,
            run_id=version.run,
            at=head.at,
            deleted=entry is None,
            size=entry.blob.size if entry else None,
            sha256=hex_of(entry.blob) if entry else None,
            content_type=entry.type if entry else None,
        )


class LayerEntry(Struct, frozen=True):
    kind: str
    name: str
    version: int | None
    sha256: str | None
    base_sha256: str | None

    @classmethod
    def of(cls, said: history.LayerEntry) -> LayerEntry:
        entry = said.head.entry if said.head else None
        return cls(
            kind=said.scope.kind,
            name=said.scope.name,
            version=said.head.version if said.head else None,
            sha256=hex_of(entry.blob) if entry else None,
            base_sha256=hex_of(entry.base) if entry and entry.base else None,
        )


class Explanation(Struct, frozen=True):
    path: str
    source: str | None
    why: str
    layers: list[LayerEntry]


class RunRow(Struct, frozen=True):
    run: Run
    id: str
    workflow_id: str
    status: RunStatus
    scope: Audience
    by: str
    agent_id: str | None
    parent_run_id: str | None
    replay_of: str | None
    started_at: TimestampMs
    ended_at: TimestampMs | None
    kept: bool

    @classmethod
    def of(cls, run: Run) -> RunRow:
        return cls(
            run=run,
            id=run.id,
            workflow_id=run.workflow,
            status=run.status,
            scope=run.mode,
            by=run.by,
            agent_id=run.scope.name if run.scope.kind is ScopeKind.AGENT else None,
            parent_run_id=run.parent,
            replay_of=run.replay_of,
            started_at=run.started,
            ended_at=run.ended,
            kept=run.snapshot_kept,
        )


class RunChange(Struct, frozen=True):
    path: str
    change: str
    before_version: int | None
    after_version: int | None

    @classmethod
    def of(cls, difference: Difference) -> RunChange:
        before, after = difference.before, difference.after
        return cls(
            path=difference.path.text,
            change=difference.kind,
            before_version=before.head.version if before else None,
            after_version=after.head.version if after else None,
        )
