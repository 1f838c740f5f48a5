"""Classes of the schema's file, version and run types."""

from __future__ import annotations

from msgspec import Struct

from carrel.actions.files import history
from carrel.actions.files.commit_results import ChangeResult
from carrel.actions.overlay.stack_versions import StackVersion
from carrel.actions.runs.diff import Difference
from carrel.core.identifiers import ScopeKind, Stack, TimestampMs
from carrel.core.overlay import compose
from carrel.core.overlay.file_changes import ChangeKind
from carrel.core.overlay.file_classes import FileClass
from carrel.core.runs import Audience, Run, RunStatus
from carrel.server.graphql.types import hex_digest


class FileType(Struct, frozen=True, eq=False):
    """A file of a stack or of a run's snapshot."""

    composed: compose.File
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
    inherited_only: bool = False
    """Whether only the current content is open to the caller."""

    @classmethod
    def from_file(cls, file: compose.File, stack: Stack, run: Run | None = None) -> FileType:
        return cls(
            composed=file,
            stack=stack,
            run=run,
            path=file.path.text,
            source=file.source_label or file.source.kind,
            file_class=file.file_class,
            sha256=hex_digest(file.blob),
            update_available=file.has_update,
            version=file.version,
            etag=file.etag,
            size=file.blob.size,
            content_type=file.entry.type,
            updated_at=file.head.at,
        )


class SkillType(Struct, frozen=True):
    """A skill of a stack."""

    name: str
    description: str
    valid: bool
    problems: tuple[str, ...]
    digest: str
    files: tuple[FileType, ...]


class WriteResultType(Struct, frozen=True):
    file: FileType
    warnings: tuple[str, ...]
    redacted: tuple[str, ...]


class ChangedFileType(Struct, frozen=True):
    """What one path of a commit became."""

    index: int
    change: ChangeKind
    path: str
    moved_from: str | None
    version: int | None
    file: FileType | None
    redacted: tuple[str, ...]
    warnings: tuple[str, ...]

    @classmethod
    def from_result(cls, result: ChangeResult, stack: Stack) -> ChangedFileType:
        redaction = result.redaction
        return cls(
            index=result.index,
            change=result.kind,
            path=result.path.text,
            moved_from=None if result.source is None else result.source.text,
            version=result.version or None,
            file=None if result.file is None else FileType.from_file(result.file, stack),
            redacted=redaction.replaced if redaction else (),
            warnings=redaction.warned if redaction else (),
        )


class CommitResultType(Struct, frozen=True):
    revision: int
    changes: tuple[ChangedFileType, ...]


class VersionType(Struct, frozen=True):
    version: int
    layer: str
    author: str
    reason: str
    run_id: str | None
    at: TimestampMs
    deleted: bool
    size: int | None
    sha256: str | None
    content_type: str | None

    @classmethod
    def from_version(cls, version: StackVersion) -> VersionType:
        row, head, entry = version.row, version.row.head, version.row.head.entry
        return cls(
            version=version.number,
            layer=version.layer.kind,
            author=row.author,
            reason=row.reason,
            run_id=row.run,
            at=head.at,
            deleted=entry is None,
            size=entry.blob.size if entry else None,
            sha256=hex_digest(entry.blob) if entry else None,
            content_type=entry.type if entry else None,
        )


class LayerEntryType(Struct, frozen=True):
    kind: str
    name: str
    version: int | None
    sha256: str | None
    base_sha256: str | None

    @classmethod
    def from_layer(cls, layer: history.LayerEntry) -> LayerEntryType:
        entry = layer.head.entry if layer.head else None
        return cls(
            kind=layer.scope.kind,
            name=layer.scope.name,
            version=layer.head.stack_version if layer.head else None,
            sha256=hex_digest(entry.blob) if entry else None,
            base_sha256=hex_digest(entry.base) if entry and entry.base else None,
        )


class ExplanationType(Struct, frozen=True):
    path: str
    source: str | None
    why: str
    layers: list[LayerEntryType]


class RunType(Struct, frozen=True):
    run: Run
    id: str
    workflow_id: str
    status: RunStatus
    scope: Audience
    by: str
    agent_id: str | None
    parent_run_id: str | None
    replay_of: str | None
    session_id: str | None
    started_at: TimestampMs
    ended_at: TimestampMs | None
    kept: bool

    @classmethod
    def from_run(cls, run: Run) -> RunType:
        return cls(
            run=run,
            id=run.id,
            workflow_id=run.workflow_id,
            status=run.status,
            scope=run.mode,
            by=run.author,
            agent_id=run.scope.name if run.scope.kind is ScopeKind.AGENT else None,
            parent_run_id=run.parent,
            replay_of=run.replay_of,
            session_id=run.session,
            started_at=run.started_at,
            ended_at=run.ended_at,
            kept=run.snapshot_kept,
        )


class RunChangeType(Struct, frozen=True):
    path: str
    change: str
    before_version: int | None
    after_version: int | None

    @classmethod
    def from_difference(cls, difference: Difference) -> RunChangeType:
        before, after = difference.before, difference.after
        return cls(
            path=difference.path.text,
            change=difference.kind,
            before_version=before.version if before else None,
            after_version=after.version if after else None,
        )
