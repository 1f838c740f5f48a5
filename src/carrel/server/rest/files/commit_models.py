"""Request and response models of commits, moves, copies and directories."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from carrel.actions.files.commit_results import ChangeResult, CommitResult
from carrel.core.errors import ValidationError
from carrel.core.identifiers import Path
from carrel.core.overlay.file_changes import MAX_CHANGES, ChangeKind, FileChange, transfer
from carrel.core.overlay.write_condition import parse_condition
from carrel.server.http.content_encoding import decode_content
from carrel.server.http.endpoint import RequestModel, ResponseModel
from carrel.server.rest.files.file_collections import FileCollection
from carrel.server.rest.files.file_models import PositiveInt, Sha256

Reason = Annotated[str, msgspec.Meta(max_length=500)]
_IfAbsent = Literal["*"]
_PathText = Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]


class FileChangeBody(RequestModel, frozen=True):
    """One change of a commit."""

    op: Literal["put", "delete", "move", "copy"]
    path: _PathText
    """The file to put or delete; of a move or copy, the file or directory that is its source."""
    to: _PathText | None = None
    """Target of a move or copy."""
    content: str | None = None
    """Content of a put."""
    encoding: Literal["utf-8", "base64"] = "utf-8"
    content_type: str | None = None
    if_match: str | None = None
    """ETags, one of which the file at `path` must have; `*`: it must exist."""
    if_none_match: _IfAbsent | None = None
    """The file that is written must not exist; of a move or copy, its target."""
    accept_template_update: bool = False
    """Required to override a pinned file of an agent."""
    recursive: bool = False
    """Delete a directory with everything in it."""


class CommitBody(RequestModel, frozen=True):
    writes: Annotated[list[FileChangeBody], msgspec.Meta(min_length=1, max_length=MAX_CHANGES)]
    reason: Reason = ""


class TransferBody(RequestModel, frozen=True):
    """A move or copy of a file, or of a directory with everything in it."""

    from_: _PathText = msgspec.field(name="from")
    to: _PathText
    if_match: str | None = None
    """ETags, one of which the source must have; `*`: it must be a file."""
    if_none_match: _IfAbsent | None = None
    """The target must not exist; otherwise it is replaced."""
    accept_template_update: bool = False
    """Required to override a pinned file of an agent."""
    reason: Reason = ""


class DirectoryBody(RequestModel, frozen=True):
    path: _PathText
    reason: Reason = ""


class RemoveDirectoryQuery(RequestModel, frozen=True):
    recursive: bool = False
    """Delete everything in it, in one commit; otherwise it must be empty."""


class ChangeResultModel(ResponseModel, frozen=True):
    """What one path became."""

    index: Annotated[int, msgspec.Meta(ge=0)]
    """Position of the change in the request."""
    op: Literal["put", "delete", "move", "copy", "mkdir", "rmdir"]
    path: str
    from_: str | None = msgspec.field(name="from")
    """Path that was moved or copied here."""
    version: PositiveInt | None
    """Null if the path had this state already."""
    etag: str | None
    """Of the file that is served now; null if there is none, as after a deletion."""
    source: str | None
    """Layer of that file."""
    file_id: str | None
    """Stays the same when the file is moved."""
    sha256: Sha256 | None
    size: Annotated[int, msgspec.Meta(ge=0)] | None
    redacted: tuple[str, ...]
    """Names of the secrets that were replaced in the content."""
    warnings: tuple[str, ...]
    """Names of what looks like a secret and was left in place."""


class CommitModel(ResponseModel, frozen=True):
    revision: Annotated[int, msgspec.Meta(ge=0)]
    """Revision of the files after the commit."""
    results: list[ChangeResultModel]


def changes_of_body(collection: FileCollection, body: CommitBody) -> list[FileChange]:
    """Parse the changes of a commit. Raises ValidationError naming the change."""
    changes = []
    for index, write in enumerate(body.writes):
        try:
            changes.append(_parse_change(collection, write))
        except ValidationError as problem:
            raise ValidationError(f"writes[{index}]: {problem}", index=index) from None
    return changes


def _parse_change(collection: FileCollection, body: FileChangeBody) -> FileChange:
    _check_fields(body)
    kind = ChangeKind(body.op)
    path = collection.parse_path(body.path)
    condition = parse_condition(body.if_match, body.if_none_match)
    if body.to is not None:
        transfer = TransferBody(
            from_=body.path,
            to=body.to,
            if_match=body.if_match,
            if_none_match=body.if_none_match,
            accept_template_update=body.accept_template_update,
        )
        return transfer_of_body(collection, kind, transfer)
    content = None if body.content is None else decode_content(body.content, body.encoding)
    return FileChange(
        *(kind, path, None, content, body.content_type, condition),
        accept_template_update=body.accept_template_update,
        recursive=body.recursive,
    )


def _check_fields(body: FileChangeBody) -> None:
    """Check that a change has the fields of its kind, and no others."""
    is_put, is_transfer = body.op == "put", body.op in {"move", "copy"}
    if is_put != (body.content is not None):
        raise ValidationError("put needs content" if is_put else f"{body.op} has no content")
    if is_transfer != (body.to is not None):
        raise ValidationError(f"{body.op} needs `to`" if is_transfer else f"{body.op} has no `to`")
    if not is_put and (body.content_type is not None or body.encoding != "utf-8"):
        raise ValidationError(f"{body.op} has no contentType and no encoding")
    if body.recursive and body.op != "delete":
        raise ValidationError(f"{body.op} is not recursive")


def transfer_of_body(
    collection: FileCollection, kind: ChangeKind, body: TransferBody
) -> FileChange:
    return transfer(
        kind,
        collection.parse_path(body.from_),
        collection.parse_path(body.to),
        parse_condition(body.if_match, body.if_none_match),
        accept_template_update=body.accept_template_update,
    )


def deletion(path: Path, *, recursive: bool) -> FileChange:
    return FileChange(ChangeKind.DELETE, path, recursive=recursive)


def commit_to_model(result: CommitResult) -> CommitModel:
    return CommitModel(
        revision=result.revision, results=[_result_to_model(change) for change in result.changes]
    )


def _result_to_model(change: ChangeResult) -> ChangeResultModel:
    file, redaction = change.file, change.redaction
    return ChangeResultModel(
        index=change.index,
        op=change.kind.value,
        path=change.path.text,
        from_=None if change.source is None else change.source.text,
        version=change.version or None,
        etag=None if file is None else file.etag,
        source=None if file is None else file.source_label or file.source.kind,
        file_id=None if file is None else file.file_id,
        sha256=None if file is None else file.blob.digest.removeprefix("sha256:"),
        size=None if file is None else file.blob.size,
        redacted=() if redaction is None else redaction.replaced,
        warnings=() if redaction is None else redaction.warned,
    )
