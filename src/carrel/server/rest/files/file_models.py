"""Files as they go over the wire."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Final

import msgspec

from carrel.actions.files.files import render_content
from carrel.core.errors import Conflict
from carrel.core.identifiers import Digest, TimestampMs, digest
from carrel.core.overlay.compose import File
from carrel.core.overlay.file_classes import FileClass
from carrel.server.http.endpoint import RequestModel, ResponseModel

WIRE_PATTERN: Final = "^[A-Za-z0-9][A-Za-z0-9._/-]{0,255}$"
Number = Annotated[int, msgspec.Meta(ge=1)]
When = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
WirePath = Annotated[str, msgspec.Meta(pattern=WIRE_PATTERN, description="Relative, no `..`.")]


class FileRow(ResponseModel, frozen=True):
    """A file without its content."""

    path: WirePath
    content_type: str
    version: Number
    etag: str
    updated_at: When


class WorkspaceFile(FileRow, frozen=True):
    """A file as RFC 0059 has it."""

    content: str


class FileBody(RequestModel, frozen=True):
    content: str
    content_type: str | None = None


class OverlayFileBody(RequestModel, frozen=True):
    content: str
    content_type: str | None = None
    accept_template_update: bool = False
    """Needed to override a pinned file of an agent."""


class Files(ResponseModel, frozen=True):
    files: list[FileRow]


class OverlayFile(ResponseModel, frozen=True):
    """A file of a stack: where it comes from, and whether those beneath offer something newer."""

    path: str
    content_type: str
    version: Number
    etag: str
    updated_at: When
    source: str
    file_class: FileClass = msgspec.field(name="class")
    sha256: Sha256
    """Of the bytes as they are stored."""
    update_available: bool
    rendered_sha256: Sha256 | msgspec.UnsetType = msgspec.UNSET
    """Of what is served; absent from a row that would have to be rendered to tell."""
    content: str | msgspec.UnsetType = msgspec.UNSET
    error: str | msgspec.UnsetType = msgspec.UNSET
    """Why its content could not be had. It is served nowhere until that is mended."""


class OverlayFileList(ResponseModel, frozen=True):
    files: list[OverlayFile]

    @property
    def lasts(self) -> bool:
        """Whether it is so for as long as nothing changes: what could not be had may come back."""
        return all(file.error is msgspec.UNSET for file in self.files)


def rfc3339(at: TimestampMs) -> str:
    """RFC 3339 in UTC, to the millisecond."""
    return f"{_second(at // 1000)}.{at % 1000:03}Z"


@lru_cache(maxsize=64)
def _second(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()[:-6]


def text_of(file: File, content: bytes) -> str:
    """The content as JSON can carry it. Raises Taken for one that is not text."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Conflict(f"{file.path} is not text, and this answer carries only text") from None


def row(file: File) -> FileRow:
    return FileRow(
        path=file.path.text,
        content_type=file.entry.type,
        version=file.head.version,
        etag=file.etag,
        updated_at=rfc3339(file.head.at),
    )


def workspace_file(file: File, content: bytes) -> WorkspaceFile:
    return WorkspaceFile(
        path=file.path.text,
        content=text_of(file, content),
        content_type=file.entry.type,
        version=file.head.version,
        etag=file.etag,
        updated_at=rfc3339(file.head.at),
    )


def layered_file(
    file: File,
    stored: bytes | None = None,
    *,
    raw: bool = False,
    shown: bytes | None = None,
    error: str | None = None,
) -> OverlayFile:
    """A row, with what is served of the stored bytes where they are given, or with them as such.

    ``shown`` is what is served, where that is known already.
    """
    plain = _hex(file.blob.digest)
    told: str | msgspec.UnsetType = plain if file.variables is None else msgspec.UNSET
    content: str | msgspec.UnsetType = msgspec.UNSET
    if stored is not None:
        shown = render_content(file, stored) if shown is None else shown
        told = plain if shown is stored else _hex(digest(shown))
        content = text_of(file, stored if raw else shown)
    return OverlayFile(
        path=file.path.text,
        content_type=file.entry.type,
        version=file.head.version,
        etag=file.etag,
        updated_at=rfc3339(file.head.at),
        source=file.origin or file.source.kind,
        file_class=file.file_class,
        sha256=plain,
        rendered_sha256=told,
        update_available=file.upstream is not None,
        content=content,
        error=msgspec.UNSET if error is None else error,
    )


def _hex(digest: Digest) -> str:
    return digest.removeprefix("sha256:")
