"""Files as the API describes them, with their content or without."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from carrel_client.errors import InvalidResponse
from carrel_client.models import parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A file without its content."""

    path: str
    content_type: str
    version: int
    etag: str
    updated_at: datetime
    source: str
    """The layer that it comes from: agent-override, template, defaults and so on."""
    file_class: str
    """live, pinned or managed."""
    sha256: str
    """Digest of the stored bytes."""
    rendered_sha256: str | None
    """Digest of the rendered content, if in the response."""
    size: int | None
    """Bytes that are stored."""
    file_id: str | None
    """Stays the same when the file is moved."""
    update_available: bool
    """Whether the lower layers have changed since this content was written."""
    error: str | None = None
    """Reason why the content is not available."""


@dataclass(frozen=True, slots=True, kw_only=True)
class File(FileRow):
    """A file with its content."""

    content: str


def row_from_json(row: Any) -> FileRow:
    """Return a File if there is content, else a FileRow. Raises InvalidResponse."""
    try:
        if "content" in row:
            return _file(row)
        return FileRow(
            path=row["path"],
            content_type=row["contentType"],
            version=row["version"],
            etag=row["etag"],
            updated_at=parse_time(row["updatedAt"]),
            source=row["source"],
            file_class=row["class"],
            sha256=row["sha256"],
            rendered_sha256=row.get("renderedSha256"),
            size=row.get("size"),
            file_id=row.get("fileId"),
            update_available=row["updateAvailable"],
            error=row.get("error"),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidResponse("the response is not a file") from None


def _file(row: Any) -> File:
    return File(
        path=row["path"],
        content_type=row["contentType"],
        version=row["version"],
        etag=row["etag"],
        updated_at=parse_time(row["updatedAt"]),
        source=row["source"],
        file_class=row["class"],
        sha256=row["sha256"],
        rendered_sha256=row.get("renderedSha256"),
        size=row.get("size"),
        file_id=row.get("fileId"),
        update_available=row["updateAvailable"],
        error=row.get("error"),
        content=row["content"],
    )


def file_from_json(row: Any) -> File:
    """Raises InvalidResponse."""
    try:
        return _file(row)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InvalidResponse("the response is not a file with its content") from None


def rows_from_json(listing: Any) -> tuple[FileRow, ...]:
    """Raises InvalidResponse."""
    rows = listing.get("files") if isinstance(listing, dict) else None
    if not isinstance(rows, list):
        raise InvalidResponse("the response is not a listing of files")
    return tuple(map(row_from_json, rows))
