"""Changes of files that are committed together, and what each changed path became."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from carrel_client.errors import InvalidResponse, ValidationError
from carrel_client.file_bytes import guess_type
from carrel_client.models import parse_time
from carrel_client.requests import drop_none


@dataclass(frozen=True, slots=True, kw_only=True)
class PutFile:
    """Create or replace a file."""

    path: str
    content: str | bytes
    """Bytes that are not UTF-8 are sent as they are."""
    content_type: str | None = None
    """By default text/markdown; of bytes that are not UTF-8, guessed from the path."""
    if_match: str | None = None
    """The etag that the file must have; ``*``: it must exist."""
    if_none_match: str | None = None
    """``*``: the file must not exist."""
    accept_template_update: bool = False
    """Override a pinned file of an agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteFile:
    """Delete a file; with ``recursive``, or a directory and everything in it."""

    path: str
    if_match: str | None = None
    recursive: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveFile:
    """Move a file, or a directory and everything in it."""

    path: str
    to: str
    if_match: str | None = None
    """The etag that the file at ``path`` must have."""
    if_none_match: str | None = None
    """``*``: there must be no file at ``to``, which is replaced otherwise."""
    accept_template_update: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyFile:
    """Copy a file, or a directory and everything in it."""

    path: str
    to: str
    if_match: str | None = None
    if_none_match: str | None = None
    accept_template_update: bool = False


FileChange: TypeAlias = PutFile | DeleteFile | MoveFile | CopyFile
_OPERATIONS = {PutFile: "put", DeleteFile: "delete", MoveFile: "move", CopyFile: "copy"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedFile:
    """What one path of a commit became."""

    index: int
    """Position of the change; a change of a directory has several results."""
    change: str
    """put, delete, move, copy, mkdir or rmdir."""
    path: str
    moved_from: str | None
    """Path that was moved or copied here."""
    version: int | None
    """None if the path was in this state already."""
    etag: str | None
    """Of the file that is served now; None if there is none."""
    source: str | None
    """The layer of that file: agent-override, template, defaults and so on."""
    file_id: str | None
    """Stays the same when the file is moved."""
    sha256: str | None
    size: int | None
    redacted: tuple[str, ...]
    """Names of the secrets that were replaced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitResult:
    """A commit of many changes."""

    revision: int
    changes: tuple[ChangedFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryEntry:
    """A file or directory that is directly in a directory."""

    path: str
    is_directory: bool
    size: int
    """Bytes; of a directory, those of all files in it."""
    updated_at: datetime
    version: int | None
    """None for a directory, as are the next three."""
    etag: str | None
    content_type: str | None
    file_id: str | None


def change_to_json(change: FileChange) -> dict[str, Any]:
    fields = {
        "op": _OPERATIONS[type(change)],
        "path": change.path,
        "to": getattr(change, "to", None),
        "ifMatch": change.if_match,
        "ifNoneMatch": getattr(change, "if_none_match", None),
        "recursive": getattr(change, "recursive", False) or None,
        "acceptTemplateUpdate": getattr(change, "accept_template_update", False) or None,
    }
    if isinstance(change, PutFile):
        fields |= content_to_json(change.path, change.content, change.content_type)
    return drop_none(fields)


def content_to_json(
    path: str, content: str | bytes, content_type: str | None = None
) -> dict[str, Any]:
    """Fields of a content; bytes that are not UTF-8 are encoded as base64.

    Their media type is guessed from the path unless given. Raises ValidationError for text that is
    not valid Unicode.
    """
    if isinstance(content, bytes):
        try:
            fields = {"content": content.decode()}
        except UnicodeDecodeError:
            encoded = b64encode(content).decode("ascii")
            fields = {"content": encoded, "encoding": "base64"}
            content_type = content_type or guess_type(path)
    else:
        fields = {"content": text_of(content)}
    return fields if content_type is None else {**fields, "contentType": content_type}


def text_of(content: str | bytes) -> str:
    """Raises ValidationError for content that is not valid UTF-8."""
    try:
        text = content.decode() if isinstance(content, bytes) else content
        text.encode()
    except UnicodeError:
        raise ValidationError("the content is not valid UTF-8") from None
    return text


def commit_from_json(result: Any) -> CommitResult:
    """Raises InvalidResponse."""
    try:
        changes = tuple(_changed_file(row) for row in result["results"])
        return CommitResult(revision=result["revision"], changes=changes)
    except (KeyError, TypeError):
        raise InvalidResponse("the response is not the result of a commit") from None


def _changed_file(row: Any) -> ChangedFile:
    return ChangedFile(
        index=row["index"],
        change=row["op"],
        path=row["path"],
        moved_from=row["from"],
        version=row["version"],
        etag=row["etag"],
        source=row["source"],
        file_id=row["fileId"],
        sha256=row["sha256"],
        size=row["size"],
        redacted=tuple(row["redacted"]),
    )


def entries_from_json(listing: Any) -> Sequence[DirectoryEntry]:
    """Raises InvalidResponse."""
    try:
        return [
            DirectoryEntry(
                path=row["path"],
                is_directory=row["type"] == "directory",
                size=row["size"],
                updated_at=parse_time(row["updatedAt"]),
                version=row["version"],
                etag=row["etag"],
                content_type=row["contentType"],
                file_id=row["fileId"],
            )
            for row in listing["files"]
        ]
    except (KeyError, TypeError, ValueError):
        raise InvalidResponse("the response is not a listing of a directory") from None
