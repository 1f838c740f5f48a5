"""Request and response models of files."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Final, Literal

import msgspec

from carrel.actions.files.files import render_content
from carrel.core.errors import Conflict
from carrel.core.identifiers import MAX_PREFIX_LENGTH, Digest, ScopeKind, TimestampMs, digest
from carrel.core.overlay.compose import File
from carrel.core.overlay.directories import DirectoryEntry
from carrel.core.overlay.file_classes import FileClass
from carrel.server.http.content_encoding import decode_content
from carrel.server.http.endpoint import RequestModel, ResponseModel

WIRE_PATTERN: Final = "^[A-Za-z0-9][A-Za-z0-9._/-]{0,255}$"
PositiveInt = Annotated[int, msgspec.Meta(ge=1)]
Rfc3339 = Annotated[str, msgspec.Meta(extra_json_schema={"format": "date-time"})]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$", max_length=64)]
WirePath = Annotated[str, msgspec.Meta(pattern=WIRE_PATTERN, description="Relative, no `..`.")]


Encoding = Annotated[
    Literal["base64"], msgspec.Meta(description="Set if the content is not UTF-8 text.")
]
BodyEncoding = Annotated[
    Literal["utf-8", "base64"], msgspec.Meta(description="How `content` encodes the bytes.")
]


class FileSummaryModel(ResponseModel, frozen=True):
    """A file without its content."""

    path: WirePath
    content_type: str
    version: PositiveInt
    etag: str
    updated_at: Rfc3339


class WorkspaceFileModel(FileSummaryModel, frozen=True):
    """A file as defined by RFC 0059; content that is not UTF-8 is encoded as base64."""

    content: str
    encoding: Encoding | msgspec.UnsetType = msgspec.UNSET


class WrittenFileModel(FileSummaryModel, frozen=True):
    """A written file; with its content unless that was sent as bytes."""

    content: str | msgspec.UnsetType = msgspec.UNSET
    encoding: Encoding | msgspec.UnsetType = msgspec.UNSET


class FileBody(RequestModel, frozen=True):
    content: str
    content_type: str | None = None
    encoding: BodyEncoding = "utf-8"


class OverlayFileBody(RequestModel, frozen=True):
    content: str
    content_type: str | None = None
    encoding: BodyEncoding = "utf-8"
    accept_template_update: bool = False
    """Required to override a pinned file of an agent."""


class FileListModel(ResponseModel, frozen=True):
    files: list[FileSummaryModel]


class OverlayFileModel(ResponseModel, frozen=True):
    """A file of a stack, with its source layer and update state."""

    path: str
    content_type: str
    version: PositiveInt
    etag: str
    updated_at: Rfc3339
    source: str
    file_class: FileClass = msgspec.field(name="class")
    sha256: Sha256
    """Digest of the stored bytes."""
    size: Annotated[int, msgspec.Meta(ge=0)]
    """Bytes that are stored."""
    file_id: str
    """Stays the same when the file is moved; an override has its own."""
    update_available: bool
    upstream: Literal["template", "defaults"] | None
    """Layer below an agent that has the path, whatever its own file or pin says."""
    overrides: bool
    """It is the agent's own file in the place of an inherited or reviewed one."""
    rendered_sha256: Sha256 | msgspec.UnsetType = msgspec.UNSET
    """Digest of the served bytes; absent from rows that were not rendered."""
    content: str | msgspec.UnsetType = msgspec.UNSET
    encoding: Encoding | msgspec.UnsetType = msgspec.UNSET
    error: str | msgspec.UnsetType = msgspec.UNSET
    """Why the content could not be read."""


class OverlayFileListModel(ResponseModel, frozen=True):
    files: list[OverlayFileModel]

    @property
    def is_cacheable(self) -> bool:
        """Whether every file could be read; a failed read may succeed later."""
        return all(file.error is msgspec.UNSET for file in self.files)


def rfc3339(at: TimestampMs) -> str:
    """Format as RFC 3339 in UTC, with milliseconds."""
    return f"{_format_seconds(at // 1000)}.{at % 1000:03}Z"


@lru_cache(maxsize=64)
def _format_seconds(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()[:-6]


def decode_text(file: File, content: bytes) -> str:
    """Content as text. Raises Conflict if it is not UTF-8."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Conflict(f"{file.path} is not UTF-8 text") from None


def encode_content(content: bytes) -> tuple[str, Encoding | msgspec.UnsetType]:
    """Content as a JSON string, and its encoding unless it is text."""
    try:
        return content.decode(), msgspec.UNSET
    except UnicodeDecodeError:
        return b64encode(content).decode("ascii"), "base64"


def decode_body(body: FileBody | OverlayFileBody) -> bytes:
    """Bytes of a request body. Raises ValidationError."""
    return decode_content(body.content, body.encoding)


def file_to_summary(file: File) -> FileSummaryModel:
    return FileSummaryModel(
        path=file.path.text,
        content_type=file.entry.type,
        version=file.version,
        etag=file.etag,
        updated_at=rfc3339(file.head.at),
    )


def directory_entry_to_model(entry: DirectoryEntry) -> DirectoryEntryModel:
    file = entry.file
    return DirectoryEntryModel(
        path=entry.path,
        type="directory" if file is None else "file",
        size=entry.size,
        updated_at=rfc3339(entry.updated_at),
        version=None if file is None else file.version,
        etag=None if file is None else file.etag,
        content_type=None if file is None else file.entry.type,
        file_id=None if file is None else file.file_id,
    )


def workspace_file_to_model(file: File, content: bytes) -> WorkspaceFileModel:
    text, encoding = encode_content(content)
    return WorkspaceFileModel(
        path=file.path.text,
        content=text,
        encoding=encoding,
        content_type=file.entry.type,
        version=file.version,
        etag=file.etag,
        updated_at=rfc3339(file.head.at),
    )


def overlay_file_to_model(
    file: File,
    stored: bytes | None = None,
    *,
    raw: bool = False,
    rendered: bytes | None = None,
    error: str | None = None,
) -> OverlayFileModel:
    """Model of a file; with `stored`, including rendered (or raw) content.

    `rendered` is the rendered content, if the caller has it already.
    """
    stored_sha256 = _hex_digest(file.blob.digest)
    served_sha256: str | msgspec.UnsetType = (
        stored_sha256 if file.variables is None else msgspec.UNSET
    )
    content: str | msgspec.UnsetType = msgspec.UNSET
    encoding: Encoding | msgspec.UnsetType = msgspec.UNSET
    if stored is not None:
        rendered = render_content(file, stored) if rendered is None else rendered
        served_sha256 = stored_sha256 if rendered is stored else _hex_digest(digest(rendered))
        content, encoding = encode_content(stored if raw else rendered)
    return OverlayFileModel(
        path=file.path.text,
        content_type=file.entry.type,
        version=file.version,
        etag=file.etag,
        updated_at=rfc3339(file.head.at),
        source=file.source_label or file.source.kind,
        file_class=file.file_class,
        sha256=stored_sha256,
        size=file.blob.size,
        file_id=file.file_id,
        rendered_sha256=served_sha256,
        update_available=file.has_update,
        upstream=_upstream_layer(file),
        overrides=file.is_override,
        content=content,
        encoding=encoding,
        error=msgspec.UNSET if error is None else error,
    )


def _upstream_layer(file: File) -> Literal["template", "defaults"] | None:
    kind = file.upstream or (file.source.kind if file.source_label else None)
    match kind:
        case ScopeKind.TEMPLATE:
            return "template"
        case ScopeKind.DEFAULTS:
            return "defaults"
        case _:
            return None


def _hex_digest(digest: Digest) -> str:
    return digest.removeprefix("sha256:")


class WireFileQuery(RequestModel, frozen=True):
    version: PositiveInt | None = None


class FileQuery(RequestModel, frozen=True):
    version: PositiveInt | None = None
    raw: bool = False
    """Return the unrendered text, with placeholders."""


class DirectoryEntryModel(ResponseModel, frozen=True):
    """A file or directory in a directory."""

    path: str
    type: Literal["file", "directory"]
    size: Annotated[int, msgspec.Meta(ge=0)]
    """Bytes; of a directory, those of all files in it."""
    updated_at: Rfc3339
    """Of a directory, of the newest file in it."""
    version: PositiveInt | None
    """Null for a directory, as are the next three."""
    etag: str | None
    content_type: str | None
    file_id: str | None


class DirectoryListModel(ResponseModel, frozen=True):
    files: list[DirectoryEntryModel]


MAX_LAST_FILES: Final = 1000
_Depth = Annotated[
    Annotated[int, msgspec.Meta(ge=1, le=1)] | None,
    msgspec.Meta(description="1: list the directory that `prefix` ends in, not what is below it."),
]


class WireUploadQuery(RequestModel, frozen=True):
    content_type: str | None = None
    """Type to store instead of that of the body; for bytes only."""


class UploadQuery(WireUploadQuery, frozen=True):
    accept_template_update: bool = False
    """Required to override a pinned file of an agent with bytes."""


class FileListQuery(RequestModel, frozen=True):
    prefix: Annotated[str, msgspec.Meta(max_length=MAX_PREFIX_LENGTH)] = ""
    depth: _Depth = None
    content: bool = False
    raw: bool = False
    last: Annotated[
        Annotated[int, msgspec.Meta(ge=1, le=MAX_LAST_FILES)] | None,
        msgspec.Meta(description="Only this many files, the last ones in order of path."),
    ] = None


class WireFileListQuery(RequestModel, frozen=True):
    prefix: Annotated[str, msgspec.Meta(max_length=256)] = ""
    depth: _Depth = None
