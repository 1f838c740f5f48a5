"""Changes of files that are committed together: puts, deletes, moves, copies and directories."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from carrel.core.errors import (
    Conflict,
    Forbidden,
    NotFound,
    Refusal,
    ValidationError,
    WorkspaceConflict,
    WorkspaceTooLarge,
)
from carrel.core.identifiers import Path
from carrel.core.overlay.write_condition import UNCONDITIONAL, WriteCondition
from carrel.core.store.blob import Blob
from carrel.core.store.entry import FileAttributes

MAX_CHANGES: Final = 1000
"""Changes that one request may name."""
MAX_CHANGED_PATHS: Final = 20_000
"""Paths that one request may change, with those below directories."""


class ChangeKind(StrEnum):
    PUT = "put"
    DELETE = "delete"
    MOVE = "move"
    COPY = "copy"
    MAKE_DIRECTORY = "mkdir"
    REMOVE_DIRECTORY = "rmdir"


TRANSFERS: Final = frozenset({ChangeKind.MOVE, ChangeKind.COPY})


class FileChange(Struct, frozen=True):
    """One change: of a file, or of everything below a directory before it is expanded."""

    kind: ChangeKind
    path: Path
    """Path that is written; of a move or copy, its target."""
    source: Path | None = None
    """Path that is moved or copied."""
    content: bytes | None = None
    """Content of a put, or new content of a moved file, before it is redacted."""
    type: str | None = None
    condition: WriteCondition = UNCONDITIONAL
    """Condition on the written path."""
    source_condition: WriteCondition = UNCONDITIONAL
    accept_template_update: bool = False
    """Override the file although it is pinned."""
    recursive: bool = False
    """Whether a deletion may delete a directory."""
    index: int = 0
    """Position of the requested change."""
    blob: Blob | None = None
    """Redacted content of a put, move or copy."""
    attributes: FileAttributes | None = None
    """Of a directory that is made."""

    @property
    def subject(self) -> Path:
        """Path that the request names first."""
        return self.source or self.path

    @property
    def written_paths(self) -> tuple[Path, ...]:
        if self.kind is ChangeKind.MOVE and self.source is not None:
            return (self.path, self.source)
        return (self.path,)


def transfer(
    kind: ChangeKind,
    source: Path,
    target: Path,
    condition: WriteCondition,
    *,
    accept_template_update: bool,
) -> FileChange:
    """A move or copy; etags of the condition are those of the source, absence of the target."""
    return FileChange(
        kind,
        target,
        source,
        condition=WriteCondition(absent=condition.absent),
        source_condition=WriteCondition(condition.etags),
        accept_template_update=accept_template_update,
    )


def check_requested(changes: Sequence[FileChange]) -> None:
    """Check what does not depend on stored state. Raises ValidationError."""
    if not changes:
        raise ValidationError("a commit needs at least one change")
    if len(changes) > MAX_CHANGES:
        raise ValidationError(f"a commit may name {MAX_CHANGES} changes; it has {len(changes)}")
    for change in changes:
        if change.source is not None and _contains(change.source, change.path):
            raise ValidationError(f"{change.source} cannot be moved or copied into itself")
    check_independent(changes)


def check_independent(changes: Sequence[FileChange]) -> None:
    """Check that the result does not depend on the order of the changes.

    Raises ValidationError if a path is written twice, or written and copied.
    """
    if len(changes) > MAX_CHANGED_PATHS:
        raise ValidationError(f"a commit may change {MAX_CHANGED_PATHS} paths")
    counts = Counter(path for change in changes for path in change.written_paths)
    for path, count in counts.items():
        if count > 1:
            raise ValidationError(f"a commit may change {path} only once")
    for change in changes:
        if change.kind is ChangeKind.COPY and change.source in counts:
            raise ValidationError(f"a commit may not both copy and change {change.source}")


def _contains(directory: Path, path: Path) -> bool:
    return path == directory or directory in path.parents


class DirectoryContents(Struct, frozen=True):
    """Paths in a directory, as a change of the whole directory meets them."""

    files: Sequence[Path] = ()
    """Files that the workspace serves."""
    own_files: Sequence[Path] = ()
    """Those that the nearest layer has."""
    directories: Mapping[Path, FileAttributes] = {}
    """Directories of their own in the nearest layer, the directory itself included."""

    @property
    def exists(self) -> bool:
        return bool(self.files or self.directories)


def expand_directory(change: FileChange, contents: DirectoryContents) -> Iterator[FileChange]:
    """Changes of the paths in a directory that a change names.

    A change of an absent path stays as it is. Raises Conflict if a deletion is not recursive and
    the directory is not empty, NotFound if it is only in the layers below, and ValidationError for
    a condition, since a directory has no etag.
    """
    if not contents.exists:
        yield change
        return
    if (change.source_condition if change.source else change.condition) != UNCONDITIONAL:
        raise ValidationError(f"{change.subject} is a directory, which has no etag")
    if change.kind in TRANSFERS:
        yield from _expand_transfer(change, contents)
        return
    if not change.recursive and (contents.files or set(contents.directories) != {change.path}):
        raise Conflict(f"{change.path} is a directory that is not empty", path=change.path.text)
    if contents.files and not contents.own_files and not contents.directories:
        raise NotFound(f"no such directory in this layer: {change.path}")
    for path in contents.own_files:
        yield replace(change, path=path)
    for path in contents.directories:
        yield replace(change, kind=ChangeKind.REMOVE_DIRECTORY, path=path)


def _expand_transfer(change: FileChange, contents: DirectoryContents) -> Iterator[FileChange]:
    assert change.source is not None
    length = len(change.source.text)
    for path in contents.files:
        yield replace(change, path=Path(change.path.text + path.text[length:]), source=path)
    for path, attributes in contents.directories.items():
        target = Path(change.path.text + path.text[length:])
        directory = FileChange(ChangeKind.MAKE_DIRECTORY, target, index=change.index)
        yield replace(directory, attributes=attributes)
        if change.kind is ChangeKind.MOVE:
            removed = FileChange(ChangeKind.REMOVE_DIRECTORY, path, index=change.index)
            yield removed


class FailedChange(Struct, frozen=True):
    """A change that cannot be applied, with its refusal."""

    change: FileChange
    refusal: Refusal


_ORDER: Final[tuple[type[Refusal], ...]] = (
    *(Forbidden, ValidationError, WorkspaceTooLarge, NotFound, WorkspaceConflict, Conflict),
)
"""Refusals by precedence: permission is told before what reveals state."""


def commit_refusal(failures: Sequence[FailedChange]) -> Refusal:
    """Refusal of a commit: the one that takes precedence, with every failed change."""
    refusals = [failure.refusal for failure in failures]
    refusal = min(refusals, key=_precedence)
    visible = [failure for failure in failures if _is_shown_with(failure.refusal, refusal)]
    visible.sort(key=lambda failure: failure.change.index)
    failed = [_failure_details(failure) for failure in visible]
    refusal.details = {**refusal.details, "failed": failed}
    return refusal


def _precedence(refusal: Refusal) -> int:
    return next((n for n, kind in enumerate(_ORDER) if isinstance(refusal, kind)), len(_ORDER))


def _is_shown_with(refusal: Refusal, gravest: Refusal) -> bool:
    """Whether a failure is named: a caller without permission learns nothing of the state."""
    return not isinstance(gravest, Forbidden) or isinstance(refusal, Forbidden)


def _failure_details(failure: FailedChange) -> Mapping[str, Any]:
    change, refusal = failure.change, failure.refusal
    details: dict[str, Any] = {"index": change.index, "op": change.kind.value}
    details |= {"path": change.subject.text, "error": refusal.code, "message": str(refusal)}
    if change.source is not None:
        details["to"] = change.path.text
    if isinstance(refusal, WorkspaceConflict):
        details["currentVersion"] = refusal.current_version
        details |= _conditions(change)
    return details


def _conditions(change: FileChange) -> Mapping[str, str]:
    """Conditions of a change as its request has them."""
    on_subject = change.source_condition if change.source else change.condition
    result = {}
    if on_subject.etags is not None:
        result["ifMatch"] = ", ".join(sorted(on_subject.etags))
    if change.condition.absent:
        result["ifNoneMatch"] = "*"
    return result


def all_paths(changes: Iterable[FileChange]) -> Sequence[Path]:
    """Every path that the changes read or write, each once."""
    paths = (path for change in changes for path in (change.path, change.source))
    return tuple(dict.fromkeys(path for path in paths if path is not None))
